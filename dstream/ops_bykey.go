package dstream

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// ReduceByKey merges the values of each key by f, left to right in the order of
// the records; keys come in the order in which they were first seen.
func ReduceByKey[K comparable, V any](in Stream[Pair[K, V]], f func(V, V) V, opts ...OpOption) *DStream[Pair[K, V]] {
	return deriveByKey(in, "ReduceByKey", f == nil, opts, func(b *batchRun, n *node, r *rdd.RDD[Pair[K, V]], p Partitioner[K]) *rdd.RDD[Pair[K, V]] {
		return moved(b, n, r, p, rdd.ReduceByKey(r, f, p))
	})
}

// CombineByKey folds the values of each key to a C: create makes one of a key's
// first value, merge adds a value, combine adds two of them, the earlier one first.
// Each partition is folded before it is moved. merge and combine may append to a
// slice that they are given; they must not change their arguments otherwise. Keys
// come in the order in which they were first seen.
func CombineByKey[K comparable, V, C any](in Stream[Pair[K, V]], create func(V) C, merge func(C, V) C, combine func(C, C) C, opts ...OpOption) *DStream[Pair[K, C]] {
	isNil := create == nil || merge == nil || combine == nil
	return deriveByKey(in, "CombineByKey", isNil, opts, func(b *batchRun, n *node, r *rdd.RDD[Pair[K, V]], p Partitioner[K]) *rdd.RDD[Pair[K, C]] {
		return moved(b, n, r, p, rdd.CombineByKey(r, create, merge, combine, p))
	})
}

// GroupByKey gathers the values of each key, in the order of the records; keys
// come in the order in which they were first seen. Where a fold will do,
// ReduceByKey moves less.
func GroupByKey[K comparable, V any](in Stream[Pair[K, V]], opts ...OpOption) *DStream[Pair[K, []V]] {
	return deriveByKey(in, "GroupByKey", false, opts, func(b *batchRun, n *node, r *rdd.RDD[Pair[K, V]], p Partitioner[K]) *rdd.RDD[Pair[K, []V]] {
		return moved(b, n, r, p, rdd.GroupByKey(r, p))
	})
}

// CountByValue gives how often each record is in the batch.
func CountByValue[T comparable](in Stream[T], opts ...OpOption) *DStream[Pair[T, int64]] {
	kind := "CountByValue"
	p := nodeOf(in)
	n := newNode(nil, kind, p)
	by, faults := byKey[T](n, kind, opts)
	n.check(faults...)
	return bind(n, func(b *batchRun) (*rdd.RDD[Pair[T, int64]], error) {
		r, err := rddOf[T](b, p)
		if err != nil {
			return nil, err
		}
		return own(b, n, countValues(rdd.Within(r, n.label()), by(b))).Named(n.label()), nil
	})
}

func countValues[T comparable](r *rdd.RDD[T], p Partitioner[T]) *rdd.RDD[Pair[T, int64]] {
	return rdd.ReduceByKey(rdd.Map(r, func(v T) Pair[T, int64] { return Pair[T, int64]{Key: v, Value: 1} }), addCounts, p)
}

func addCounts(a, b int64) int64 { return a + b }

// byKey reads the options of an operator that lays records out by key, names the
// node by them, and gives the partitioner of a run and what is wrong.
func byKey[K comparable](n *node, kind string, opts []OpOption) (by func(b *batchRun) Partitioner[K], faults []error) {
	by, faults = byOptions[K](n, kind, opts)
	return by, append(faults, keyKind[K]())
}

// byOptions is byKey without a look at the type of the keys.
func byOptions[K comparable](n *node, kind string, opts []OpOption) (by func(b *batchRun) Partitioner[K], faults []error) {
	o, faults := readOptions(kind, opts, true, true)
	n.name = o.name
	given, ok := o.partitioner.(Partitioner[K])
	switch {
	case !o.partitioned:
	case o.partitioner == nil:
		faults = append(faults, errors.New("the partitioner is nil"))
	case !ok:
		faults = append(faults, fmt.Errorf("the partitioner %v is not for keys of type %v", o.partitioner, reflect.TypeFor[K]()))
	default:
		faults = append(faults, partitioner.Check(given))
	}
	return func(b *batchRun) Partitioner[K] {
		if o.partitioned {
			return given
		}
		return partitioner.Hash[K](o.parts(b.parts))
	}, faults
}

// deriveByKey is derive for operators that lay records out by key.
func deriveByKey[K comparable, V, U any](in Stream[Pair[K, V]], kind string, isNil bool, opts []OpOption, f func(b *batchRun, n *node, r *rdd.RDD[Pair[K, V]], p Partitioner[K]) *rdd.RDD[U]) *DStream[U] {
	var by func(b *batchRun) Partitioner[K]
	d := derive(in, kind, isNil, func(n *node, b *batchRun, r *rdd.RDD[Pair[K, V]]) (*rdd.RDD[U], error) {
		return f(b, n, rdd.Within(r, n.label()), by(b)).Named(n.label()), nil
	})
	by, faults := byKey[K](d.node, kind, opts)
	d.node.check(faults...)
	return d
}

// moved notes that the batch owns what out has moved of r; what lay by p was not.
func moved[K comparable, V, U any](b *batchRun, n *node, r *rdd.RDD[Pair[K, V]], p Partitioner[K], out *rdd.RDD[U]) *rdd.RDD[U] {
	if rdd.LiesBy(r, p) {
		return out
	}
	return own(b, n, out)
}

// keyKind refuses key types that have no canonical bytes, when the graph is
// built and not at the first record.
func keyKind[K comparable]() error {
	_, err := codec.KeyFor[K]()
	return err
}
