package rdd_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

func TestOption(t *testing.T) {
	some, none := rdd.Some(3), rdd.None[int]()
	v, ok := some.Get()
	require.Equal(t, 3, v)
	require.True(t, ok)
	require.True(t, some.IsSome())
	require.Equal(t, 3, some.OrElse(9))
	require.False(t, none.IsSome())
	require.Equal(t, 9, none.OrElse(9))
	require.Equal(t, rdd.Pair[string, int]{Key: "a", Value: 1}, rdd.KV("a", 1))
}

func TestParallelizeSlices(t *testing.T) {
	// Spark's slices: partition i is seq[i*n/p : (i+1)*n/p].
	require.Equal(t, [][]int{{0, 1}, {2, 3, 4}, {5, 6}, {7, 8, 9}}, glom(t, rdd.Parallelize(numbers(10), 4)))
	require.Equal(t, [][]int{{}, {0}, {1}}, glom(t, rdd.Parallelize(numbers(2), 3)))
	require.Equal(t, [][]int{{}, {}}, glom(t, rdd.Parallelize[int](nil, 2)))
}

func TestNarrowSteps(t *testing.T) {
	in := rdd.Parallelize(numbers(5), 2)
	twice := func(v int) []int { return []int{v, v} }
	for name, c := range map[string]struct {
		r    *rdd.RDD[int]
		want []int
	}{
		"map":        {rdd.Map(in, func(v int) int { return v * 10 }), []int{0, 10, 20, 30, 40}},
		"mapErr":     {rdd.MapErr(in, func(v int) (int, error) { return v + 1, nil }), []int{1, 2, 3, 4, 5}},
		"filter":     {rdd.Filter(in, func(v int) bool { return v%2 == 0 }), []int{0, 2, 4}},
		"flatMap":    {rdd.FlatMap(rdd.Filter(in, func(v int) bool { return v > 2 }), twice), []int{3, 3, 4, 4}},
		"flatMapErr": {rdd.FlatMapErr(in, func(v int) ([]int, error) { return twice(v)[:v%2], nil }), []int{1, 3}},
		"flatMapSeq": {rdd.FlatMapSeq(in, func(v int) iter.Seq[int] { return slices.Values(twice(v)[:v%2]) }), []int{1, 3}},
		"flatMapEmit": {rdd.FlatMapEmit(in, func(v int, emit func(int)) error {
			for range v {
				emit(v)
			}
			return nil
		}), []int{1, 2, 2, 3, 3, 3, 4, 4, 4, 4}},
		"union": {rdd.Union(in, rdd.Parallelize([]int{7, 8}, 1)), []int{0, 1, 2, 3, 4, 7, 8}},
		"mapPartitions": {rdd.MapPartitions(in, func(p int, in iter.Seq[int]) iter.Seq[int] {
			return func(yield func(int) bool) {
				sum := 0
				for v := range in {
					sum += v
				}
				yield(100*p + sum)
			}
		}), []int{1, 109}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, collect(t, c.r)) })
	}
}

func TestMapPartitionsMayStopEarlyAndLook(t *testing.T) {
	in := rdd.Parallelize(numbers(10), 2)
	first := rdd.MapPartitions(in, func(_ int, in iter.Seq[int]) iter.Seq[int] {
		return func(yield func(int) bool) {
			for v := range in {
				yield(v)
				return
			}
		}
	})
	require.Equal(t, []int{0, 5}, collect(t, first))

	boom := errors.New("boom")
	bad := rdd.MapErr(in, func(v int) (int, error) {
		if v == 7 {
			return 0, boom
		}
		return v, nil
	})
	_, err := rdd.Collect(t.Context(), rdd.MapPartitions(bad, func(_ int, in iter.Seq[int]) iter.Seq[int] { return in }))
	require.ErrorIs(t, err, boom, "an error above must not be taken for the end of the partition")
}

func TestPartitionerIsKeptWhereKeysStay(t *testing.T) {
	in := rdd.Parallelize([]kv{{Key: "a", Value: 1}}, 1)
	p := partitioner.Hash[string](3)
	by := rdd.PartitionBy(in, p)
	require.Nil(t, rdd.PartitionerOf(in))
	require.True(t, p.Equal(rdd.PartitionerOf(by)))
	require.True(t, p.Equal(rdd.PartitionerOf(rdd.Filter(by, func(kv) bool { return true }))))
	require.True(t, p.Equal(rdd.PartitionerOf(rdd.MapValues(by, func(v int) int { return v }))))
	require.True(t, p.Equal(rdd.PartitionerOf(rdd.Keep(by))))
	require.True(t, p.Equal(rdd.PartitionerOf(rdd.ReduceByKey(in, func(a, b int) int { return a + b }, p))))
	require.Nil(t, rdd.PartitionerOf(rdd.Map(by, func(v kv) kv { return v })))
	require.Nil(t, rdd.PartitionerOf(rdd.Union(by, by)))

	require.Same(t, by, rdd.PartitionBy(by, partitioner.Hash[string](3)), "laid out so already")
	require.NotSame(t, by, rdd.PartitionBy(by, partitioner.Hash[string](4)))
}

func TestUnionKeepsEachSourcesOwnPartitionNumber(t *testing.T) {
	own := func(name string, n int) *rdd.RDD[string] {
		return rdd.New(n, func(t *rdd.Task, emit func(string) error) error {
			return emit(name + string(rune('0'+t.Partition)))
		})
	}
	u := rdd.Union(own("a", 2), rdd.Union(own("b", 1), own("c", 2)))
	require.Equal(t, 5, u.NumPartitions())
	require.Equal(t, []string{"a0", "a1", "b0", "c0", "c1"}, collect(t, u))
}

func TestExecutorIsInherited(t *testing.T) {
	e := &retrying{}
	in := rdd.Parallelize([]kv{{Key: "a", Value: 1}}, 1).WithExecutor(e)
	r := rdd.Keep(rdd.Repartition(rdd.ReduceByKey(rdd.Map(in, func(v kv) kv { return v }),
		func(a, b int) int { return a + b }, partitioner.Hash[string](2)), 2))
	u := rdd.Union(rdd.Parallelize([]kv{}, 1), r)
	require.Same(t, e, u.Executor())
	require.Same(t, e, rdd.CountRDD(u).Executor())
	collect(t, u)
	require.Equal(t, map[string]int{"reduceByKey": 1, "repartition": 2, "keep repartition": 2, "collect": 3}, e.tries)
}

// What builders outside of the package (state versions) say of their datasets.
func TestDatasetsMadeElsewhere(t *testing.T) {
	ran := 0
	stage := rdd.NewStage(rdd.StageConfig{Name: "load", Tasks: 1, Run: func(*rdd.Task) error { ran++; return nil }})
	life := rdd.NewLife("version 7", nil)
	p := partitioner.Hash[string](2)
	r := rdd.New(2, func(t *rdd.Task, emit func(kv) error) error { return emit(kv{Key: "a", Value: t.Partition}) }).
		WithDeps(stage).WithPartitioner(p).WithResource(life)
	require.Equal(t, any(p), r.Partitioner())
	require.Same(t, r, rdd.PartitionBy(r, partitioner.Hash[string](2)))
	child := rdd.MapValues(r, func(v int) int { return v + 1 })
	require.Equal(t, []kv{{Key: "a", Value: 1}, {Key: "a", Value: 2}}, collect(t, child))
	collect(t, child)
	require.Equal(t, 1, ran)
	life.Close()
	isReleasedResource(t, child)
}

func isReleasedResource[T any](t *testing.T, r *rdd.RDD[T]) {
	t.Helper()
	_, err := rdd.Collect(t.Context(), r)
	require.ErrorIs(t, err, rdd.ErrReleased)
	require.ErrorContains(t, err, "version 7")
}
