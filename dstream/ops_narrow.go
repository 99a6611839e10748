package dstream

import (
	"iter"

	"github.com/statemill/statemill/rdd"
)

// Map gives f of every record.
func Map[T, U any](in Stream[T], f func(T) U) *DStream[U] {
	return narrow(in, "Map", f == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[U] { return rdd.Map(r, f) })
}

// MapErr is Map for functions that can fail. An error fails the record (see
// WithRecordPolicy).
func MapErr[T, U any](in Stream[T], f func(T) (U, error)) *DStream[U] {
	return narrow(in, "MapErr", f == nil, func(n *node, r *rdd.RDD[T]) *rdd.RDD[U] {
		return rdd.MapErr(r, f).Named(n.label())
	})
}

// MapPair gives the key and value that f makes of every record.
func MapPair[T, K, V any](in Stream[T], f func(T) (K, V)) *DStream[Pair[K, V]] {
	return narrow(in, "MapPair", f == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[Pair[K, V]] {
		return rdd.Map(r, func(v T) Pair[K, V] {
			key, value := f(v)
			return Pair[K, V]{Key: key, Value: value}
		})
	})
}

// MapPairErr is MapPair for functions that can fail.
func MapPairErr[T, K, V any](in Stream[T], f func(T) (K, V, error)) *DStream[Pair[K, V]] {
	return narrow(in, "MapPairErr", f == nil, func(n *node, r *rdd.RDD[T]) *rdd.RDD[Pair[K, V]] {
		return rdd.MapErr(r, func(v T) (Pair[K, V], error) {
			key, value, err := f(v)
			return Pair[K, V]{Key: key, Value: value}, err
		}).Named(n.label())
	})
}

// KeyBy makes pairs of the key that f finds in a record, and the record.
func KeyBy[T, K any](in Stream[T], f func(T) K) *DStream[Pair[K, T]] {
	return narrow(in, "KeyBy", f == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[Pair[K, T]] {
		return rdd.Map(r, func(v T) Pair[K, T] { return Pair[K, T]{Key: f(v), Value: v} })
	})
}

// FlatMap gives all elements that f makes of every record.
func FlatMap[T, U any](in Stream[T], f func(T) []U) *DStream[U] {
	return narrow(in, "FlatMap", f == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[U] { return rdd.FlatMap(r, f) })
}

// FlatMapErr is FlatMap for functions that can fail.
func FlatMapErr[T, U any](in Stream[T], f func(T) ([]U, error)) *DStream[U] {
	return narrow(in, "FlatMapErr", f == nil, func(n *node, r *rdd.RDD[T]) *rdd.RDD[U] {
		return rdd.FlatMapErr(r, f).Named(n.label())
	})
}

// FlatMapSeq gives all elements of the sequence that f makes of every record.
func FlatMapSeq[T, U any](in Stream[T], f func(T) iter.Seq[U]) *DStream[U] {
	return narrow(in, "FlatMapSeq", f == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[U] { return rdd.FlatMapSeq(r, f) })
}

// FlatMapEmit gives what f emits for every record, and makes no garbage. emit
// is valid during the call only.
func FlatMapEmit[T, U any](in Stream[T], f func(v T, emit func(U)) error) *DStream[U] {
	return narrow(in, "FlatMapEmit", f == nil, func(n *node, r *rdd.RDD[T]) *rdd.RDD[U] {
		return rdd.FlatMapEmit(r, f).Named(n.label())
	})
}

// Filter gives the records for which keep is true.
func Filter[T any](in Stream[T], keep func(T) bool) *DStream[T] {
	return narrow(in, "Filter", keep == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[T] { return rdd.Filter(r, keep) })
}

// FilterErr is Filter for functions that can fail.
func FilterErr[T any](in Stream[T], keep func(T) (bool, error)) *DStream[T] {
	return narrow(in, "FilterErr", keep == nil, func(n *node, r *rdd.RDD[T]) *rdd.RDD[T] {
		kept := rdd.FlatMapEmit(r, func(v T, emit func(T)) error {
			ok, err := keep(v)
			if ok && err == nil {
				emit(v)
			}
			return err
		})
		return sameKeys(r, kept.Named(n.label()))
	})
}

// MapValues gives every key with f of its value. Keys keep their partition.
func MapValues[K, V, W any](in Stream[Pair[K, V]], f func(V) W) *DStream[Pair[K, W]] {
	return narrow(in, "MapValues", f == nil, func(_ *node, r *rdd.RDD[Pair[K, V]]) *rdd.RDD[Pair[K, W]] {
		return rdd.MapValues(r, f)
	})
}

// MapValuesErr is MapValues for functions that can fail.
func MapValuesErr[K, V, W any](in Stream[Pair[K, V]], f func(V) (W, error)) *DStream[Pair[K, W]] {
	return narrow(in, "MapValuesErr", f == nil, func(n *node, r *rdd.RDD[Pair[K, V]]) *rdd.RDD[Pair[K, W]] {
		return sameKeys(r, rdd.MapErr(r, func(p Pair[K, V]) (Pair[K, W], error) {
			w, err := f(p.Value)
			return Pair[K, W]{Key: p.Key, Value: w}, err
		}).Named(n.label()))
	})
}

// FlatMapValues gives every key with each element that f makes of its value.
// Keys keep their partition.
func FlatMapValues[K, V, W any](in Stream[Pair[K, V]], f func(V) []W) *DStream[Pair[K, W]] {
	return narrow(in, "FlatMapValues", f == nil, func(_ *node, r *rdd.RDD[Pair[K, V]]) *rdd.RDD[Pair[K, W]] {
		return sameKeys(r, rdd.FlatMapEmit(r, func(p Pair[K, V], emit func(Pair[K, W])) error {
			for _, w := range f(p.Value) {
				emit(Pair[K, W]{Key: p.Key, Value: w})
			}
			return nil
		}))
	})
}

// MapPartitions gives what f makes of the records of each partition. The
// sequence is valid while f's result is read, and can be read once.
func MapPartitions[T, U any](in Stream[T], f func(records iter.Seq[T]) iter.Seq[U]) *DStream[U] {
	return narrow(in, "MapPartitions", f == nil, func(n *node, r *rdd.RDD[T]) *rdd.RDD[U] {
		return rdd.MapPartitions(r, func(_ int, records iter.Seq[T]) iter.Seq[U] { return f(records) }).Named(n.label())
	})
}

// Glom gives one slice per partition with all its records, empty partitions
// too.
func Glom[T any](in Stream[T]) *DStream[[]T] {
	return narrow(in, "Glom", false, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[[]T] { return rdd.Glom(r) })
}

// sameKeys says that out's keys lie where r's do: no later step moves them.
func sameKeys[T, U any](r *rdd.RDD[T], out *rdd.RDD[U]) *rdd.RDD[U] {
	if p := r.Partitioner(); p != nil {
		return out.WithPartitioner(p)
	}
	return out
}
