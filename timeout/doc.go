// Package timeout finds the keys that are due without looking at the others,
// and computes watermarks.
//
// [Index] keeps, for the slots of one state map, hints of when each may be due.
// A hint is only a hint: the time stored with the slot decides. The hints lie in
// buckets of one width (normally the batch interval), and a slot is not moved
// when its key is touched but when its bucket comes up: a pass costs
// O(expired + n/T), a touch costs nothing.
//
// The invariant, checked by [Index.Verify]: every live slot has a hint that is
// not later than its due time. It holds after commits, aborted and retried
// versions and reused slots, because
//
//   - a pass only computes; hints change in [Index.Commit], which the owner calls
//     when the version is sealed, and [Index.Abort] forgets everything staged;
//   - a slot that was freed keeps its hint, which is too early for the next key
//     in that slot and therefore legal;
//   - a due time earlier than the hint adds an earlier hint (deadline mode).
//
// Hints far ahead are rounded down (by less than 1/256 of the distance), so that
// a few thousand buckets hold any spread of due times; such a slot is visited
// once or twice more on its way.
//
// [Tracker] computes a watermark from the greatest event times that the tasks of
// an epoch saw per source partition.
//
// All times are int64 nanoseconds since the Unix epoch. Nothing here reads a
// clock, starts a goroutine, or is safe for use from two goroutines at once: an
// Index belongs to the task of its partition, a Tracker to the driver.
package timeout
