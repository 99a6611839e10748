package rdd

import (
	"slices"

	"github.com/statemill/statemill/partitioner"
)

// Joined is a pair of values of one key, one of each side.
type Joined[L, R any] struct {
	Left  L
	Right R
}

// Grouped holds all values of one key of both sides, in the order of the
// records; a side without the key is empty.
type Grouped[L, R any] struct {
	Left  []L
	Right []R
}

// Cogroup gathers the values of each key of both datasets and lays the groups out
// by p. The keys of a come first, in first-seen order, then those that only b
// has. A dataset that lies by p already is not moved. The groups are the
// receiver's.
func Cogroup[K comparable, V, W any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K]) *RDD[Pair[K, Grouped[V, W]]] {
	return zip(a, b, p, "cogroup", func(key K, left []V, right []W, emit func(Pair[K, Grouped[V, W]]) error) error {
		return emit(Pair[K, Grouped[V, W]]{key, Grouped[V, W]{slices.Clone(left), slices.Clone(right)}})
	})
}

// Join pairs every value of a key in a with every value of it in b, and lays
// the result out by p: keys in the order in which a first has them, the values of
// a in their order, for each of them those of b.
func Join[K comparable, V, W any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K]) *RDD[Pair[K, Joined[V, W]]] {
	return zip(a, b, p, "join", func(key K, left []V, right []W, emit func(Pair[K, Joined[V, W]]) error) error {
		return cross(key, left, right, emit)
	})
}

// LeftOuterJoin is Join which has the values of keys that b lacks too.
func LeftOuterJoin[K comparable, V, W any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K]) *RDD[Pair[K, Joined[V, Option[W]]]] {
	return zip(a, b, p, "leftOuterJoin", func(key K, left []V, right []W, emit func(Pair[K, Joined[V, Option[W]]]) error) error {
		return cross(key, left, options(right), emit)
	})
}

// RightOuterJoin is Join which has the values of keys that a lacks too, after
// all others.
func RightOuterJoin[K comparable, V, W any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K]) *RDD[Pair[K, Joined[Option[V], W]]] {
	return zip(a, b, p, "rightOuterJoin", func(key K, left []V, right []W, emit func(Pair[K, Joined[Option[V], W]]) error) error {
		return cross(key, options(left), right, emit)
	})
}

// FullOuterJoin is Join which has the values of keys that either side lacks too;
// keys that only b has come after all others.
func FullOuterJoin[K comparable, V, W any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K]) *RDD[Pair[K, Joined[Option[V], Option[W]]]] {
	return zip(a, b, p, "fullOuterJoin", func(key K, left []V, right []W, emit func(Pair[K, Joined[Option[V], Option[W]]]) error) error {
		return cross(key, options(left), options(right), emit)
	})
}

// SubtractByKey is a without the records whose key b has, laid out by p; the
// records of a stay in their order.
func SubtractByKey[K comparable, V, W any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	l := labelOf(a, "subtractByKey")
	left, right := layBy(a, l, p), MapValues(layBy(b, l, p), func(W) struct{} { return struct{}{} })
	return zipped(left, right, p, l, func(t *Task, target int, emit func(Pair[K, V]) error) error {
		drop, err := group(right, t, target, l)
		if err != nil {
			return err
		}
		return left.push(t, target, l, func(kv Pair[K, V]) error {
			if _, ok := drop.index[kv.Key]; ok {
				return nil
			}
			return emit(kv)
		})
	})
}

// cross emits every pair of a value of the left and one of the right.
func cross[K comparable, L, R any](key K, left []L, right []R, emit func(Pair[K, Joined[L, R]]) error) error {
	for _, l := range left {
		for _, r := range right {
			if err := emit(Pair[K, Joined[L, R]]{key, Joined[L, R]{l, r}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// options is the outer side of a join: one absent value if there is none.
func options[T any](values []T) []Option[T] {
	if len(values) == 0 {
		return []Option[T]{None[T]()}
	}
	all := make([]Option[T], len(values))
	for i, v := range values {
		all[i] = Some(v)
	}
	return all
}

// zip gives visit each key with the values of both sides, which it must not keep.
func zip[K comparable, V, W, U any](a *RDD[Pair[K, V]], b *RDD[Pair[K, W]], p partitioner.Partitioner[K], name string, visit func(key K, left []V, right []W, emit func(U) error) error) *RDD[U] {
	l := labelOf(a, name)
	la, lb := layBy(a, l, p), layBy(b, l, p)
	return zipped(la, lb, p, l, func(t *Task, target int, emit func(U) error) error {
		left, err := group(la, t, target, l)
		if err != nil {
			return err
		}
		right, err := group(lb, t, target, l)
		if err != nil {
			return err
		}
		emit = guardEmit(t, emit)
		for i := range left.keys {
			k := &left.keys[i]
			t.Origin = k.origin
			if err := visit(k.key, left.at(i), right.find(k.key), emit); err != nil {
				return err
			}
		}
		for i := range right.keys {
			k := &right.keys[i]
			if _, ok := left.index[k.key]; ok {
				continue
			}
			t.Origin = k.origin
			if err := visit(k.key, nil, right.at(i), emit); err != nil {
				return err
			}
		}
		return nil
	})
}

// zipped makes a child of two datasets that lie by p.
func zipped[K comparable, A, B, U any](a *RDD[Pair[K, A]], b *RDD[Pair[K, B]], p partitioner.Partitioner[K], l *label, compute func(t *Task, target int, emit func(U) error) error) *RDD[U] {
	out := derive(a, l, compute)
	out.part = p
	alsoReads(out, b)
	return out
}

// alsoReads says that out reads r too.
func alsoReads[U, T any](out *RDD[U], r *RDD[T]) {
	out.deps, out.res = slices.Concat(out.deps, r.deps), slices.Concat(out.res, r.res)
	if out.err == nil {
		out.err = r.err
	}
	if out.exec == nil {
		out.exec = r.exec
	}
}

// Merge joins partition i of all datasets, in the order in which they are given:
// Union of datasets that all lie by partitioners equal to p, as the result does.
// One that lies otherwise is laid out by p first.
func Merge[K comparable, V any](p partitioner.Partitioner[K], rs ...*RDD[Pair[K, V]]) *RDD[Pair[K, V]] {
	laid := make([]*RDD[Pair[K, V]], len(rs))
	for i, r := range rs {
		laid[i] = PartitionBy(r, p)
	}
	out := Union(laid...)
	if out.err != nil {
		return out
	}
	out.n, out.part, out.label.name = p.Partitions(), p, "merge"
	out.compute = func(t *Task, target int, emit func(Pair[K, V]) error) error {
		for _, r := range laid {
			if err := r.compute(t, target, emit); err != nil {
				return err
			}
		}
		return nil
	}
	return out
}
