// Package sink is the contract between the engine and outputs that take each
// epoch exactly once, and holds the output that needs nothing but a
// [vfs.Store]: [Files].
//
// # Words
//
// A [Unit] is what fences, remembers and commits as one: a folder with its log,
// a database, a Kafka cluster with its transactional id. A [Sink] is one typed
// door into a unit; several sinks of a job may share a unit, and then their
// output of an epoch becomes visible in one act or not at all. Several units of a
// job are committed one after the other, so who reads two of them may find one
// an epoch ahead. A unit's [Memory] says which epoch it has, from which run, and
// a digest of what was written; it is stored atomically with the data.
//
// # The contract
//
// The engine (checkpoint.Session) calls a unit from one goroutine, in this
// order, and only Tx.Write from several:
//
//	{ Fence → owner check → Memory } → { Begin → Write… → Commit | Abort } … → Close
//
// Fence comes before commits/ and offsets/ are read. What every unit must keep,
// and package sinktest checks:
//
//   - Fence shuts out every run of a lower term (or, where the system knows no
//     terms, every run that fenced before): after it has returned, no Commit of
//     such a run succeeds, whenever that run wakes up. A unit that stores terms
//     answers [ErrNotOwner] to a run with a lower term than it has seen and is
//     left as it was. Fence changes neither data nor memory (CE10). It may be
//     called again at any time between epochs, and after an error. A transaction
//     begun before it, or before Close, is dead: it can be aborted, and nothing else.
//   - An object of a unit is one run's at a time, from its first Fence, whatever
//     becomes of that, until Close. Fence of another root or run is an *[InUseError]
//     meanwhile, and touches nothing ([Hold]); after Close it is as the first one.
//     Only the run that has the unit closes it.
//   - Memory is read after Fence, from the system itself, and is what no older
//     run can change any more: transactions that are still open are waited for
//     or given up (CE15). False means that this root has written nothing here.
//   - Memories are kept per root id ([Fence].Root) and unit name. Another root
//     id starts anew and neither sees nor changes what other roots have.
//   - Nothing of a transaction is visible to readers before Commit, and Commit
//     makes all its data and the memory visible and durable in one act.
//   - Commit only moves forward: a memory whose Epoch is not above the one
//     that the unit has is [ErrEpoch], and nothing changes. Epochs may be
//     skipped (an epoch that a tool committed writes no sink).
//   - A transaction without rows, or in which Write was never called, is
//     committed all the same: every epoch moves every unit's memory (CE20).
//   - The memory that Memory returns is, byte for byte, the one given to the
//     Commit that succeeded last.
//   - Rows of one part keep their order. Abort leaves nothing visible.
//
// # Errors
//
// [ErrNotOwner]: a run of a greater term was here; this run must end.
// [ErrFenced]: this run's hold on the unit is gone, and nobody says why (a newer
// run, or a transaction that took too long): the engine checks its ownership,
// fences again, checks again, reads the memory, and so learns what became of
// the epoch (P2). [ErrUnknown]: the unit has tried and cannot learn what became
// of a Commit: resolved in the same way, never by writing again at once.
// [ErrEpoch]: see above. Any other error may pass: the same call is made again
// with the same arguments, within a limit. Commit must therefore be repeatable:
// if the first call succeeded and its answer was lost, the second one succeeds.
// An error with a method Permanent() bool that gives true is not tried again.
//
// # Digest
//
// The sum of an epoch's output is made here, not in the unit: of every part its
// place, its rows' bytes and their bounds, in the order of outputs and
// partitions ([Writer]). [Digest] ties it to the state that goes with it. A dry
// run gives the same sum and does not touch the unit at all.
//
// Nothing here decides who owns a root, compares memories with commits/, or
// deletes what was written.
package sink

import "context"

// Memory is what a unit remembers of the last epoch that it committed.
type Memory struct {
	// Epoch is the number of the epoch.
	Epoch uint64 `json:"epoch"`
	// Term is the term of the run that wrote it. The term of a fence is stored
	// apart and never changes it.
	Term uint64 `json:"term"`
	// Output is the sum of the unit's output of the epoch, from Writer.Prepare.
	// With it a recovery can tell whether deltas belong to the output without
	// computing it.
	Output Sum `json:"output"`
	// Digest is Digest(chain hashes of all operators and partitions, Output).
	Digest Sum `json:"digest"`
}

// Fence says who opens a unit.
type Fence struct {
	// Root is the id of the checkpoint root. Memories are kept per root.
	Root string
	// Run is unique to the run, so that it can tell what it wrote itself.
	Run string
	// Term is the number of the run on the root; a later run has a greater one.
	Term uint64
	// Notice is told, in words and without the unit's name, what the user should
	// know, such as that other roots have written here. Nil is allowed.
	Notice func(text string)
}

// Unit is what fences, remembers and commits as one; the package comment has
// the rules. Units are compared with ==, so implement it by a pointer.
type Unit interface {
	// Name names the unit in the job, in memories and in commits/. It is the
	// same in every run and no other unit of the job has it.
	Name() string
	// Fence opens the unit for this run and shuts out older ones. It is the one call
	// that may come while another run, on a goroutine of its own, has the unit.
	Fence(ctx context.Context, f Fence) error
	// Memory gives what the unit remembers of this root, false if nothing.
	Memory(ctx context.Context) (Memory, bool, error)
	// Begin begins the unit's transaction for an epoch. One is open at a time.
	Begin(ctx context.Context, epoch uint64) (Tx, error)
	// Close ends the unit and its goroutines. It commits nothing, and may be
	// called at any time when no other call is under way, and more than once. Another
	// run may Fence afterwards.
	Close() error
}

// Validator is offered by units that can tell wrong settings without being opened, so
// that they are told at the start together with all other faults of a job.
type Validator interface {
	// Validate gives what Fence would say of the settings. It does no I/O.
	Validate() error
}

// Exclusive is offered by units of which some cannot be together in one job, such as two
// that would write to one system in two transactions.
type Exclusive interface {
	// Clash says why a job cannot have this unit and another one, and what to write
	// instead; nil if it can, or if that is not known. It does no I/O. It is asked before
	// the start, together with all other faults of a job, and again after each Fence,
	// before anything is written.
	Clash(other Unit) error
}

// Remembering is offered by units that can say where their memory lies.
type Remembering interface {
	// MemoryAt names the place, and what makes the system forget it, for the message
	// when it is not there. It is called after Fence.
	MemoryAt() string
}

// Tx is a unit's transaction for one epoch.
type Tx interface {
	// Write writes one part; it is called once for each part of the epoch, for
	// different parts from several goroutines at once. It must read rows to the
	// end once at least, and may read them again: they are the same each time.
	// After an error the transaction is aborted and another one begun.
	Write(ctx context.Context, p Part, rows Rows) error
	// Commit makes all parts and m visible and durable in one act. After an error
	// without a name in the package comment it is called again with the same m.
	Commit(ctx context.Context, m Memory) error
	// Abort gives the transaction up; after a Commit that succeeded it does
	// nothing. It may be called more than once.
	Abort(ctx context.Context) error
}

// Part is one partition of one output.
type Part struct {
	// Output is the name of the output in the job.
	Output string
	// Target is the Target of its sink.
	Target string
	// Index is the partition, from 0 to Of-1.
	Index, Of int
}

// Rows gives the rows of a part in order, as the sink encoded them. The bytes
// are valid until yield returns. yield's error ends it and is returned.
type Rows func(yield func(row []byte) error) error

// Sink is a typed door into a unit.
type Sink[T any] struct {
	// Unit is what the sink writes to. Sinks with the same one commit together.
	Unit Unit
	// Target says where in the unit the rows go (a topic, a table); "" where
	// that is not asked.
	Target string
	// Encode appends a row to dst in the form that the unit takes. It depends on
	// its argument alone, because a redone epoch must give the same bytes, and
	// keeps no part of dst. It is called from several goroutines at once.
	Encode func(dst []byte, row T) ([]byte, error)
}
