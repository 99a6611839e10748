package dstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/codec"
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
		rs := make([]*rdd.RDD[T], len(parents))
		for i, p := range parents {
			r, err := rddOf[T](b, p)
			if err != nil {
				return nil, err
			}
			rs[i] = r
		}
		return rdd.Union(rs...), nil
	})
}

// Transform gives the RDD that f makes of each batch's RDD. f runs
// once a batch, on one goroutine, while the batch is set up; it may run actions on r, but
// must not start anything that outlives it. t is the batch time.
func Transform[T, U any](in Stream[T], f func(t time.Time, r *rdd.RDD[T]) (*rdd.RDD[U], error)) *DStream[U] {
	d := derive(in, "Transform", f == nil, func(n *node, b *batchRun, r *rdd.RDD[T]) (*rdd.RDD[U], error) {
		out, err := call(n.label(), func() (*rdd.RDD[U], error) { return f(b.batch.Time, r) })
		if err == nil && out == nil {
			err = fmt.Errorf("the function of %q gave a nil RDD", n.label())
		}
		if err != nil {
			return nil, err
		}
		return out.WithExecutor(b.run.exec), nil
	})
	if p := nodeOf(in); p != nil {
		p.wantKept = true // f may read it any number of times
	}
	return d
}

// Repartition deals the records out over n partitions, in turn.
func Repartition[T any](in Stream[T], n int) *DStream[T] {
	d := derive(in, "Repartition", false, func(node *node, b *batchRun, r *rdd.RDD[T]) (*rdd.RDD[T], error) {
		return own(b, node, rdd.Repartition(r, n)), nil
	})
	d.node.check(atLeastOne(n, "the number of partitions"))
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

// ReduceByKey merges the values of each key by f, left to right in the order of
// the records; keys come in the order in which they were first seen.
func ReduceByKey[K comparable, V any](in Stream[Pair[K, V]], f func(V, V) V, opts ...OpOption) *DStream[Pair[K, V]] {
	o, faults := opOptions("ReduceByKey", opts, true, true)
	d := derive(in, "ReduceByKey", f == nil, func(n *node, b *batchRun, r *rdd.RDD[Pair[K, V]]) (*rdd.RDD[Pair[K, V]], error) {
		return own(b, n, rdd.ReduceByKey(r, f, partitioner.Hash[K](o.parts(b.run.workers)))), nil
	})
	d.node.name = o.name
	d.node.check(append(faults, keyKind[K]())...)
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

// keyKind refuses key types that have no canonical bytes, when the graph is
// built and not at the first record.
func keyKind[K comparable]() error {
	_, err := codec.KeyFor[K]()
	return err
}
