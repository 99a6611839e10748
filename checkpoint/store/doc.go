// Package store keeps the state of operators as files: it writes what an epoch
// changed, loads a version back, writes snapshots, deletes what is no longer
// needed, and offers the versioned store as an interface of its own.
//
// # Main types
//
// [Operator] writes and loads the files of one operator, partition by partition,
// straight from and into statemap versions. [Maintainer] is told every commit
// and, beside the batches, writes the snapshots that its [Policy] asks for and
// deletes what lies below F. [Provider] gives single versions of a store to
// those who build operators on it: see [Store].
//
// # Guarantees
//
//   - A load gives exactly the committed version or an error that names file,
//     partition and version; a map with part of a version is never given out.
//   - Deltas are the truth, snapshots a cache: a bad or missing snapshot costs
//     time, is counted and told, and a later version gets a new one.
//   - Every file is checked against what commits say: its bytes by checksum, its
//     line by chain hash. A snapshot of an abandoned line is never loaded.
//   - Nothing is rewritten. A name that is taken is read back, and is a success
//     exactly if its content is the one that was to be written.
//   - Only what lies below the F of a commit that passed the owner check is
//     deleted, and files at or above it of epochs whose commit does not name
//     them (P5).
//   - In steady state there is no list call: names are remembered.
//   - An error of maintenance never reaches a batch.
//
// # What it does not do
//
// It commits no epoch and owns no root: package checkpoint does. Nothing in it
// starts a goroutine but [Maintainer.Run] and [Operator.LoadAll], which join
// theirs before they return.
package store
