package rdd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

// What a dataset was read from goes along with views of it, and with no step on it.
func TestInput(t *testing.T) {
	r := rdd.Parallelize([]int{1, 2}, 2).WithInput("in")
	view, done, err := rdd.Pin(r)
	require.NoError(t, err)
	defer done()
	for _, same := range []*rdd.RDD[int]{r, view, rdd.Keep(r), r.WithExecutor(nil), r.WithDeps()} {
		require.Equal(t, "in", same.Input())
	}
	for _, other := range []*rdd.RDD[int]{
		rdd.Parallelize([]int{1}, 1), rdd.Map(r, func(i int) int { return i }), rdd.Filter(r, func(int) bool { return true }),
		rdd.Union(r), rdd.Repartition(r, 1), rdd.Distinct(r, 1),
	} {
		require.Nil(t, other.Input())
	}
}
