package dstream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
)

// BenchmarkBatch is one batch of 200,000 records over 10,000 keys from a queue
// through MapWithState to an output.
func BenchmarkBatch(b *testing.B) {
	const records, keys = 200_000, 10_000
	batch := make([]string, records)
	for i := range batch {
		batch[i] = fmt.Sprintf("key-%012d", i*7919%keys)
	}
	src := newScript[string](2)
	src.batches = [][]string{batch}
	r := newRig(b, time.Second, func(c ssc) error {
		pairs := dstream.MapPair(dstream.From(c, "in", src), func(s string) (string, int) { return s, 1 })
		s := dstream.MapWithState(pairs, dstream.Function(count).Named("count"))
		dstream.ForeachRDD(s, func(context.Context, dstream.Batch, *dstream.RDD[int]) error { return nil })
		return nil
	})
	r.h.OnOutput(nil)
	r.start().tick(1)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		src.mu.Lock()
		src.batches = [][]string{batch}
		src.mu.Unlock()
		b.StartTimer()
		r.tick(1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}
