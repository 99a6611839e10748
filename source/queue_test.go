package source_test

import (
	"context"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

func readAll[T any](t require.TestingT, s source.Source[T], p source.Plan) [][]T {
	var out [][]T
	for _, r := range p.Ranges {
		var part []T
		require.NoError(t, s.Read(context.Background(), r, func(_ int64, v T) error { part = append(part, v); return nil }))
		out = append(out, part)
	}
	return out
}

// One batch a plan, split as makeRDD does; nil and empty batches are batches too.
func TestQueueOneBatchAPlan(t *testing.T) {
	ctx := t.Context()
	q := source.NewQueue(3, []int{1, 2, 3, 4}, nil, []int{5})
	require.NoError(t, q.Open(ctx, nil))
	var plans []source.Plan
	for _, want := range [][][]int{{{1}, {2}, {3, 4}}, {nil, nil, nil}, {nil, nil, {5}}, {nil, nil, nil}} {
		p, err := q.Plan(ctx, source.Limits{})
		require.NoError(t, err)
		require.Equal(t, want, readAll(t, q, p))
		plans = append(plans, p)
	}
	q.Push([]int{6})
	// Opened again at any plan it goes on with the batch after that, empty ones
	// included.
	for i, want := range [][][]int{{nil, nil, nil}, {nil, nil, {5}}, {nil, nil, {6}}} {
		require.NoError(t, q.Open(ctx, &plans[i]))
		p, err := q.Plan(ctx, source.Limits{})
		require.NoError(t, err)
		require.Equal(t, want, readAll(t, q, p), "after plan %d", i)
	}
	require.False(t, q.Done(), "never, unless finished")
	q.Finish()
	require.True(t, q.Done())
	q.Push([]int{7})
	require.True(t, q.Done(), "nothing comes after Finish")
}

// Under a limit a batch takes several plans; two batches never share one.
func TestQueueLimits(t *testing.T) {
	ctx := t.Context()
	q := source.NewQueue(2, []int{1, 2, 3, 4, 5}, []int{6})
	require.NoError(t, q.Open(ctx, nil))
	sizes := []int{}
	for range 5 {
		p, err := q.Plan(ctx, source.Limits{Records: 2})
		require.NoError(t, err)
		n := 0
		for _, part := range readAll(t, q, p) {
			n += len(part)
		}
		sizes = append(sizes, n)
	}
	require.Equal(t, []int{2, 2, 1, 1, 0}, sizes)
}

func TestQueueBadUse(t *testing.T) {
	q := source.NewQueue(0, []int{1})
	require.ErrorContains(t, q.Open(t.Context(), nil), "at least 1")
	q = source.NewQueue(1, []int{1})
	_, err := q.Plan(t.Context(), source.Limits{})
	require.ErrorIs(t, err, source.ErrNotOpen)
	err = q.Open(t.Context(), &source.Plan{Ranges: []source.Range{{Partition: "0", Until: 9}}})
	var bad *source.RangeError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "[0, 1)")
}
