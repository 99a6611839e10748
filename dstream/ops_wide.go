package dstream

import (
	"errors"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// Union gives the records of all streams: first all partitions of the first
// one, then those of the next.
func Union[T any](a Stream[T], more ...Stream[T]) *DStream[T] {
	parents := []*node{nodeOf(a)}
	for _, s := range more {
		parents = append(parents, nodeOf(s))
	}
	n := newNode(nil, "Union", parents...)
	return bind(n, func(b *batchRun) (*rdd.RDD[T], error) {
		rs, err := rddsOf[T](b, parents)
		if err != nil {
			return nil, err
		}
		return rdd.Union(rs...), nil
	})
}

// Repartition deals the records out over n partitions, in turn.
func Repartition[T any](in Stream[T], n int) *DStream[T] {
	d := derive(in, "Repartition", false, func(node *node, b *batchRun, r *rdd.RDD[T]) (*rdd.RDD[T], error) {
		return own(b, node, rdd.Repartition(r, n)), nil
	})
	d.node.check(partitionsFault(n))
	return d
}

// PartitionBy moves every record to the partition that p gives for its key.
// Order: the records of source partition 0 first, then 1, and so on, each in its
// order.
func PartitionBy[K comparable, V any](in Stream[Pair[K, V]], p Partitioner[K]) *DStream[Pair[K, V]] {
	d := derive(in, "PartitionBy", false, func(n *node, b *batchRun, r *rdd.RDD[Pair[K, V]]) (*rdd.RDD[Pair[K, V]], error) {
		return shuffle(b, n, r, p)
	})
	if p == nil {
		d.node.fault(errors.New("the partitioner is nil"))
	} else {
		d.node.check(partitioner.Check(p))
	}
	return d
}

// Reduce merges all records of a batch to one by f, in order. An empty batch
// gives an empty RDD.
func Reduce[T any](in Stream[T], f func(T, T) T) *DStream[T] {
	return narrow(in, "Reduce", f == nil, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[T] { return rdd.ReduceRDD(r, f) })
}

// Count gives the number of records of each batch, 0 for an empty one.
func Count[T any](in Stream[T]) *DStream[int64] {
	return narrow(in, "Count", false, func(_ *node, r *rdd.RDD[T]) *rdd.RDD[int64] { return rdd.CountRDD(r) })
}
