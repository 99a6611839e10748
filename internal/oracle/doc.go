// Package oracle replays recorded cases of a real Apache Spark through
// Statemill's public API and the test kit, and compares every batch.
//
// A case is one JSON file: an operator, its parameters, the input of every
// batch, and what Spark gave: the outputs, and for mapWithState also the state
// snapshots and the update time of every key. [Load] reads a folder of cases,
// [Run] replays one, [Summary] counts them by operator.
//
// Outputs, snapshots and state times are compared as multisets of canonical
// JSON ([Canon]); Spark gives no order within a batch.
//
// What may differ is a closed list (divergence.go): the deliberate differences
// from Spark that also stand in the manual. Each entry says what Statemill
// gives instead, and that is asserted just as strictly. Anything else is a
// fault. A case whose operator does not exist yet is skipped, and counted so.
//
// The package holds no case but the dozen of testdata, for clones that have no
// recorded folder beside them; see the test for which folder is taken.
package oracle
