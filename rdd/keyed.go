package rdd

import (
	"context"
	"iter"

	"github.com/statemill/statemill/partitioner"
)

// KeyBy makes pairs of the key that f finds in a record, and the record.
func KeyBy[T, K any](r *RDD[T], f func(T) K) *RDD[Pair[K, T]] {
	l := labelOf(r, "keyBy")
	return derive(r, l, func(t *Task, p int, emit func(Pair[K, T]) error) error {
		return r.push(t, p, l, func(v T) error { return emit(Pair[K, T]{f(v), v}) })
	}).needs(f != nil)
}

// Keys gives the key of every record.
func Keys[K, V any](r *RDD[Pair[K, V]]) *RDD[K] {
	l := labelOf(r, "keys")
	return derive(r, l, func(t *Task, p int, emit func(K) error) error {
		return r.push(t, p, l, func(kv Pair[K, V]) error { return emit(kv.Key) })
	})
}

// Values gives the value of every record.
func Values[K, V any](r *RDD[Pair[K, V]]) *RDD[V] {
	l := labelOf(r, "values")
	return derive(r, l, func(t *Task, p int, emit func(V) error) error {
		return r.push(t, p, l, func(kv Pair[K, V]) error { return emit(kv.Value) })
	})
}

// Distinct gives every record once, over n partitions by its hash, in the order in
// which they were first seen.
func Distinct[T comparable](r *RDD[T], n int) *RDD[T] {
	l := labelOf(r, "distinct")
	seen := derive(r, l, func(t *Task, p int, emit func(Pair[T, struct{}]) error) error {
		return r.push(t, p, l, func(v T) error { return emit(Pair[T, struct{}]{Key: v}) })
	})
	first := func(a, _ struct{}) struct{} { return a }
	out := Keys(reduceByKey(seen, l, first, partitioner.Hash[T](n)))
	out.label = l
	return out
}

// Pairs gives the records of a dataset of pairs as a sequence, in their order: for the
// InitialState of a stateful operator. Each time that it is ranged over the dataset is
// computed and held in memory; if that fails the sequence panics with the error, which
// InitialState takes for the failure of the first batch.
func Pairs[K, V any](r *RDD[Pair[K, V]]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		all, err := Collect(context.Background(), r)
		if err != nil {
			panic(err)
		}
		for _, kv := range all {
			if !yield(kv.Key, kv.Value) {
				return
			}
		}
	}
}
