package rdd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

func benchRecords(keys, n int) []rdd.Pair[string, int64] {
	rng := rand.New(rand.NewPCG(1, 2))
	recs := make([]rdd.Pair[string, int64], n)
	for i := range recs {
		recs[i] = rdd.KV(fmt.Sprintf("key-%012d", rng.IntN(keys)), int64(1))
	}
	return recs
}

// BenchmarkShuffle is source slices → PartitionBy → blocks given back, per record.
func BenchmarkShuffle(b *testing.B) {
	for _, keys := range []int{10_000, 1_000_000} {
		recs := benchRecords(keys, 200_000)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("keys=%d/workers=%d", keys, workers), func(b *testing.B) {
				pools := &rdd.Pools{}
				exec := rdd.Local(workers, pools)
				in := rdd.Parallelize(recs, 4)
				b.ReportAllocs()
				for b.Loop() {
					s := rdd.Shuffle(in, partitioner.Hash[string](4))
					if err := rdd.Materialize(context.Background(), exec, s.Stage()); err != nil {
						b.Fatal(err)
					}
					s.Release()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
			})
		}
	}
}

// BenchmarkChain is the cost of a fused narrow chain.
func BenchmarkChain(b *testing.B) {
	recs := benchRecords(10_000, 200_000)
	r := rdd.Map(rdd.Filter(rdd.Map(rdd.Parallelize(recs, 1),
		func(kv rdd.Pair[string, int64]) int64 { return kv.Value }),
		func(v int64) bool { return v > 0 }),
		func(v int64) int64 { return v + 1 })
	b.ReportAllocs()
	for b.Loop() {
		var sum int64
		if err := r.Compute(&rdd.Task{Ctx: context.Background()}, func(v int64) error { sum += v; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}
