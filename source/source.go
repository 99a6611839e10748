// Package source is the contract between the engine and its inputs, and holds
// the inputs that need nothing but Go: scripted batches, text files, a watched
// directory, a reader such as standard input, and a socket.
package source

import "context"

// Range is the records with offsets in [From, Until) of one partition.
type Range struct {
	Partition   string
	From, Until int64
	// Epoch is the identity of the partition's history (a topic's id, a file's
	// size): the same offsets under another Epoch are other records.
	Epoch string
}

// Plan is what one epoch reads. It lists every partition, those with nothing to
// read too (From == Until): a plan is also the source's whole position.
type Plan struct{ Ranges []Range }

// Limits bound one plan.
type Limits struct {
	Records, PerPartition int64  // 0 = no limit
	Epoch                 uint64 // number of the epoch; rotates the fair share
}

// Source is an input of records of type T.
type Source[T any] interface {
	// Open starts at the positions of the last plan, nil on a first start.
	Open(ctx context.Context, last *Plan) error
	// Plan says what the next epoch reads; it does not read.
	Plan(ctx context.Context, l Limits) (Plan, error)
	// Read pushes one range in order, with each record's offset. Same range, same records.
	Read(ctx context.Context, r Range, emit func(offset int64, v T) error) error
	// Committed: the epoch that read p is durable.
	Committed(ctx context.Context, p Plan) error
	// Close ends the source.
	Close() error
}

// Bounded is offered by sources whose input may end.
type Bounded interface {
	// Done reports that every record has been planned and no more will come.
	Done() bool
}

// Locator is offered by sources that can say in words where a record stands.
type Locator interface {
	Locate(partition string, offset int64) string
}

// Share divides a limit by lag.
func Share(lags []int64, l Limits) []int64 { return make([]int64, len(lags)) }
