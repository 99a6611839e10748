package rdd_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// A window that slides over batches of one scenario each is the fold of the batches it
// covers, in first-seen order of the keys, and its kept zeros go with a filter.
func TestSlideWindow(t *testing.T) {
	add, sub := func(a, b int) int { return a + b }, func(a, b int) int { return a - b }
	rapid.Check(t, func(rt *rapid.T) {
		first := genScenario(rt)
		scenarios := []scenario{first}
		for range rapid.IntRange(0, 4).Draw(rt, "more") {
			s := genScenario(rt)
			s.p = first.p
			scenarios = append(scenarios, s)
		}
		p, exec, length := first.p, genExecutor(rt), rapid.IntRange(1, 3).Draw(rt, "length")
		filtered := rapid.Bool().Draw(rt, "filter")
		var keep func(string, int) bool
		if filtered {
			keep = func(k string, _ int) bool { return k != "k1" }
		}
		empty := func() *rdd.RDD[kv] { return rdd.PartitionBy(rdd.Parallelize[kv](nil, 1), p) }
		result := empty().WithExecutor(exec)
		sums := make([]map[string]int, p.Partitions())
		order := make([][]string, p.Partitions())
		for i := range sums {
			sums[i] = map[string]int{}
		}
		for i, s := range scenarios {
			left := empty()
			if i >= length {
				left = scenarios[i-length].rdd()
				for _, part := range scenarios[i-length].laid() {
					for _, r := range part {
						sums[p.Partition(r.Key)][r.Key] -= r.Value
					}
				}
			}
			for target, part := range s.laid() {
				for _, r := range part {
					if _, ok := sums[target][r.Key]; !ok {
						order[target] = append(order[target], r.Key)
					}
					sums[target][r.Key] += r.Value
				}
			}
			// Nothing leaves of what the filter has dropped: see ErrNotInWindow.
			left = rdd.Filter(left, func(r kv) bool { return !filtered || r.Key != "k1" })
			result = rdd.Keep(rdd.SlideWindow(result, left, s.rdd(), add, sub, keep, p)).WithExecutor(exec)
			var want [][]string
			for target, keys := range order {
				var rows []string
				for _, k := range keys {
					if !filtered || k != "k1" {
						rows = append(rows, fmt.Sprint(kv{Key: k, Value: sums[target][k]}))
					}
				}
				want = append(want, rows)
			}
			require.Equal(rt, noNil(want), noNil(eachPart(glom(t, result), text)))
		}
	})
}

func TestSlideWindowWithoutTheKey(t *testing.T) {
	p := partitioner.Hash[string](1)
	add := func(a, b int) int { return a + b }
	rows := func(kvs ...kv) *rdd.RDD[kv] { return rdd.PartitionBy(rdd.Parallelize(kvs, 1), p) }
	gone := rdd.SlideWindow(rows(kv{Key: "a", Value: 1}), rows(kv{Key: "b", Value: 1}), rows(), add, add, nil, p).Named("w")
	_, err := rdd.Collect(context.Background(), gone)
	require.ErrorIs(t, err, rdd.ErrNotInWindow)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, "b", re.Key)
	require.Equal(t, "w", re.Operator)
	// With a new value the key is there again, and what leaves is left out.
	back := rdd.SlideWindow(rows(), rows(kv{Key: "b", Value: 1}), rows(kv{Key: "b", Value: 5}), add, add, nil, p)
	require.Equal(t, []kv{{Key: "b", Value: 5}}, collect(t, back))

	fails := rdd.SlideWindow(rows(kv{Key: "a", Value: 1}), rows(kv{Key: "a", Value: 1}), rows(), add, func(int, int) int { panic("sub") }, nil, p)
	_, err = rdd.Collect(context.Background(), fails)
	require.ErrorContains(t, err, "panic: sub")
	bad := rdd.Parallelize([]kv{}, 0)
	require.ErrorIs(t, rdd.SlideWindow(rows(), rows(), bad, add, add, nil, p).Err(), rdd.ErrPartitions)
	require.ErrorIs(t, rdd.SlideWindow(rows(), bad, rows(), add, add, nil, p).Err(), rdd.ErrPartitions)
}
