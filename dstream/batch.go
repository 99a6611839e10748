package dstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/statemill/statemill/rdd"
)

// batchRun is one batch: the RDD of each stream, made when first asked for and
// then the same for all consumers. The driver goroutine owns it; once its batch
// is committed only what it holds is used, until it is forgotten.
type batchRun struct {
	run   *run
	batch Batch
	prev  time.Time // the batch before, or the zero time
	ctx   context.Context
	slots []slot
	// parts is how many partitions an operator by key has that was not given a number.
	parts int

	over atomic.Bool // committed or given up: sources are not read any more

	letters map[*node][]*deadLetter // by source, from their settling to the commit

	shuffles     map[int]any // *rdd.Shuffled of PartitionBy streams, by node
	afterCompute []func()    // lets go of what only the stateful stages read
}

type slot struct {
	made bool
	rdd  any
	err  error
	drop []func() // for this stream alone, when it is forgotten
	// built counts those of drop that only the stage of the kept rows reads.
	built int
}

func newBatchRun(r *run, ctx context.Context, b Batch) *batchRun {
	prev := r.committedAt
	if prev.Before(r.zero) { // none yet
		prev = r.zero
	}
	return &batchRun{
		run: r, batch: b, prev: prev, ctx: ctx, parts: r.workers,
		slots: make([]slot, len(r.ssc.nodes)), shuffles: map[int]any{},
	}
}

// get gives the RDD of a stream in this batch.
func (b *batchRun) get(n *node) (any, error) {
	s := &b.slots[n.id]
	if s.made {
		return s.rdd, s.err
	}
	s.made = true
	if _, due := b.slides(n); !due {
		s.rdd = n.empty()
		if n.op != nil {
			_, s.err = call(n.label(), func() (any, error) { return nil, n.op.idle(b) })
		}
		return s.rdd, s.err
	}
	// Building runs user code too: an initial state's sequence, a partitioner.
	s.rdd, s.err = call(n.label(), func() (any, error) { return n.build(b) })
	if s.err == nil && n.kept && !n.stable {
		var drop func()
		s.built = len(s.drop)
		s.rdd, drop = n.keep(s.rdd)
		s.drop = append(s.drop, drop)
	}
	return s.rdd, s.err
}

// atForget lets something go when the stream forgets the batch.
func (b *batchRun) atForget(n *node, f func()) {
	b.slots[n.id].drop = append(b.slots[n.id].drop, f)
}

// own notes that the batch owns what r's own stage wrote.
func own[T any](b *batchRun, n *node, r *rdd.RDD[T]) *rdd.RDD[T] {
	b.atForget(n, r.Release)
	return r
}

// computed lets go of what the stateful stages have read.
func (b *batchRun) computed() {
	for _, f := range b.afterCompute {
		f()
	}
	b.afterCompute = nil
}

// dropAll lets go of everything.
func (b *batchRun) dropAll() {
	b.computed()
	for i := range b.slots {
		b.drop(i)
	}
}

// drop forgets one stream's part of the batch.
func (b *batchRun) drop(i int) {
	for _, f := range b.slots[i].drop {
		f()
	}
	b.slots[i] = slot{}
}
