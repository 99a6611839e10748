package rdd_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

func TestActions(t *testing.T) {
	ctx := t.Context()
	in, none := rdd.Parallelize(numbers(10), 3), rdd.Parallelize[int](nil, 2)
	concat := func(a, b string) string { return a + b }
	texts := rdd.Map(in, func(v int) string { return string(rune('a' + v)) })

	n, err := rdd.Count(ctx, in)
	require.NoError(t, err)
	require.EqualValues(t, 10, n)

	s, ok, err := rdd.Reduce(ctx, texts, concat)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "abcdefghij", s, "in the order of the partitions")
	_, ok, err = rdd.Reduce(ctx, none, func(a, b int) int { return a })
	require.NoError(t, err)
	require.False(t, ok)

	require.Equal(t, []int64{10}, collect(t, rdd.CountRDD(in)))
	require.Equal(t, []int64{0}, collect(t, rdd.CountRDD(none))) // F13
	require.Equal(t, []string{"abcdefghij"}, collect(t, rdd.ReduceRDD(texts, concat)))
	require.Empty(t, collect(t, rdd.ReduceRDD(none, func(a, b int) int { return a })))
	require.Equal(t, []int{}, collect(t, none))

	var mu sync.Mutex
	sums := map[int]int{}
	require.NoError(t, rdd.ForeachPartition(ctx, in, func(_ context.Context, p int, in iter.Seq[int]) error {
		mu.Lock()
		defer mu.Unlock()
		for v := range in {
			sums[p] += v
		}
		return nil
	}))
	require.Equal(t, map[int]int{0: 3, 1: 12, 2: 30}, sums)

	boom := errors.New("boom")
	require.ErrorIs(t, rdd.ForeachPartition(ctx, in, func(context.Context, int, iter.Seq[int]) error { return boom }), boom)
	bad := rdd.MapErr(in, func(v int) (int, error) { return v, boom })
	require.ErrorIs(t, rdd.ForeachPartition(ctx, bad, func(_ context.Context, _ int, in iter.Seq[int]) error {
		for range in {
		}
		return nil
	}), boom)
}

func TestTakeComputesOnlyWhatItNeeds(t *testing.T) {
	for _, c := range []struct{ n, partitions int }{{0, 0}, {-1, 0}, {1, 1}, {2, 1}, {3, 5}, {10, 5}, {11, 8}, {99, 8}} {
		var mu sync.Mutex
		seen := map[int]int{}
		r := rdd.New(8, func(t *rdd.Task, emit func(int) error) error {
			mu.Lock()
			seen[t.Partition]++
			mu.Unlock()
			for i := range 2 {
				if err := emit(2*t.Partition + i); err != nil {
					return err
				}
			}
			return nil
		})
		got, err := rdd.Take(t.Context(), r, c.n)
		require.NoError(t, err)
		require.Equal(t, numbers(16)[:max(0, min(16, c.n))], append([]int{}, got...))
		require.Len(t, seen, c.partitions, "take %d", c.n)
		for p, n := range seen {
			require.Equal(t, 1, n, "partition %d", p)
		}
	}
}

func TestTakeStopsTheSource(t *testing.T) {
	pushed := 0
	r := rdd.Map(rdd.Parallelize(numbers(1000), 1), func(v int) int { pushed++; return v })
	_, err := rdd.Take(t.Context(), r, 3)
	require.NoError(t, err)
	require.Equal(t, 3, pushed)
}

func TestWrongConstruction(t *testing.T) {
	in := rdd.Parallelize(numbers(3), 1)
	pairs := rdd.Map(in, func(v int) rdd.Pair[int, int] { return rdd.KV(v, v) })
	chans := rdd.Map(in, func(int) rdd.Pair[chan int, int] { return rdd.Pair[chan int, int]{} })
	for name, c := range map[string]struct {
		err error
		is  error
	}{
		"new":             {rdd.New(0, func(*rdd.Task, func(int) error) error { return nil }).Err(), rdd.ErrPartitions},
		"new nil":         {rdd.New[int](1, nil).Err(), nil},
		"parallelize":     {rdd.Parallelize(numbers(1), -1).Err(), rdd.ErrPartitions},
		"repartition":     {rdd.Repartition(in, 0).Err(), rdd.ErrPartitions},
		"inherited":       {rdd.Keep(rdd.Map(rdd.Repartition(in, 0), func(v int) int { return v })).Err(), rdd.ErrPartitions},
		"union":           {rdd.Union[int]().Err(), nil},
		"union nil":       {rdd.Union(in, nil).Err(), nil},
		"union bad":       {rdd.Union(in, rdd.Repartition(in, 0)).Err(), rdd.ErrPartitions},
		"map nil":         {rdd.Map[int, int](nil, nil).Err(), nil},
		"filter nil":      {rdd.Filter[int](nil, nil).Err(), nil},
		"keep nil":        {rdd.Keep[int](nil).Err(), nil},
		"count nil":       {rdd.CountRDD[int](nil).Err(), nil},
		"repartition nil": {rdd.Repartition[int](nil, 1).Err(), nil},
		"shuffle nil":     {rdd.Shuffle[int, int](nil, partitioner.Hash[int](1)).Err(), nil},
		"no partitioner":  {rdd.PartitionBy(pairs, nil).Err(), rdd.ErrNoPartitioner},
		"hash of 0":       {rdd.PartitionBy(pairs, partitioner.Hash[int](0)).Err(), nil},
		"key kind":        {rdd.PartitionBy(chans, partitioner.Hash[chan int](2)).Err(), nil},
		"reduce hash 0":   {rdd.ReduceByKey(pairs, func(a, b int) int { return a }, partitioner.Hash[int](0)).Err(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, c.err)
			if c.is != nil {
				require.ErrorIs(t, c.err, c.is)
			}
		})
	}

	bad := rdd.Parallelize(numbers(1), 0)
	_, err := rdd.Collect(t.Context(), bad)
	require.ErrorIs(t, err, rdd.ErrPartitions)
	_, err = rdd.Count(t.Context(), bad)
	require.ErrorIs(t, err, rdd.ErrPartitions)
	_, err = rdd.Take(t.Context(), bad, 1)
	require.ErrorIs(t, err, rdd.ErrPartitions)
	_, _, err = rdd.Reduce(t.Context(), bad, func(a, b int) int { return a })
	require.ErrorIs(t, err, rdd.ErrPartitions)
	require.ErrorIs(t, rdd.ForeachPartition(t.Context(), bad, nil), rdd.ErrPartitions)
	require.ErrorIs(t, bad.Materialize(t.Context()), rdd.ErrPartitions)
	require.ErrorIs(t, bad.Compute(&rdd.Task{}, nil), rdd.ErrPartitions)
	require.Error(t, in.ComputePartition(&rdd.Task{}, 1, nil))

	s := rdd.Shuffle(pairs, partitioner.Hash[int](0))
	require.Error(t, rdd.Materialize(t.Context(), rdd.Local(1, nil), s.Stage()))
	require.Error(t, s.Retain())
	require.Error(t, s.Read(&rdd.Task{}, 0, nil))
	require.Nil(t, s.Blocks(0))
	require.Zero(t, s.NumPartitions())
	s.Release()
}
