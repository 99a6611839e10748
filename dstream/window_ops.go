package dstream

import (
	"fmt"
	"time"

	"github.com/statemill/statemill/rdd"
)

// Window gives, every slide, the records of all batches of the last length, batch
// after batch. Length and slide are multiples of the stream's own slide (of the
// batch interval, unless the stream is windowed itself). The first windows are
// shorter. In batches between two slides the stream gives nothing, and its outputs
// do not run.
//
// A tick without a batch (skipped, or the job was down) is an empty batch to a
// window; the window that ends at it is given in the next batch. See the package's
// documentation.
func Window[T any](in Stream[T], length, slide time.Duration) *DStream[T] {
	return windowed(in, "Window", length, slide)
}

// ReduceByWindow merges, every slide, all records of the last length to one by f,
// in order; an empty window gives nothing. Each batch is merged once, when it is
// there. f must be associative and must not change its arguments. For lengths and
// slides see Window.
func ReduceByWindow[T any](in Stream[T], f func(T, T) T, length, slide time.Duration) *DStream[T] {
	const kind = "ReduceByWindow"
	reduce := func(_ *node, r *rdd.RDD[T]) *rdd.RDD[T] { return rdd.ReduceRDD(r, f) }
	batch := narrow(in, kind, f == nil, reduce)
	w := windowed(batch, kind, length, slide)
	batch.node.face = w.node
	return faceOf(w.node, narrow(w, kind, false, reduce))
}

// ReduceByWindowInverse is ReduceByWindow that goes on from the window before: what
// has left it is taken away by sub, what came is added by add, so that its cost
// does not grow with length. Once there was a record each window gives a result,
// also an empty one.
func ReduceByWindowInverse[T any](in Stream[T], add, sub func(T, T) T, length, slide time.Duration) *DStream[T] {
	return reduceInverse(in, "ReduceByWindowInverse", add, sub, length, slide)
}

// CountByWindow gives, every slide, the number of records of the last length:
// nothing before the first record, and then 0 for an empty window. For lengths and
// slides see Window.
func CountByWindow[T any](in Stream[T], length, slide time.Duration) *DStream[int64] {
	const kind = "CountByWindow"
	ones := narrow(in, kind, false, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[int64] {
		return rdd.Map(r, func(T) int64 { return 1 })
	})
	return reduceInverse(ones, kind, addCounts, subtractCounts, length, slide)
}

func subtractCounts(a, b int64) int64 { return a - b }

// reduceInverse is the inverse window by key with one key.
func reduceInverse[T any](in Stream[T], kind string, add, sub func(T, T) T, length, slide time.Duration) *DStream[T] {
	keyed := narrow(in, kind, false, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[Pair[bool, T]] {
		return rdd.KeyBy(r, func(T) bool { return true })
	})
	w := inverse(keyed, kind, add, sub, nil, length, slide, []OpOption{NumPartitions(1)})
	return faceOf(w.node, narrow(w, kind, false, func(_ *node, r *rdd.RDD[Pair[bool, T]]) *rdd.RDD[T] { return rdd.Values(r) }))
}

// windowed adds a stream of the records of a window.
func windowed[T any](in Stream[T], kind string, length, slide time.Duration) *DStream[T] {
	p := nodeOf(in)
	n := newWindow(kind, p, length, slide)
	logBatches(n, p, func(b *batchRun, parts [][]T, _ string) *rdd.RDD[T] { return ofRows(b, n, parts) }, nil)
	return bind(n, func(b *batchRun) (*rdd.RDD[T], error) {
		s, err := spanOf[T](b, n, p, length)
		if err != nil {
			return nil, err
		}
		if all := s.all(); len(all) > 0 {
			return rdd.Union(all...).Named(n.label()), nil
		}
		return rdd.Parallelize[T](nil, 1).Named(n.label()).WithExecutor(b.run.exec), nil
	})
}

// newWindow adds a windowed stream of p, and notes what is wrong with its
// durations.
func newWindow(kind string, p *node, length, slide time.Duration) *node {
	n := newNode(nil, kind, p)
	n.check(windowFaults(n, p, length, slide)...)
	n.lookback = max(length, 1)
	if slide > 0 {
		n.slide = slide
	}
	return n
}

// windowFaults says what is wrong with the durations of a window over p.
func windowFaults(n, p *node, length, slide time.Duration) (faults []error) {
	multiple := func(d time.Duration, what string) error {
		if err := positive(d, what); err != nil || p == nil || p.slide <= 0 || d%p.slide == 0 {
			return err
		}
		return fmt.Errorf("%s of %q is %v: want a multiple of %v, the slide of %q, which was made at %s",
			what, n.label(), d, p.slide, p.label(), p.caller)
	}
	return append(faults, multiple(length, "the window length"), multiple(slide, "the slide"))
}
