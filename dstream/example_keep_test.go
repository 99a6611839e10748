package dstream_test

import (
	"context"
	"fmt"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// sliceAll gives the records of a stream's batches after three ticks of a second.
func sliceAll(job func(ssc *dstream.StreamingContext) *dstream.DStream[int]) (out []string) {
	var in *dstream.DStream[int]
	r := newRig(exampleTB{end: new([]func())}, time.Second, func(ssc *dstream.StreamingContext) error {
		in = job(ssc)
		dstream.Print(dstream.Count(in), 1)
		return nil
	}).start().tick(3)
	defer func() { _ = r.ssc.Stop(context.Background()) }()
	for i := range 3 {
		at := zero.Add(time.Duration(i+1) * time.Second)
		batches, err := dstream.Slice(in, at, at)
		if err != nil {
			out = append(out, "forgotten")
			continue
		}
		records, _ := rdd.Collect(context.Background(), batches[0].RDD)
		out = append(out, fmt.Sprint(records))
		batches[0].RDD.Release()
	}
	return out
}

// The records of the newest batch are kept, for Slice. Without Cache those of this
// stream, which is read once, would be nowhere.
func ExampleDStream_Cache() {
	fmt.Println(sliceAll(func(ssc *dstream.StreamingContext) *dstream.DStream[int] {
		return dstream.QueueStream(ssc, []int{1}, []int{2, 3}, []int{4}).Cache()
	}))
	// Output: [forgotten forgotten [4]]
}

// Those of two intervals.
func ExampleDStream_Remember() {
	fmt.Println(sliceAll(func(ssc *dstream.StreamingContext) *dstream.DStream[int] {
		return dstream.QueueStream(ssc, []int{1}, []int{2, 3}, []int{4}).Remember(2 * time.Second)
	}))
	// Output: [forgotten [2 3] [4]]
}

// The changes of each batch are written with it; beside that all state is written as a
// whole every minute.
func ExampleMapWithStateDStream_Checkpoint() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		totals := dstream.MapWithState(prices(ssc), dstream.Function(
			func(item string, price dstream.Option[int], total *dstream.State[int]) dstream.Pair[string, int] {
				total.Update(total.OrElse(0) + price.OrElse(0))
				return dstream.KV(item, total.Get())
			}).Named("totals"))
		totals.Checkpoint(time.Minute)
		dstream.Foreach(totals, func(_ context.Context, b dstream.Batch, p dstream.Pair[string, int]) error {
			_, err := fmt.Println(b.Epoch, p.Key, p.Value)
			return err
		})
		return nil
	}, dstream.WithCheckpointStore(vfs.NewObjects()), dstream.WithParallelism(1))
	// Unordered output:
	// 1 apple 3
	// 1 pear 5
	// 1 apple 7
	// 2 pear 11
}

// A dataset for the body of a Transform.
func ExampleParallelize() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		extra := dstream.Parallelize(ssc, []dstream.Pair[string, int]{dstream.KV("plum", 9)}, dstream.NumPartitions(1))
		more := dstream.Transform(prices(ssc), func(_ time.Time, r *dstream.RDD[dstream.Pair[string, int]]) (*dstream.RDD[dstream.Pair[string, int]], error) {
			return rdd.Union(r, extra), nil
		})
		dstream.Foreach(more, func(_ context.Context, b dstream.Batch, p dstream.Pair[string, int]) error {
			_, err := fmt.Println(b.Epoch, p.Key, p.Value)
			return err
		})
		return nil
	})
	// Output:
	// 1 apple 3
	// 1 pear 5
	// 1 apple 4
	// 1 plum 9
	// 2 pear 6
	// 2 plum 9
}

// What a batch reads, of any source.
func ExampleSourceRanges() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.ForeachRDD(prices(ssc), func(_ context.Context, b dstream.Batch, r *dstream.RDD[dstream.Pair[string, int]]) error {
			ranges, err := dstream.SourceRanges(r)
			fmt.Println(b.Epoch, ranges[0].From, ranges[0].Until)
			return err
		})
		return nil
	})
	// Output:
	// 1 0 3
	// 2 3 4
}
