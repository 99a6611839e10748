package rdd_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// Actions and sorts against slices.
func TestActionsAreTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 80).Draw(rt, "rows")
		n := rapid.IntRange(0, 12).Draw(rt, "n")
		parts := rapid.IntRange(1, 5).Draw(rt, "partitions")
		type rank struct{ v, at int }
		var ranked []rank
		for i, v := range rows {
			ranked = append(ranked, rank{v, i})
		}
		ctx := t.Context()
		in := rdd.Parallelize(ranked, rapid.IntRange(1, 5).Draw(rt, "sources")).WithExecutor(genExecutor(rt))
		up := func(a, b rank) int { return cmp.Compare(a.v, b.v) }
		down := func(a, b rank) int { return up(b, a) }

		want := slices.SortedStableFunc(slices.Values(ranked), down)
		top, err := rdd.Top(ctx, in, n, up)
		require.NoError(rt, err)
		require.Equal(rt, append([]rank{}, want[:min(n, len(want))]...), append([]rank{}, top...))

		by := glom(t, rdd.SortBy(in, func(r rank) int { return r.v }, parts))
		require.Len(rt, by, parts)
		for _, p := range by {
			require.InDelta(rt, float64(len(rows))/float64(parts), len(p), 1)
		}
		require.Equal(rt, append([]rank{}, slices.SortedStableFunc(slices.Values(ranked), up)...), append([]rank{}, slices.Concat(by...)...))
		require.Equal(rt, append([]rank{}, want...), collect(t, rdd.SortFunc(in, down, parts)))

		values := rdd.Map(in, func(r rank) int { return r.v })
		sum, err := rdd.Fold(ctx, values, 0, func(a, b int) int { return a + b })
		require.NoError(rt, err)
		wantSum, counts, distinct := 0, map[int]int64{}, []int{}
		for _, v := range rows {
			wantSum += v
			if counts[v]++; counts[v] == 1 {
				distinct = append(distinct, v)
			}
		}
		require.Equal(rt, wantSum, sum)
		got, err := rdd.CountByValue(ctx, values)
		require.NoError(rt, err)
		require.Equal(rt, counts, got)
		got, err = rdd.CountByKey(ctx, rdd.KeyBy(in, func(r rank) int { return r.v }))
		require.NoError(rt, err)
		require.Equal(rt, counts, got)
		require.Equal(rt, distinct, collect(t, rdd.Distinct(values, 1)))
		require.ElementsMatch(rt, distinct, collect(t, rdd.Distinct(values, parts)))

		v, ok, err := rdd.First(ctx, values)
		require.NoError(rt, err)
		require.Equal(rt, len(rows) > 0, ok)
		if ok {
			require.Equal(rt, rows[0], v)
		}
	})
}

func TestMoreActionsOfBadDatasets(t *testing.T) {
	bad := rdd.Parallelize(numbers(1), 0)
	ctx := t.Context()
	_, _, err := rdd.First(ctx, bad)
	require.ErrorIs(t, err, rdd.ErrPartitions)
	for _, n := range []int{0, 1} {
		_, err = rdd.Top(ctx, bad, n, cmp.Compare[int])
		require.ErrorIs(t, err, rdd.ErrPartitions)
	}
	_, err = rdd.Fold(ctx, bad, 0, func(a, b int) int { return a + b })
	require.ErrorIs(t, err, rdd.ErrPartitions)
	_, err = rdd.CountByValue(ctx, bad)
	require.ErrorIs(t, err, rdd.ErrPartitions)
	_, err = rdd.CountByKey(ctx, rdd.KeyBy(bad, func(v int) int { return v }))
	require.ErrorIs(t, err, rdd.ErrPartitions)

	in := rdd.Parallelize(numbers(3), 2)
	_, err = rdd.Aggregate(ctx, in, func() int { return 0 }, func(a, b int) int { return a + b }, func(int, int) int { panic("merge") })
	require.ErrorContains(t, err, "panic: merge")
	_, err = rdd.Collect(ctx, rdd.SortFunc(in, func(int, int) int { panic("compare") }, 1))
	require.ErrorContains(t, err, "panic: compare")
}

// Keys that cannot be laid out are faults of their record, also where a fold or a
// group comes before the shuffle.
func TestKeysWithoutAPlace(t *testing.T) {
	in := rdd.Parallelize([]rdd.Pair[float64, int]{{Key: 1}, {Key: math.NaN()}}, 1).Named("in")
	p := partitioner.Hash[float64](2)
	id, add := func(v int) int { return v }, func(a, b int) int { return a + b }
	for name, err := range map[string]error{
		"combine": second(rdd.Collect(t.Context(), rdd.CombineByKey(in, id, add, add, p))),
		"group":   second(rdd.Collect(t.Context(), rdd.GroupByKey(in, p))),
		"join":    second(rdd.Collect(t.Context(), rdd.Join(in, in, p))),
	} {
		var re *rdd.RecordError
		require.ErrorAs(t, err, &re, name)
		require.EqualValues(t, 1, re.Offset, name)
	}
}

func second[T any](_ T, err error) error { return err }

// The edges of these steps keep what a failed record pushed out of the result.
func TestGuardedModeAtEveryEdgeOfKeyedSteps(t *testing.T) {
	const n = 30
	rows, skipped := good(n)
	p := partitioner.Hash[string](3)
	id, add := func(v int) int { return v }, func(a, b int) int { return a + b }
	lessOf := func(a, b kv) int { return cmp.Compare(a.Value, b.Value) }
	type edges = map[string]func(r *rdd.RDD[kv]) any
	for name, edge := range (edges{
		"groupByKey":   func(r *rdd.RDD[kv]) any { return collect(t, rdd.GroupByKey(r, p)) },
		"combineByKey": func(r *rdd.RDD[kv]) any { return collect(t, rdd.CombineByKey(r, id, add, add, p)) },
		"join":         func(r *rdd.RDD[kv]) any { return collect(t, rdd.Join(r, rdd.Parallelize(rows, 1), p)) },
		"subtractByKey": func(r *rdd.RDD[kv]) any {
			return collect(t, rdd.SubtractByKey(rdd.Parallelize([]kv{{Key: "l2"}, {Key: "l1"}}, 1).WithExecutor(r.Executor()), r, p))
		},
		"cogroup": func(r *rdd.RDD[kv]) any {
			return collect(t, rdd.Cogroup(rdd.Parallelize(rows[:4], 1).WithExecutor(r.Executor()), r, p))
		},
		"distinct": func(r *rdd.RDD[kv]) any { return collect(t, rdd.Distinct(rdd.Keys(r), 2)) },
		"sort":     func(r *rdd.RDD[kv]) any { return collect(t, rdd.SortFunc(r, lessOf, 2)) },
		"top": func(r *rdd.RDD[kv]) any {
			v, err := rdd.Top(t.Context(), r, 7, lessOf)
			require.NoError(t, err)
			return v
		},
		"countByKey": func(r *rdd.RDD[kv]) any {
			v, err := rdd.CountByKey(t.Context(), r)
			require.NoError(t, err)
			return v
		},
	}) {
		t.Run(name, func(t *testing.T) {
			e := &retrying{guarded: true, workers: 2, pools: rdd.NewPoolsOf(4)}
			require.ElementsMatch(t, lines(edge(rdd.Parallelize(rows, 2))), lines(edge(leaky(n).WithExecutor(e))))
			require.Len(t, e.skipped, len(skipped))
		})
	}
}

func lines(v any) (out []string) {
	switch v := v.(type) {
	case map[string]int64:
		for k, n := range v {
			out = append(out, fmt.Sprint(k, n))
		}
	default:
		out = append(out, fmt.Sprintf("%v", v))
	}
	return out
}

// A record that fails behind a fold of groups is skipped alone.
func TestAGroupThatFailsIsSkippedAlone(t *testing.T) {
	e := &retrying{guarded: true}
	in := rdd.Parallelize([]kv{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}}, 1).WithExecutor(e)
	joined := rdd.Map(rdd.Join(in, in, partitioner.Hash[string](1)), func(v rdd.Pair[string, rdd.Joined[int, int]]) string {
		if v.Key == "b" {
			panic("b")
		}
		return v.Key
	})
	got, err := rdd.Collect(context.Background(), joined)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, got)
	require.Len(t, e.skipped, 1)
	require.EqualValues(t, 1, e.skipped[0].Offset)
}
