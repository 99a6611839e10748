package dstream_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// runToEnd runs a job of the examples to the end of its sources.
func runToEnd(job dstream.Job, opts ...dstream.ContextOption) {
	opts = append(opts, dstream.WithStopWhenDone(), dstream.WithParallelism(2))
	if err := dstream.Run(context.Background(), 5*time.Millisecond, job, opts...); err != nil {
		fmt.Println(err)
	}
}

// A job over a reader: the run ends with it.
func ExampleRun() {
	job := func(ssc *dstream.StreamingContext) error {
		text := dstream.ReaderStream(ssc, "text", strings.NewReader("to be or\nnot to be\n"))
		words := dstream.FlatMap(text, strings.Fields)
		dstream.Foreach(words, func(_ context.Context, _ dstream.Batch, word string) error {
			fmt.Println(word)
			return nil
		})
		return nil
	}
	if err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// to
	// be
	// or
	// not
	// to
	// be
}

// Print writes to the writer of WithOutput, or else to the standard output.
func ExamplePrint() {
	var text strings.Builder
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.Print(prices(ssc), 2)
		return nil
	}, dstream.WithOutput(&text))
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "Time: ") {
			fmt.Print(line)
		}
	}
	// Output:
	// -------------------------------------------
	// -------------------------------------------
	// (apple,3)
	// (pear,5)
	// ...
	//
	// -------------------------------------------
	// -------------------------------------------
	// (pear,6)
}

func ExampleForeach() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.Foreach(prices(ssc), func(_ context.Context, b dstream.Batch, p dstream.Pair[string, int]) error {
			_, err := fmt.Println(b.Epoch, p.Key, p.Value)
			return err
		})
		return nil
	})
	// Output:
	// 1 apple 3
	// 1 pear 5
	// 1 apple 4
	// 2 pear 6
}

func ExampleForeachRDD() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.ForeachRDD(prices(ssc), func(ctx context.Context, b dstream.Batch, r *dstream.RDD[dstream.Pair[string, int]]) error {
			dearest, err := rdd.Top(ctx, r, 1, func(a, b dstream.Pair[string, int]) int { return a.Value - b.Value })
			fmt.Println(b.Epoch, dearest)
			return err
		})
		return nil
	})
	// Output:
	// 1 [{pear 5}]
	// 2 [{pear 6}]
}

// Each epoch is in the files once, however often the run is killed and started again.
func ExampleOutput() {
	store := vfs.NewObjects() // or vfs.NewDir(vfs.Disk(), …)
	files := sink.NewFiles("prices", store)
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.Output(prices(ssc), "out", sink.Lines(files, func(dst []byte, p dstream.Pair[string, int]) ([]byte, error) {
			return fmt.Appendf(dst, "%s costs %d", p.Key, p.Value), nil
		}))
		return nil
	}, dstream.WithCheckpointStore(vfs.NewObjects()))

	read, err := sink.OpenFiles(context.Background(), store, "prices", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for row, err := range read.Rows(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s\n", row.Epoch, row.Data)
	}
	// Output:
	// 1 apple costs 3
	// 1 pear costs 5
	// 1 apple costs 4
	// 2 pear costs 6
}

// From makes a stream of any source; here of a queue, to which others may push.
func ExampleFrom() {
	queue := source.NewQueue(1, []string{"a"}, []string{"b", "c"})
	queue.Finish()
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.Foreach(dstream.From(ssc, "letters", queue), func(_ context.Context, b dstream.Batch, v string) error {
			_, err := fmt.Println(b.Epoch, v)
			return err
		})
		return nil
	})
	// Output:
	// 1 a
	// 2 b
	// 2 c
}

// Two batches of a stream that are still remembered.
func ExampleSlice() {
	var numbers *dstream.DStream[int]
	r := newRig(exampleTB{end: new([]func())}, time.Second, func(ssc *dstream.StreamingContext) error {
		numbers = dstream.QueueStream(ssc, []int{1}, []int{2, 3}, []int{4})
		dstream.Print(numbers, 0)
		return nil
	}, dstream.WithRemember(time.Minute)).start().tick(3)
	defer func() { _ = r.ssc.Stop(context.Background()) }()

	batches, err := dstream.Slice(numbers, zero.Add(2*time.Second), zero.Add(3*time.Second))
	if err != nil {
		fmt.Println(err)
	}
	for _, b := range batches {
		records, err := rdd.Collect(context.Background(), b.RDD)
		fmt.Println(b.Time.Sub(zero), records, err)
	}
	// Output:
	// 2s [2 3] <nil>
	// 3s [4] <nil>
}
