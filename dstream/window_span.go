package dstream

import (
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// This file says when a stream with a slide has an RDD, and which batches a window
// covers.
//
// The slide's grid starts at the run's zero time, as that of the batches does. A
// window that ends at grid time g covers (g-length, g]. It is due in the batch of
// time g, or if that tick was skipped or the job was down, in the next batch there
// is. To a window a tick without a batch is an empty batch. If several grid times
// have passed since the batch before, one window is given, the one that ended
// last; batches which only windows that were passed over would have had are counted
// into it, so that each record is in some output.
//
// What is made of a stream with a slide has the same one, state too: in batches between
// two slides an operator makes no calls, no key times out, and its version is carried on.

// inheritSlide takes the slide of the parents, which must have the same one; ssc.mu
// is held.
func (n *node) inheritSlide() error {
	n.slide = n.ssc.cfg.interval
	n.free = len(n.parents) > 0
	var first *node
	for _, p := range n.parents {
		if p == nil || p.ssc == nil {
			continue
		}
		if p.anySlide() {
			continue
		}
		n.free = false
		switch {
		case first == nil:
			first, n.slide = p, p.slide
		case p.slide != n.slide && p.ssc == n.ssc:
			return fmt.Errorf("the streams have different slides: %v of %q, and %v of %q, which was made at %s",
				first.slide, first.label(), p.slide, p.label(), p.caller)
		}
	}
	return nil
}

// anySlide says that the stream, a table or made of tables alone, goes with streams of
// any slide.
func (n *node) anySlide() bool { return n.constant || n.free && n.op == nil && n.lookback == 0 }

// grid is the distance of the stream's times.
func (n *node) grid() time.Duration {
	if n.op != nil && sabotage.On("state-every-batch") {
		return n.ssc.cfg.interval
	}
	return n.slide
}

// slides says whether the stream has an RDD in the batch, and for which time of its
// grid: the newest one.
func (b *batchRun) slides(n *node) (at time.Time, due bool) {
	grid := n.grid()
	if grid <= b.run.ssc.cfg.interval {
		return b.batch.Time, true
	}
	at = b.lastGrid(b.batch.Time, grid)
	return at, at.After(b.prev)
}

// lastGrid is the newest time of a grid that is not after t.
func (b *batchRun) lastGrid(t time.Time, grid time.Duration) time.Time {
	return b.run.lastGrid(t, grid)
}

func (r *run) lastGrid(t time.Time, grid time.Duration) time.Time {
	return r.zero.Add(t.Sub(r.zero).Truncate(grid))
}

// span is what a windowed stream reads of its parent in a batch.
type span[T any] struct {
	in []*rdd.RDD[T] // the window's batches, oldest first
	// late are batches that only windows that were passed over had.
	late []*rdd.RDD[T]
}

// all are the batches to give, oldest first.
func (s span[T]) all() []*rdd.RDD[T] { return append(s.late, s.in...) }

// spanOf gives what the window of n that ends in the batch covers of its parent.
func spanOf[T any](b *batchRun, n, parent *node, length time.Duration) (span[T], error) {
	var s span[T]
	end, _ := b.slides(n)
	before := b.lastGrid(b.prev, n.slide) // the window that was given last ended here
	err := eachBatch(b, n, parent, func(t time.Time, r *rdd.RDD[T]) {
		switch {
		case t.After(end):
		case t.After(end.Add(-length)):
			s.in = append(s.in, r)
		case t.After(before) && t.After(before.Add(n.slide-length)) && !sabotage.On("passed-window-lost"):
			s.late = append(s.late, r)
		}
	})
	return s, err
}

// eachBatch gives the RDDs of a stream in all batches that are remembered and that the
// windowed stream w of it may read, and in the running one, oldest first, with their times.
func eachBatch[T any](b *batchRun, w, n *node, f func(t time.Time, r *rdd.RDD[T])) error {
	b.run.mu.Lock()
	past, found := b.run.remembered, b.run.foundAt
	b.run.mu.Unlock()
	for _, x := range past {
		t, due := x.slides(n)
		s := &x.slots[n.id]
		if !due || !s.made {
			continue
		}
		if s.err != nil {
			return s.err
		}
		if w.log == nil || sabotage.On("window-reads-other-log") {
			f(t, s.rdd.(*rdd.RDD[T]))
		} else if x.batch.Time.After(found) {
			f(t, asLogged(b, w, s.rdd.(*rdd.RDD[T])))
		} else if r, ok := w.log.brought[x]; ok {
			f(t, r.(*rdd.RDD[T]))
		}
	}
	if t, due := b.slides(n); due {
		r, err := rddOf[T](b, n)
		if err != nil {
			return err
		}
		f(t, r)
	}
	return nil
}

// rememberForWindows has the parents of windowed streams kept, and remembered as
// long as the window reads them; the graph is being frozen.
func (ssc *StreamingContext) rememberForWindows() {
	for i := len(ssc.nodes) - 1; i >= 0; i-- { // children first: what they need adds up
		n := ssc.nodes[i]
		if !n.live || n.lookback == 0 {
			continue
		}
		own := max(n.remember, ssc.cfg.remember, n.slide, n.needed)
		for _, p := range n.parents {
			p.wantKept = true
			if sabotage.On("window-forgets") {
				continue
			}
			p.needed = max(p.needed, longer(own, n.lookback))
		}
	}
}

// longer is a+b, and the longest time there is where that is no duration: a window may be as
// long as that, and would forget at once what it reads.
func longer(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b && !sabotage.On("window-overflow") {
		return math.MaxInt64
	}
	return a + b
}

// keepForWindows computes what windows will read of this batch, whether or not one
// ends in it: sources cannot be read after the batch.
func (b *batchRun) keepForWindows() (name string, err error) {
	for _, n := range b.run.ssc.nodes {
		if !n.live || n.lookback == 0 {
			continue
		}
		for _, p := range n.parents {
			r, err := b.get(p)
			if err != nil {
				return p.label(), err
			}
			if err := rdd.Materialize(b.ctx, b.run.exec, r.(interface{ Deps() []*rdd.Stage }).Deps()...); err != nil {
				return p.label(), err
			}
			b.slots[p.id].keptNow()
		}
	}
	return "", nil
}

// keptNow lets go of what the rows were made of, now that they are kept: a window
// would hold it as long as them.
func (s *slot) keptNow() {
	for _, f := range s.drop[:s.built] {
		f()
	}
	s.drop, s.built = s.drop[s.built:], 0
}
