// Package staterdd is the heart of Statemill: keyed state that a function changes record by
// record, one version a batch.
//
// # Main types
//
//   - State is the handle through which a function sees and changes the state of its key.
//   - Spec says what a stateful operator does: the function, its name, partitions, timeout,
//     initial state. It is a value; its methods return changed copies.
//   - Call is what a keyed function (Keyed) gets: batch, state, emit, deadline.
//   - Operator runs a Spec: Initial gives version 0, Advance the next version and the stage that
//     computes it.
//   - MapWithStateRDD is one version: a Record per partition, holding the state map and the
//     mapped outputs.
//
// # The rules
//
// For each record in order: the function is called with the key, the value and the state;
// then a removed state is removed, else an updated one is put with the batch time, else, if
// there is a timeout and the key has state, its time is refreshed. Then the output is appended.
// Calls are per record: a later record of a key sees what an earlier one did. A key is inserted
// only when its state is updated.
//
// After all data, in every batch, each key whose update time lies strictly before the batch time
// minus the timeout gets one call without a value and is removed. Those calls come ordered by
// update time, then by the canonical bytes of the key. Outputs are those of the records in record
// order, then those of the timed-out keys.
//
// An update function (Update) is called once a batch for every key that has state or data, with
// all values of the key: see there.
//
// # Invariants
//
//   - Nothing of a batch is seen before its version is sealed, and only whole versions are
//     sealed: Seal needs all partitions to have succeeded, Abort takes all of them back.
//   - A task may run again: it begins by aborting what its earlier attempt wrote.
//   - No lock is held while user code runs.
//   - The expiry index is a hint kept beside the newest version; it changes only when a version
//     is sealed.
//
// The package does not plan batches, store anything durably or start goroutines.
package staterdd
