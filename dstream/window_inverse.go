package dstream

import (
	"time"

	"github.com/statemill/statemill/rdd"
)

// ErrNotInWindow: records leave an inverse window whose key its result does not
// have. See ReduceByKeyAndWindowInverse.
var ErrNotInWindow = rdd.ErrNotInWindow

// inverse adds the streams of an inverse window: what is kept of each batch, the
// result of each window (which the next one goes on from), and what is given, which
// is the result but for batches that only windows that were passed over had.
func inverse[K comparable, V any](in Stream[Pair[K, V]], kind string, add, sub func(V, V) V, keep func(K, V) bool, length, slide time.Duration, opts []OpOption) *DStream[Pair[K, V]] {
	w := windowByKey(in, kind, add == nil || sub == nil, length, slide, opts, reducedBatch[K](add))
	results := w.node
	out := newNode(nil, kind, results)
	bind(results, func(b *batchRun) (*rdd.RDD[Pair[K, V]], error) { return w.next(b, out.label(), add, sub, keep) })
	out.parents = append(out.parents, w.batch)
	out.name, results.name = results.name, ""
	out.lookback = results.slide // the late batches, and the result before
	return bind(out, func(b *batchRun) (*rdd.RDD[Pair[K, V]], error) {
		r, err := rddOf[Pair[K, V]](b, results)
		if err != nil {
			return nil, err
		}
		s, err := spanOf[Pair[K, V]](b, results, w.batch, length)
		if err != nil || len(s.late) == 0 {
			return r, err
		}
		p := w.by(b)
		sums := rdd.ReduceByKey(mergeOf(p, append(s.late, r)), add, p)
		if keep != nil {
			sums = rdd.Filter(sums, func(kv Pair[K, V]) bool { return keep(kv.Key, kv.Value) })
		}
		return sums.Named(out.label()), nil
	})
}

// next is the result of the window that ends in the batch. It goes on from the
// newest result there is, slide by slide: to a window a tick without a batch is an
// empty batch.
func (w *keyedWindow[K, V]) next(b *batchRun, label string, add, sub func(V, V) V, keep func(K, V) bool) (*rdd.RDD[Pair[K, V]], error) {
	p, slide := w.by(b), w.node.slide
	end, _ := b.slides(w.node)
	result := mergeOf[K, V](p, nil)
	from := b.lastGrid(b.prev, slide) // where the result before ended
	b.run.mu.Lock()
	past := b.run.remembered
	b.run.mu.Unlock()
	for _, x := range past {
		if at, due := x.slides(w.node); due && at.Equal(from) && x.slots[w.node.id].made {
			result = x.slots[w.node.id].rdd.(*rdd.RDD[Pair[K, V]])
		}
	}
	type dated struct {
		at time.Time
		r  *rdd.RDD[Pair[K, V]]
	}
	var batches []dated
	err := eachBatch(b, w.batch, func(t time.Time, r *rdd.RDD[Pair[K, V]]) { batches = append(batches, dated{t, r}) })
	if err != nil {
		return nil, err
	}
	in := func(from, until time.Time) (rs []*rdd.RDD[Pair[K, V]]) {
		for _, d := range batches {
			if d.at.After(from) && !d.at.After(until) {
				rs = append(rs, d.r)
			}
		}
		return rs
	}
	for to := from.Add(slide); !to.After(end); from, to = to, to.Add(slide) {
		left, came := in(from.Add(-w.length), to.Add(-w.length)), in(from, to)
		if len(left)+len(came) > 0 || to.Equal(end) {
			result = rdd.SlideWindow(result, mergeOf(p, left), mergeOf(p, came), add, sub, keep, p).Named(label)
		}
	}
	return result, nil
}
