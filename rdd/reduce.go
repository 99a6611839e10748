package rdd

import (
	"fmt"
	"sync"

	"github.com/statemill/statemill/partitioner"
)

// ReduceByKey folds the values of each key by f and lays the results out by p.
// Each source partition is folded first, its keys in first-seen order; then the
// partial results are shuffled and folded again. What lies by p already is not
// moved. The result is in first-seen order. f must be associative and must not
// change its arguments.
func ReduceByKey[K comparable, V any](r *RDD[Pair[K, V]], f func(V, V) V, p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	return reduceByKey(r, labelOf(r, "reduceByKey"), f, p)
}

func reduceByKey[K comparable, V any](r *RDD[Pair[K, V]], l *label, f func(V, V) V, p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	if f == nil {
		return failed[Pair[K, V]](fmt.Errorf("%s: %w", l.name, errNilFunction))
	}
	if LiesBy(r, p) {
		return reduced(r, l, f, p)
	}
	s := shuffle(r, l, p, func(t *Task, w *rowWriter[K, V]) error {
		above := t.below()
		c, done := takeCombiner[K, V](above)
		defer done()
		check := w.keyChecker()
		err := r.push(above, w.source, l, func(kv Pair[K, V]) error {
			if check != nil {
				if err := check(above, kv.Key); err != nil {
					return err
				}
			}
			c.add(&above.Origin, kv.Key, kv.Value, f)
			return nil
		})
		if err != nil {
			return err
		}
		return c.each(t, guardEmitPair(t, w.emitter()))
	})
	if s.err != nil {
		return s.rdd
	}
	return reduced(s.rdd, l, f, p)
}

func guardEmitPair[K, V any](t *Task, emit func(Pair[K, V]) error) func(K, V) error {
	emit = guardEmit(t, emit)
	return func(k K, v V) error { return emit(Pair[K, V]{k, v}) }
}

// CountRDD is a dataset of one record: the number of records of r, 0 if it is
// empty. r is computed by a stage.
func CountRDD[T any](r *RDD[T]) *RDD[int64] {
	return gather(r, "count",
		func(n *int64, _ T) { *n++ },
		func(parts []int64, emit func(int64) error) error {
			var sum int64
			for _, n := range parts {
				sum += n
			}
			return emit(sum)
		})
}

// ReduceRDD is a dataset of one record, the fold of all records of r in the
// order of the partitions; empty if r is empty. f must be associative and must not
// change its arguments.
func ReduceRDD[T any](r *RDD[T], f func(T, T) T) *RDD[T] {
	return gather(r, "reduce",
		func(acc *Option[T], v T) {
			if acc.ok {
				v = f(acc.value, v)
			}
			*acc = Some(v)
		},
		func(parts []Option[T], emit func(T) error) error {
			if all := foldParts(parts, f); all.ok {
				return emit(all.value)
			}
			return nil
		}).needs(f != nil)
}

func foldParts[T any](parts []Option[T], f func(T, T) T) Option[T] {
	var all Option[T]
	for _, part := range parts {
		switch {
		case !part.ok:
		case !all.ok:
			all = part
		default:
			all = Some(f(all.value, part.value))
		}
	}
	return all
}

// gather folds every partition in a stage and gives the partial results, in the order
// of the partitions, to the one partition of the result.
func gather[T, A, U any](r *RDD[T], name string, add func(*A, T), merge func([]A, func(U) error) error) *RDD[U] {
	if err := faultOf(r, name); err != nil {
		return failed[U](err)
	}
	l := labelOf(r, name)
	var mu sync.Mutex // readers of a finished stage need none, but retried attempts write
	parts := make([]A, r.n)
	stage := NewStage(StageConfig{
		Name: l.operator(), Deps: r.deps, Tasks: r.n,
		Run: func(t *Task) error {
			acc, err := foldPartition(r, t, t.Partition, l, add)
			mu.Lock()
			defer mu.Unlock()
			parts[t.Partition] = acc
			return err
		},
	})
	out := leaf(1, name, func(_ *Task, _ int, emit func(U) error) error { return merge(parts, emit) })
	out.label, out.within = l, r.within
	out.deps, out.exec = []*Stage{stage}, r.exec
	return out
}

// fold is an edge with one value: a failed record's share is taken back.
type fold[A any] struct{ acc, flushed A }

func (e *fold[A]) Flush() error { e.flushed = e.acc; return nil }
func (e *fold[A]) Drop()        { e.acc = e.flushed }

func foldPartition[T, A any](r *RDD[T], t *Task, p int, l *label, add func(*A, T)) (A, error) {
	e := &fold[A]{}
	if t.Guard != nil {
		t.Guard.Enlist(e)
	}
	err := r.push(t, p, l, func(v T) error {
		add(&e.acc, v)
		return nil
	})
	return e.acc, err
}
