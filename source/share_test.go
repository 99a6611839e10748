package source_test

import (
	"math"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func sum(v []int64) (s int64) {
	for _, n := range v {
		s += n
	}
	return s
}

// report 36: a cap from the first batch on, shared by lag, nobody starved.
func TestReport36Share(t *testing.T) {
	lags := make([]int64, 200)
	for i := range lags {
		lags[i] = 1
	}
	lags[17] = 1_000_000
	for epoch := uint64(1); epoch <= 10; epoch++ {
		got := source.Share(lags, source.Limits{Records: 100, Epoch: epoch})
		require.Equal(t, int64(100), sum(got))
		for i, n := range got {
			lags[i] -= n
		}
	}
	for i, lag := range lags {
		if i != 17 {
			require.Zero(t, lag, "partition %d starved", i)
		}
	}

	// A limit below the number of partitions is no "no limit".
	for i := range lags {
		lags[i] = 1_000_000
	}
	served := map[int]bool{}
	for epoch := uint64(1); epoch <= 200; epoch++ {
		got := source.Share(lags, source.Limits{Records: 1, Epoch: epoch})
		require.Equal(t, int64(1), sum(got))
		for i, n := range got {
			if n > 0 {
				served[i] = true
			}
		}
	}
	require.Len(t, served, 200, "one record each goes round")
}

func TestShareByLag(t *testing.T) {
	require.Equal(t, []int64{30, 0, 5}, source.Share([]int64{30, -4, 5}, source.Limits{}), "no limit: all that waits")
	require.Equal(t, []int64{10, 0, 5}, source.Share([]int64{30, 0, 5}, source.Limits{PerPartition: 10}))
	require.Equal(t, []int64{0, 0}, source.Share([]int64{30, 5}, source.Limits{Records: -1}), "never 0-means-all by accident")
	require.Equal(t, []int64{0, 0}, source.Share([]int64{30, 5}, source.Limits{PerPartition: -1}))
	require.Empty(t, source.Share(nil, source.Limits{Records: 3}))
	got := source.Share([]int64{9000, 900, 90}, source.Limits{Records: 999, Epoch: 1})
	require.InDelta(t, 900, got[0], 3)
	require.InDelta(t, 90, got[1], 3)
	require.InDelta(t, 9, got[2], 3)
	huge := []int64{math.MaxInt64, math.MaxInt64, 5, math.MaxInt64}
	require.Equal(t, int64(math.MaxInt64), sum(source.Share(huge, source.Limits{Records: math.MaxInt64, Epoch: 3})))
	require.Equal(t, int64(1000), sum(source.Share(huge, source.Limits{Records: 1000, Epoch: 3})))
}

func TestShareProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		l := source.Limits{
			Records:      rapid.Int64Range(1, 300).Draw(t, "records"),
			PerPartition: rapid.Int64Range(0, 40).Draw(t, "each"),
			Epoch:        rapid.Uint64().Draw(t, "epoch"),
		}
		lags := make([]int64, n)
		for i := range lags {
			lags[i] = rapid.SampledFrom([]int64{0, 1, 2, 7, 50, 1e6, 1 << 50}).Draw(t, "lag")
		}
		waited := make([]int, n)
		for range 25 {
			l.Epoch++
			got := source.Share(lags, l)
			room := int64(0)
			for i := range lags {
				most := lags[i]
				if l.PerPartition > 0 {
					most = min(most, l.PerPartition)
				}
				room += most
				require.LessOrEqual(t, got[i], most)
				require.GreaterOrEqual(t, got[i], int64(0))
				if got[i] == 0 && lags[i] > 0 {
					waited[i]++
				} else {
					waited[i] = 0
				}
				if l.Records*10 >= int64(n) {
					require.LessOrEqual(t, waited[i], 10, "partition %d starves", i)
				}
				lags[i] += rapid.SampledFrom([]int64{0, 0, 3}).Draw(t, "more") - got[i]
			}
			require.Equal(t, min(l.Records, room), sum(got))
		}
	})
}
