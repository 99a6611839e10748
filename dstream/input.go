package dstream

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// planner is the part of a source.Source that knows no record type.
type planner interface {
	Open(ctx context.Context, last *source.Plan) error
	Plan(ctx context.Context, l source.Limits) (source.Plan, error)
	Committed(ctx context.Context, p source.Plan) error
	Close() error
}

// position is where a source partition stands: next is the offset that the
// next record is expected to have at least.
type position struct {
	epoch string
	next  int64
}

// input is a source in a run. The driver goroutine owns it; while a batch
// computes, workers read plan and positions and write only their own reads[i].
type input struct {
	node *node
	src  planner
	// reread, if set, reads the records of letters again.
	reread func(ctx context.Context, src planner, x source.Range, last int64, give func(offset int64, record any)) error

	opened    bool
	positions map[string]position // of committed epochs

	// Of the running epoch.
	plan       source.Plan
	reads      []rangeRead
	retries    int64
	limit      int64   // records that the plan could have, 0: no limit
	limitBytes int64   // the same of bytes
	rate       float64 // by which backpressure bound the plan, 0: it did not

	pressure  *pressure // nil without backpressure
	reporting reporting // shared
}

// rangeRead is what the last successful read of a range found.
type rangeRead struct{ rows, duplicates, gaps int64 }

// sourceFaults finds what sources can tell of their settings before they are opened.
func (ssc *StreamingContext) sourceFaults() (faults []*Fault) {
	for _, n := range ssc.nodes {
		if n.src == nil {
			continue
		}
		if v, ok := n.src.src.(source.Validator); ok {
			if err := callErr(n.label(), v.Validate); err != nil {
				faults = append(faults, &Fault{Caller: n.caller, Call: "dstream." + n.kind, Err: err})
			}
		}
	}
	return faults
}

func newInput(n *node, src planner) *input {
	return &input{node: n, src: src, positions: map[string]position{}}
}

func (in *input) name() string { return in.node.label() }

// bounded says whether the source can say that it has ended.
func (in *input) bounded() bool {
	_, ok := in.src.(source.Bounded)
	return ok
}

func (in *input) done() bool {
	b, ok := in.src.(source.Bounded)
	return ok && b.Done()
}

// begin takes the plan of a new epoch.
func (in *input) begin(p source.Plan) error {
	seen := map[string]bool{}
	for _, r := range p.Ranges {
		if seen[r.Partition] {
			return fmt.Errorf("the plan names partition %q twice", r.Partition)
		}
		seen[r.Partition] = true
		if r.Until < r.From {
			return fmt.Errorf("the plan has partition %q end at offset %d, before its begin at %d", r.Partition, r.Until, r.From)
		}
	}
	in.plan, in.reads = p, make([]rangeRead, len(p.Ranges))
	return nil
}

// resume puts the positions at the end of the last committed plan.
func (in *input) resume(p source.Plan) {
	for _, r := range p.Ranges {
		in.positions[r.Partition] = position{r.Epoch, r.Until}
	}
}

// expected is the least offset that may reach a function from range r.
func (in *input) expected(r source.Range) (next int64, known bool) {
	p, ok := in.positions[r.Partition]
	if !ok || p.epoch != r.Epoch {
		return r.From, false
	}
	return p.next, true
}

// commit moves the positions over the ranges that were read.
func (in *input) commit() {
	for _, r := range in.plan.Ranges {
		p, ok := in.positions[r.Partition]
		if !ok || p.epoch != r.Epoch || r.Until > p.next || sabotage.On("position-goes-back") {
			in.positions[r.Partition] = position{r.Epoch, r.Until}
		}
	}
}

// progress sums up what the batch read.
func (in *input) progress() SourceProgress {
	p := SourceProgress{Name: in.name(), Retries: in.retries, Limit: in.limit, LimitBytes: in.limitBytes, Rate: in.rate, Ranges: make([]RangeProgress, len(in.plan.Ranges))}
	for i, r := range in.plan.Ranges {
		got := in.reads[i]
		p.InputRows += got.rows
		p.Duplicates += got.duplicates
		p.Gaps += got.gaps
		p.Ranges[i] = RangeProgress{Partition: r.Partition, From: r.From, Until: r.Until, InputRows: got.rows}
	}
	if sparse, ok := in.src.(source.Sparse); ok && sparse.Sparse() {
		p.Gaps = 0 // they say nothing
	}
	if r, ok := in.ask(); ok && !sabotage.On("lag-not-told") {
		p.tells(r)
	}
	return p
}

// ReadError is a source's failure to plan, read or commit: it is tried again
// with growing pauses (WithIORetry) before it fails the batch.
type ReadError struct {
	Source    string
	Partition string // "" for the whole source
	Err       error
}

// Error names the source and the partition.
func (e *ReadError) Error() string {
	if e.Partition == "" {
		return fmt.Sprintf("source %q: %v", e.Source, e.Err)
	}
	return fmt.Sprintf("source %q, partition %q: %v", e.Source, e.Partition, e.Err)
}

// Unwrap gives the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// readFrom makes the RDD of a batch: one partition per range of the plan. A
// plan without ranges is one empty partition.
func readFrom[T any](in *input, src source.Source[T]) func(b *batchRun) (*rdd.RDD[T], error) {
	return func(b *batchRun) (*rdd.RDD[T], error) {
		ranges := in.plan.Ranges
		r := rdd.New(max(1, len(ranges)), func(t *rdd.Task, emit func(T) error) error {
			if t.Partition >= len(ranges) {
				return nil
			}
			return readRange(b, in, src, t, ranges[t.Partition], emit)
		})
		return r.Named(in.name()).WithExecutor(b.run.exec).WithInput(ranges), nil
	}
}

// readRange pushes the records of one range. Records below the expected offset
// are duplicates: they never reach a function. Offsets that no record has are
// gaps, which pass.
func readRange[T any](b *batchRun, in *input, src source.Source[T], t *rdd.Task, r source.Range, emit func(T) error) error {
	if b.over.Load() {
		return fmt.Errorf("source %q: epoch %d is over: what it read was not kept (see DStream.Cache)", in.name(), b.batch.Epoch)
	}
	at := t.Partition
	t.Origin = rdd.Origin{Stream: in.name(), Partition: r.Partition, Offset: r.From}
	if h := b.run.harness; h != nil {
		if err := h.Read(harness.ReadCall{Source: in.name(), Partition: r.Partition,
			From: r.From, Until: r.Until, Epoch: b.batch.Epoch, Attempt: t.Attempt}); err != nil {
			return &ReadError{in.name(), r.Partition, err}
		}
	}
	if t.Guard != nil {
		emit = tapped(t, emit)
		defer func() { t.Record = nil }()
	}
	var got rangeRead
	next, known := in.expected(r)
	if known && r.From > next {
		got.gaps += r.From - next
		next = r.From
	}
	var down error // what the steps below said: it is not the source's failure
	err := src.Read(t.Ctx, r, func(offset int64, v T) error {
		if offset < next && !sabotage.On("duplicate-passes") {
			got.duplicates++
			return nil
		}
		got.gaps += max(0, offset-next)
		next = offset + 1
		if got.rows&255 == 0 && t.Ctx.Err() != nil {
			down = context.Cause(t.Ctx)
			return down
		}
		got.rows++
		t.Origin.Offset = offset
		down = emit(v)
		return down
	})
	switch {
	case down != nil:
		return down
	case err != nil && t.Ctx.Err() != nil:
		return context.Cause(t.Ctx)
	case err != nil:
		return &ReadError{in.name(), r.Partition, err}
	}
	in.reads[at] = got
	return nil
}
