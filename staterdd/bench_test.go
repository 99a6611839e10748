package staterdd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/rdd"
)

// BenchmarkUpdatePath compares the whole update path with a loop over a bare map on the same
// records, interleaved, and reports the ratio of the medians.
func BenchmarkUpdatePath(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("%dk", n/1000), func(b *testing.B) {
			const perBatch = 200_000
			clk := clock.System()
			op, err := NewOperator(Function(func(k string, v rdd.Option[int64], s *State[int64]) rdd.Pair[string, int64] {
				n, _ := v.Get()
				sum := s.OrElse(0) + n
				s.Update(sum)
				return rdd.KV(k, sum)
			}).NumPartitions(1), Options{})
			require.NoError(b, err)
			p, err := op.NewPartition()
			require.NoError(b, err)
			rng := rand.New(rand.NewPCG(1, 2))
			key := func(i int) string { return fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15) }
			bare := map[string]int64{}
			now := time.Unix(0, 0)
			batch := func(keys []string, values []int64) Record[string, int64, rdd.Pair[string, int64]] {
				now = now.Add(time.Second)
				require.NoError(b, p.Begin(Batch{Time: now}))
				require.NoError(b, p.Update(keys, values))
				require.NoError(b, p.Expire())
				return p.Seal()
			}
			all, ones := make([]string, n), make([]int64, max(n, perBatch))
			for i, j := range rng.Perm(n) {
				all[i], ones[i] = key(j), 1
			}
			p.Recycle(batch(all, ones[:n]))
			for _, k := range all {
				bare[strings.Clone(k)] = 1
			}
			keys := make([]string, perBatch)
			out := make([]rdd.Pair[string, int64], 0, perBatch)
			var ours, theirs []float64
			for range max(b.N, 7) {
				for i := range keys {
					keys[i] = strings.Clone(all[rng.IntN(n)])
				}
				t0 := clk.Now()
				out = out[:0]
				for i, k := range keys {
					s := bare[k] + ones[i]
					bare[k] = s
					out = append(out, rdd.KV(k, s))
				}
				theirs = append(theirs, float64(clk.Now().Sub(t0).Nanoseconds())/perBatch)
				t0 = clk.Now()
				r := batch(keys, ones[:perBatch])
				ours = append(ours, float64(clk.Now().Sub(t0).Nanoseconds())/perBatch)
				require.Equal(b, out[perBatch-1], r.Mapped[len(r.Mapped)-1][len(r.Mapped[len(r.Mapped)-1])-1])
				p.Recycle(r)
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			o, t := ours[len(ours)/2], theirs[len(theirs)/2]
			b.ReportMetric(o, "ns/rec")
			b.ReportMetric(t, "bare-ns/rec")
			b.ReportMetric(o/t, "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
