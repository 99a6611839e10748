package rdd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// In guarded mode a panic is told by the operator whose function it was, of several that
// are fused, and what stands behind it is not taken for it.
func TestWithin(t *testing.T) {
	step := func(r *rdd.RDD[int], name string, bad int) *rdd.RDD[int] {
		return rdd.Map(rdd.Within(r, name), func(v int) int {
			if v == bad {
				panic(name)
			}
			return v
		})
	}
	var told []string
	tk := &rdd.Task{Ctx: t.Context(), Name: "stage", Guard: &rdd.Guard{Skip: func(_ *rdd.Task, row any, err *rdd.RecordError) error {
		require.EqualValues(t, row, err.Offset)
		told = append(told, err.Operator)
		return nil
	}}}
	in := rdd.Parallelize(numbers(6), 1)
	last := rdd.Map(step(step(in, "one", 1), "two", 2), func(v int) int {
		if v == 4 {
			panic("of no operator")
		}
		return v
	})
	var got []int
	require.NoError(t, last.Compute(tk, func(v int) error { got = append(got, v); return nil }))
	require.Equal(t, []int{0, 3, 5}, got)
	require.Equal(t, []string{"one", "two", "two"}, told, "what has no name counts to the operator before it")
	require.Empty(t, tk.Operator)

	laid := rdd.PartitionBy(rdd.Parallelize([]kv{{"a", 1}}, 1), partitioner.Hash[string](2))
	require.True(t, rdd.LiesBy(rdd.Within(laid, "op"), partitioner.Hash[string](2)))
	require.Nil(t, rdd.Within[int](nil, "op"))
	require.NoError(t, rdd.Within(in, "op").Compute(&rdd.Task{Ctx: t.Context()}, func(int) error { return nil }))
}
