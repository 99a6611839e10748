// Package metamorphic runs the same whole job under many settings that must not
// matter: number of workers, rows of a block, delta chain threshold, source
// partitions, state partitions. The answer must be the same, in the same order
// (but for the number of state partitions, by which the records of different
// keys change places). It has tests only.
package metamorphic
