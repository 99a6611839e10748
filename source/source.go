// Package source is the contract between the engine and its inputs, and holds
// the inputs that need nothing but Go: [Queue] (scripted batches), [Files] (text
// files), [Directory] (files that appear in a directory), [LineReader] (a reader
// such as standard input) and [SocketReader] (lines from a TCP server).
//
// # The contract
//
// The engine calls, from one goroutine:
//
//	Open(last) → { Plan → Read… → Committed } … → Close
//
// One epoch is one Plan. Its ranges are written down before they are read, and
// from then on they are the epoch's: if it fails, is tried again, or is redone by
// a later run, the same ranges are read again and Plan is not asked. Plan for the
// next epoch comes only after Committed for this one. Only Read may be called
// from several goroutines at once, for different ranges or the same one.
//
// What every source must keep, and package sourcetest checks:
//
//   - Plan does not read records. It may look at bytes to find where records end.
//   - A plan lists every partition, those with nothing to read too: it is the
//     source's whole position. Within a partition Until never goes back.
//   - Same range, same records, in the same order: in this run and, for a source
//     that can be read again, in any later one. A source that cannot be
//     (a socket, a pipe) keeps what an uncommitted plan needs until Committed,
//     and answers [ErrNotReplayable] in a new run.
//   - Offsets grow within a range and lie in [From, Until). Not every offset has a
//     record; if that is usual, the source is [Sparse].
//   - A plan holds at most Limits.Records records, Limits.PerPartition in one range,
//     and records of Limits.Bytes, or one that is larger; what is waiting comes in
//     later plans, and no partition starves.
//   - emit's error ends Read and is returned (errors.Is finds it).
//   - A cancelled context ends every call soon, with its error.
//   - Read gives an error for a range that it cannot deliver whole.
//
// Errors name the source, the place and the next step. The engine retries failed
// calls with backoff, so a source need not; each call must be repeatable. An error
// with a method Permanent() bool that gives true fails at once.
// Records belong to whoever receives them; a source does not change them later.
//
// Nothing here decides what a record means, keeps group offsets, or shares work
// between processes.
package source

import "context"

// Range is the records with offsets in [From, Until) of one partition.
type Range struct {
	// Partition names the partition within the source.
	Partition string `json:"partition"`
	// From and Until are offsets, in the source's own unit.
	From  int64 `json:"from"`
	Until int64 `json:"until"`
	// Epoch is the identity of the partition's history (a topic's id, a file's
	// size): the same offsets under another Epoch are other records.
	Epoch string `json:"epoch,omitempty"`
	// Mark is what the source wants to know besides when it goes on at Until, in its
	// own words, UTF-8; "" for nothing. Unlike Epoch it may change from plan to plan.
	Mark string `json:"mark,omitempty"`
}

// Plan is what one epoch reads, and with it the source's whole position: it has
// one range for every partition.
type Plan struct{ Ranges []Range }

// NoLimit says, in a field of Limits, that there is no bound. It is what a field
// that was not set has.
const NoLimit int64 = 0

// Limits bound one plan. The zero value has no bound; a negative bound allows
// nothing, so who computes one and comes out at nothing does not say NoLimit: at
// least one, or a negative number.
type Limits struct {
	// Records is the most records in the plan, or NoLimit.
	Records int64
	// PerPartition is the most records in one range, or NoLimit.
	PerPartition int64
	// Bytes is the most bytes of all records in the plan together, or NoLimit. How
	// large a record is, is for the source to say: the bytes of a line with its end,
	// of a key and a value, of what is stored. A record that is larger goes alone, so
	// that none is waited for in vain. A source that must judge sizes says how well.
	Bytes int64
	// Epoch is the number of the epoch. Sources that share a limit among
	// partitions start the round with another one in each epoch.
	Epoch uint64
}

// least is the smaller of two bounds of which each may be NoLimit.
func least(a, b int64) int64 {
	if a == NoLimit || b != NoLimit && b < a {
		return b
	}
	return a
}

// Source is an input of records of type T; the package comment has the rules.
type Source[T any] interface {
	// Open starts at the positions of last, the newest plan made for this source,
	// committed or not; nil on a first start. Its ranges can be read at once.
	Open(ctx context.Context, last *Plan) error
	// Plan says what the next epoch reads, from the end of the last plan on. It
	// waits for nothing: a plan of empty ranges is a good answer.
	Plan(ctx context.Context, l Limits) (Plan, error)
	// Read calls emit for each record of r, in order, with the record's offset.
	Read(ctx context.Context, r Range, emit func(offset int64, v T) error) error
	// Committed says that the epoch that read p is complete and durable: p will
	// not be read again.
	Committed(ctx context.Context, p Plan) error
	// Close ends the source and its goroutines. It may be called at any time
	// when no other call is under way, and more than once.
	Close() error
}

// Bounded is offered by sources whose input may end, so that a run over finite
// input can end by itself.
type Bounded interface {
	// Done reports that every record has been planned and no more will come. Once
	// true it stays true. The engine asks after a commit.
	Done() bool
}

// Exclusive is offered by sources of which some cannot be together in one job, such as two
// that would keep their positions in one place.
type Exclusive interface {
	// Clash says why a job cannot have this source and another one, which is a source
	// too, and what to write instead; nil if it can, or if that is not known. It does no
	// I/O. It is asked before the start, together with all other faults of a job, and again
	// when all sources are open, before the first plan.
	Clash(other any) error
}

// Validator is offered by sources that can tell wrong settings without being opened,
// so that they are told at the start together with all other faults of a job.
type Validator interface {
	// Validate gives what Open would say of the settings. It does no I/O.
	Validate() error
}

// Prober is offered by sources that can tell, without changing anything, that Open would
// fail. A job on a checkpoint asks before it takes the checkpoint, where another run may
// be at work: a start that fails anyway shall not end that one.
type Prober interface {
	// Probe says what Open would fail with after the same last plan; nil if it would not,
	// or if that cannot be known. It leaves nothing open, and may be called while another
	// process reads the same input. Open is called after it, or not at all.
	Probe(ctx context.Context, last *Plan) error
}

// Rooted is offered by sources that leave marks outside, so that these say whose they are.
type Rooted interface {
	// SetRoot tells the id of the checkpoint's root, before each Open of a run that has
	// one.
	SetRoot(id string)
}

// Locator is offered by sources that can say where a record stands, for messages.
type Locator interface {
	// Locate names the place of a record in words, such as a file and a byte.
	Locate(partition string, offset int64) string
}

// Sparse is offered by sources that number records by other than one, such as
// byte offsets: a gap between two offsets says nothing there.
type Sparse interface{ Sparse() bool }
