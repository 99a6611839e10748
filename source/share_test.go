package source_test

import (
	"math"
	"math/rand/v2"
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
	for epoch := uint64(1); epoch <= 400; epoch++ {
		got := source.Share(lags, source.Limits{Records: 1, Epoch: epoch})
		require.Equal(t, int64(1), sum(got))
		for i, n := range got {
			if n > 0 {
				served[i] = true
			}
		}
	}
	require.Len(t, served, 200, "single records go round")
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

// J4: what a partition gets is by its lag, and only then cut off at its cap; what was cut
// off goes to the others by theirs.
func TestShareByLagAndCap(t *testing.T) {
	share := func(each int64, lags ...int64) []int64 {
		return source.Share(lags, source.Limits{Records: 100, PerPartition: each, Epoch: 1})
	}
	require.Equal(t, []int64{60, 40}, share(60, 900, 100))
	require.Equal(t, []int64{60, 30, 10}, share(60, 800, 150, 50))
	got := share(100, 100_000, 100)
	require.InDelta(t, 99, got[0], 1)
	require.Equal(t, int64(100), sum(got))
}

// report 36, J4: limits that change from epoch to epoch, as backpressure and sizes make
// them, starve nobody: how long one waits depends on the least of them alone.
func TestShareChangingLimits(t *testing.T) {
	for _, c := range []struct {
		limits []int64
		bound  int
	}{
		{[]int64{50, 200}, 10}, // a round whose steps are the limits passes 48 of the 200 by for ever
		{[]int64{20, 399, 21}, 10},
		{[]int64{4, 10}, 2*200/4 + 20},
		{[]int64{1}, 2*200 + 20},
	} {
		lags, last := make([]int64, 200), make([]int, 200)
		for epoch := 1; epoch <= 2000; epoch++ {
			for i := range lags {
				lags[i] = 1
			}
			lags[0] = 1e9
			for i, n := range source.Share(lags, source.Limits{Records: c.limits[epoch%len(c.limits)], Epoch: uint64(epoch)}) {
				if n > 0 {
					last[i] = epoch
				}
				if epoch-last[i] > c.bound {
					require.Failf(t, "starves", "limits %v: partition %d in epoch %d", c.limits, i, epoch)
				}
			}
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		least := rapid.Int64Range(1, int64(n)).Draw(t, "least")
		spread := rapid.SampledFrom([]int64{0, 1, least, 3 * int64(n)}).Draw(t, "spread")
		l := source.Limits{PerPartition: rapid.SampledFrom([]int64{0, 1, 7}).Draw(t, "each"), Epoch: rapid.Uint64().Draw(t, "epoch")}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		bound := 2*n/int(least) + 20
		if least*10 >= int64(n) {
			bound = 9
		}
		lags, waited := make([]int64, n), make([]int, n)
		for range min(3*bound, 400) + 10 {
			l.Epoch++
			l.Records = least + random.Int64N(spread+1)
			for i := range lags { // who waits goes on waiting, among others that come and go
				if waited[i] == 0 {
					lags[i] = []int64{0, 1, 1e6}[random.IntN(3)]
				}
			}
			got := source.Share(lags, l)
			require.Equal(t, got, source.Share(lags, l), "the same inputs give the same plan")
			for i := range lags {
				if lags[i] > 0 && got[i] == 0 {
					if waited[i]++; waited[i] > bound {
						require.Failf(t, "starves", "partition %d of %d with limits from %d", i, n, least)
					}
				} else {
					waited[i] = 0
				}
			}
		}
	})
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
