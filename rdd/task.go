package rdd

import (
	"context"
	"errors"
)

// Origin names a source record: the stream, its partition and the offset in it.
type Origin struct {
	Stream    string
	Partition string
	Offset    int64
}

// Task is one attempt at one partition. It belongs to the goroutine that runs it.
type Task struct {
	// Ctx ends when the attempt is to be given up. Loops over many records look
	// at it once per block.
	Ctx context.Context
	// Name is the name of the stage or action, for errors.
	Name string
	// Partition is the partition of the stage or action. A source below a Union
	// sees its own partition number instead while it runs.
	Partition int
	// Attempt counts from 0; Worker is the number of the worker, from 0.
	Attempt, Worker int
	// Origin is the cursor: the source record being worked on. Sources set Stream
	// and Partition when they begin a range and Offset before each record.
	Origin Origin
	// Record, if not nil, gives the source record that Origin names, as the source
	// gave it. Sources set it in guarded mode while their records are under way; behind
	// an edge (a shuffle, kept rows) it is nil.
	Record func() any
	// Operator and Key, if set, name the stateful operator and the key being
	// worked on in the error of a panic. Key is called only then. (The functions of
	// narrow steps are named without.)
	Operator string
	Key      func() any
	// Guard, if not nil, switches the guarded mode on. A new attempt needs a new one.
	Guard *Guard
	// Pools gives row blocks; nil means that blocks are allocated and dropped.
	Pools *Pools

	trail *trail // nil until a step begins
}

// Canceled says whether err is only the end of the task's context. Such an
// error is never the fault of a record.
func (t *Task) Canceled(err error) bool { return canceled(t.Ctx, err) }

func canceled(ctx context.Context, err error) bool {
	if err == nil || ctx == nil || ctx.Err() == nil {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Cause(ctx))
}

// check is called by edges and sources once per block.
func (t *Task) check() error {
	if t.Ctx == nil || t.Ctx.Err() == nil {
		return nil
	}
	return context.Cause(t.Ctx)
}
