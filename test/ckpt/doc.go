// Package ckpt does to checkpoints of Statemill what was done to checkpoints of Apache
// Spark in the recorded cases ckpt_*, and holds what comes of it against what Spark
// did. docs/recovery.md shows the table; a test holds that it is the one of this
// package, and that its column of Spark is what was recorded.
//
// The job is that of the recording: a count of words over ten batches in two
// partitions, with a snapshot every four versions; then something happens to the files;
// then the job is started again and gets three more batches.
//
// For every case either the job goes on with exact counts, or its start is refused
// with an error that names the file. A refusal has damaged nothing: with the files put
// back, the next start goes on.
package ckpt
