package dstream_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/vfs"
)

// The rate of each source follows the speed of processing. Here it is held at 200 records a second, which are
// two in a batch of 10 ms.
func ExampleWithBackpressure() {
	var sizes []int64
	job := func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.QueueNamed(ssc, "backlog", 1, []int{1, 2, 3, 4, 5}), 10)
		return nil
	}
	err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithOutput(io.Discard),
		dstream.WithBackpressure(dstream.MinRate(200)), dstream.WithInitialRate(200), dstream.WithMaxRatePerPartition(200),
		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { sizes = append(sizes, p.InputRows) }}))
	fmt.Println(sizes, err)
	// Output: [2 2 1] <nil>
}

// Outputs of a batch may run side by side; without the option the second one waits for the first, which here would
// wait for ever.
func ExampleWithConcurrentOutputs() {
	job := func(ssc *dstream.StreamingContext) error {
		in := dstream.QueueStream(ssc, []string{"hello"})
		words := make(chan string)
		dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, w string) error {
			words <- w
			return nil
		}, dstream.Name("sends"))
		dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, w string) error {
			fmt.Println(<-words == w)
			return nil
		}, dstream.Name("receives"))
		return nil
	}
	err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithConcurrentOutputs(2))
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// A listener is told what happens, in order.
func ExampleListener() {
	job := func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.QueueStream(ssc, []string{"a", "b"}, []string{"c"}), 10, dstream.Name("words"))
		return nil
	}
	err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithOutput(io.Discard),
		dstream.WithListener(dstream.Listener{
			BatchStarted:   func(b dstream.Batch) { fmt.Println("batch", b.Epoch) },
			OutputStarted:  func(b dstream.Batch, name string) { fmt.Println("output", name) },
			BatchCompleted: func(p dstream.Progress) { fmt.Println("done,", p.InputRows, "records") },
		}))
	fmt.Println(err)
	// Output:
	// batch 1
	// output words
	// done, 2 records
	// batch 2
	// output words
	// done, 1 records
	// <nil>
}

// What a window holds outlives the run: the second one begins with what the first has read. (The store is one in
// memory; a folder is given by WithCheckpoint.)
func ExampleWithCheckpointStore_window() {
	store := vfs.NewObjects()
	run := func(batches ...[]string) {
		job := func(ssc *dstream.StreamingContext) error {
			words := dstream.MapPair(dstream.QueueNamed(ssc, "words", 1, batches...), func(w string) (string, int) { return w, 1 })
			sum := func(a, b int) int { return a + b }
			minute := dstream.ReduceByKeyAndWindow(words, sum, time.Hour, 10*time.Millisecond, dstream.NumPartitions(1), dstream.Name("last hour"))
			dstream.Foreach(minute, func(_ context.Context, b dstream.Batch, p dstream.Pair[string, int]) error {
				fmt.Println("epoch", b.Epoch, p.Key, p.Value)
				return nil
			})
			return nil
		}
		if err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(store)); err != nil {
			fmt.Println(err)
		}
	}
	run([]string{"a", "b"})
	run([]string{"a", "b"}, []string{"a", "c"}) // the queue has got a second batch
	// Output:
	// epoch 1 a 1
	// epoch 1 b 1
	// epoch 2 a 2
	// epoch 2 b 1
	// epoch 2 c 1
}
