package dstream

import (
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// ReduceByKeyAndWindow merges, every slide, the values of each key in all batches
// of the last length by f, in order. Each batch is merged once, when it is there,
// and every window merges those results; keys come in the order in which they were
// first seen. f must be associative and must not change its arguments. For lengths
// and slides see Window.
func ReduceByKeyAndWindow[K comparable, V any](in Stream[Pair[K, V]], f func(V, V) V, length, slide time.Duration, opts ...OpOption) *DStream[Pair[K, V]] {
	const kind = "ReduceByKeyAndWindow"
	w := windowByKey(in, kind, f == nil, length, slide, opts, false, reducedBatch[K](f))
	return bind(w.node, func(b *batchRun) (*rdd.RDD[Pair[K, V]], error) {
		r, err := w.merged(b)
		if err != nil {
			return nil, err
		}
		return rdd.ReduceByKey(r, f, w.by(b)).Named(w.node.label()), nil
	})
}

// ReduceByKeyAndWindowInverse is ReduceByKeyAndWindow that goes on from the window
// before: of each key's result the batches that have left are taken away by sub,
// and those that came are added by add, so that its cost does not grow with length.
// A key whose records have all left stays with what sub has left of it (0 of a sum)
// unless keep, which may be nil, says false of it. keep is asked only about keys of which
// records leave or come in the slide: that of another key has not changed, so a keep
// that depends on its arguments alone would say the same again. (Spark asks about all.)
//
// What has left can only be taken from a result: if keep has dropped a key whose
// records were still in the window and now leave, the batch fails with
// ErrNotInWindow.
func ReduceByKeyAndWindowInverse[K comparable, V any](in Stream[Pair[K, V]], add, sub func(V, V) V, keep func(K, V) bool, length, slide time.Duration, opts ...OpOption) *DStream[Pair[K, V]] {
	return inverse(in, "ReduceByKeyAndWindowInverse", add, sub, keep, length, slide, opts)
}

// CountByValueAndWindow gives, every slide, how often each record is in the batches
// of the last length. For lengths and slides see Window.
func CountByValueAndWindow[T comparable](in Stream[T], length, slide time.Duration, opts ...OpOption) *DStream[Pair[T, int64]] {
	const kind = "CountByValueAndWindow"
	ones := narrow(in, kind, false, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[Pair[T, int64]] {
		return rdd.Map(r, func(v T) Pair[T, int64] { return Pair[T, int64]{Key: v, Value: 1} })
	})
	return inverse(ones, kind, addCounts, subtractCounts, func(_ T, n int64) bool { return n != 0 }, length, slide, opts)
}

// GroupByKeyAndWindow gathers, every slide, the values of each key in all batches of
// the last length, in order; keys come in the order in which they were first seen.
// For lengths and slides see Window.
func GroupByKeyAndWindow[K comparable, V any](in Stream[Pair[K, V]], length, slide time.Duration, opts ...OpOption) *DStream[Pair[K, []V]] {
	w := windowByKey(in, "GroupByKeyAndWindow", false, length, slide, opts, false, laidBatch[K, V])
	return bind(w.node, func(b *batchRun) (*rdd.RDD[Pair[K, []V]], error) {
		r, err := w.merged(b)
		if err != nil {
			return nil, err
		}
		return rdd.GroupByKey(r, w.by(b)).Named(w.node.label()), nil
	})
}

// keyedWindow is a windowed stream by key: each batch is laid out and kept once, and
// each window reads what lies there.
type keyedWindow[K comparable, V any] struct {
	node   *node
	batch  *node // the stream of what is kept of each batch
	length time.Duration
	by     func(b *batchRun) Partitioner[K]
}

// batchOf makes of a batch what a window by key keeps of it: rows that lie by p.
// The rows are released with the batch; what was moved to make them may be released
// as soon as they are there, by after.
type batchOf[K comparable, V any] func(r *rdd.RDD[Pair[K, V]], p Partitioner[K]) (kept *rdd.RDD[Pair[K, V]], after func())

// laidBatch keeps the records as they are.
func laidBatch[K comparable, V any](r *rdd.RDD[Pair[K, V]], p Partitioner[K]) (*rdd.RDD[Pair[K, V]], func()) {
	if rdd.LiesBy(r, p) {
		return rdd.Keep(r), nil
	}
	return rdd.PartitionBy(r, p), nil
}

// reducedBatch keeps one value a key.
func reducedBatch[K comparable, V any](f func(V, V) V) batchOf[K, V] {
	return func(r *rdd.RDD[Pair[K, V]], p Partitioner[K]) (*rdd.RDD[Pair[K, V]], func()) {
		reduced := rdd.ReduceByKey(r, f, p)
		if rdd.LiesBy(r, p) {
			return rdd.Keep(reduced), nil
		}
		return rdd.Keep(reduced), reduced.Release
	}
}

// windowByKey adds the two streams of a window by key. The second one is yet to be bound.
// goesOn: each result is made of the one before, so that it cannot be that of another
// window.
func windowByKey[K comparable, V any](in Stream[Pair[K, V]], kind string, isNil bool, length, slide time.Duration, opts []OpOption, goesOn bool, keep batchOf[K, V]) *keyedWindow[K, V] {
	p := nodeOf(in)
	batch := newNode(nil, kind, p)
	batch.stable = true // it keeps its rows itself
	batch.check(nilFunction(isNil))
	w := &keyedWindow[K, V]{batch: batch, length: length}
	bind(batch, func(b *batchRun) (*rdd.RDD[Pair[K, V]], error) {
		r, err := rddOf[Pair[K, V]](b, p)
		if err != nil {
			return nil, err
		}
		kept, after := keep(rdd.Within(r, batch.label()), w.by(b))
		if after != nil {
			b.afterCompute = append(b.afterCompute, after)
		}
		return own(b, batch, kept), nil
	})
	w.node = newWindow(kind, batch, length, slide)
	batch.face = w.node
	by, faults := byOptions[K](w.node, kind, opts)
	w.by = by
	w.node.check(faults...)
	badKey := keyKind[K]()
	if !goesOn || sabotage.On("fault-told-twice") { // else the operator of the results tells
		w.node.check(badKey)
	}
	layoutOf := func(b *batchRun) string {
		if goesOn {
			return by(b).String() + windowMark + windowText(length, slide)
		}
		return by(b).String()
	}
	again := func(b *batchRun, parts [][]Pair[K, V], layout string) *rdd.RDD[Pair[K, V]] {
		r, p := ofRows(b, w.node, parts), by(b)
		// In the number of partitions that they were kept in, where none is given: windows
		// lay them out anew (Merge) as they do where the batch is still in memory, so that
		// the order of what is redone on another machine is the same.
		was := &batchRun{parts: len(parts)}
		if sabotage.On("window-laid-out-twice") {
			was = b
		}
		if lay := by(was); layout == layoutOf(was) && len(parts) == lay.Partitions() {
			return r.WithPartitioner(lay)
		}
		return own(b, batch, rdd.PartitionBy(rdd.Within(r, batch.label()), p))
	}
	logBatches(w.node, batch, again, layoutOf)
	if w.node.log != nil {
		w.node.log.op.badKey = badKey != nil
	}
	if w.node.log != nil && goesOn {
		w.node.log.fits = func(layout string) error { return windowFits(layout, windowText(length, slide)) }
	}
	return w
}

// merged are the kept rows of all batches that the window covers.
func (w *keyedWindow[K, V]) merged(b *batchRun) (*rdd.RDD[Pair[K, V]], error) {
	s, err := spanOf[Pair[K, V]](b, w.node, w.batch, w.length)
	if err != nil {
		return nil, err
	}
	return mergeOf(b, w.by(b), s.all()), nil
}

// mergeOf joins rows that lie by p, of none too.
func mergeOf[K comparable, V any](b *batchRun, p Partitioner[K], rs []*rdd.RDD[Pair[K, V]]) *rdd.RDD[Pair[K, V]] {
	if len(rs) == 0 {
		return rdd.Parallelize[Pair[K, V]](nil, p.Partitions()).WithPartitioner(p).WithExecutor(b.run.exec)
	}
	return rdd.Merge(p, rs...)
}
