package rdd

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
)

// A function or dataset that is nil is told by name, before a record is read.
func TestNilIsTold(t *testing.T) {
	ctx := context.Background()
	read := 0
	r := New(1, func(_ *Task, emit func(int) error) error { read++; return emit(1) })
	kvs := KeyBy(r, func(i int) int { return i })
	by := partitioner.Hash[int](2)
	count := func(n int64, err error) error { return err }
	var none *RDD[int]
	for want, err := range map[string]error{
		"map: the function is nil":           count(Count(ctx, Map[int, int](r, nil))),
		"mapErr: the function is nil":        count(Count(ctx, MapErr[int, int](r, nil))),
		"filter: the function is nil":        count(Count(ctx, Filter(r, nil))),
		"flatMap: the function is nil":       count(Count(ctx, FlatMap[int, int](r, nil))),
		"flatMapErr: the function is nil":    count(Count(ctx, FlatMapErr[int, int](r, nil))),
		"flatMapSeq: the function is nil":    count(Count(ctx, FlatMapSeq[int, int](r, nil))),
		"flatMapEmit: the function is nil":   count(Count(ctx, FlatMapEmit[int, int](r, nil))),
		"mapValues: the function is nil":     count(Count(ctx, MapValues[int, int, int](kvs, nil))),
		"keyBy: the function is nil":         count(Count(ctx, KeyBy[int, int](r, nil))),
		"mapPartitions: the function is nil": count(Count(ctx, MapPartitions[int, int](r, nil))),
		"reduceByKey: the function is nil":   count(Count(ctx, ReduceByKey(kvs, nil, by))),
		"combineByKey: the function is nil":  count(Count(ctx, CombineByKey[int, int, int](kvs, nil, nil, nil, by))),
		"sortBy: the function is nil":        count(Count(ctx, SortBy[int, int](r, nil, 1))),
		"sortFunc: the function is nil":      count(Count(ctx, SortFunc(r, nil, 1))),
		"reduce: the function is nil":        count(Count(ctx, ReduceRDD(r, nil))),
		"foreachPartition: the function is nil": ForeachPartition(ctx, r,
			(func(context.Context, int, iter.Seq[int]) error)(nil)),
		"map of a nil rdd":                  count(Count(ctx, Map(none, func(i int) int { return i }))),
		"repartition of a nil rdd":          count(Count(ctx, Repartition(none, 1))),
		"union with a nil rdd":              count(Count(ctx, Union(r, none))),
		"union of no datasets":              count(Count(ctx, Union[int]())),
		"repartition to 0":                  count(Count(ctx, Repartition(r, 0))),
		"sortBy to -1":                      count(Count(ctx, SortBy(r, func(i int) int { return i }, -1))),
		"distinct: partitioner: hash(0)":    count(Count(ctx, Distinct(r, 0))),
		"a partitioner is needed":           count(Count(ctx, Join(kvs, kvs, nil))),
		"join of a nil rdd":                 count(Count(ctx, Join(kvs, (*RDD[Pair[int, int]])(nil), by))),
		"subtractByKey: a partitioner":      count(Count(ctx, SubtractByKey(kvs, kvs, nil))),
		"cogroup: partitioner: hash(0)":     count(Count(ctx, Cogroup(kvs, kvs, partitioner.Hash[int](0)))),
		"parallelize of -2 partitions: the": count(Count(ctx, Parallelize([]int{1}, -2))),
	} {
		require.ErrorContains(t, err, want)
	}
	_, top := Top(ctx, r, 1, nil)
	require.ErrorContains(t, top, "top: the function is nil")
	_, _, reduced := Reduce(ctx, r, nil)
	require.ErrorContains(t, reduced, "reduce: the function is nil")
	_, folded := Fold(ctx, r, 0, nil)
	require.ErrorContains(t, folded, "fold: the function is nil")
	require.Zero(t, read)

	_, collected := Collect(ctx, none)
	_, taken := Take(ctx, none, 1)
	_, _, first := First(ctx, none)
	_, best := Top(ctx, none, 0, cmp.Compare[int])
	_, _, pinned := Pin(none)
	for _, err := range []error{collected, taken, first, best, pinned} {
		require.ErrorIs(t, err, errNil)
	}
	got, err := Take(ctx, r, -1)
	require.NoError(t, err)
	require.Empty(t, got)
}

// The sequence of a dataset is its records in order, and its failure.
func TestPairs(t *testing.T) {
	var got []string
	for k, v := range Pairs(Parallelize([]Pair[string, int]{{"b", 2}, {"a", 1}, {"b", 3}}, 2)) {
		if got = append(got, fmt.Sprint(k, v)); len(got) == 2 {
			break
		}
	}
	require.Equal(t, []string{"b2", "a1"}, got)
	require.PanicsWithError(t, errNil.Error(), func() {
		for range Pairs[string, int](nil) {
			t.Error("it has no records")
		}
	})
}
