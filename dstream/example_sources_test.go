package dstream_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source/receiver"
)

// printAll prints every record of a stream.
func printAll[T any](s dstream.Stream[T]) {
	dstream.Foreach(s, func(_ context.Context, _ dstream.Batch, v T) error {
		_, err := fmt.Println(v)
		return err
	})
}

// A receiver of one's own: what store has taken is on the disk, so that the sender may be told. Here the
// input ends by itself; else Receive returns when its context ends.
func ExampleReceiverStream() {
	dir, err := os.MkdirTemp("", "readings")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	sensor := receiver.Func[float64](func(ctx context.Context, store receiver.Store[float64]) error {
		for _, reading := range []float64{20.5, 21, 20.75} {
			if err := store(ctx, reading); err != nil {
				return err
			}
		}
		return nil
	})
	runToEnd(func(ssc *dstream.StreamingContext) error {
		printAll(dstream.ReceiverStream(ssc, "readings", dir, nil, receiver.Receiver[float64](sensor)))
		return nil
	})
	// Output:
	// 20.5
	// 21
	// 20.75
}

func ExampleTextFileStream() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		printAll(dstream.TextFileStream(ssc, "words", filepath.Join("testdata", "words.txt")))
		return nil
	})
	// Output:
	// to be or
	// not to be
}

func ExampleReaderStream() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		printAll(dstream.ReaderStream(ssc, "words", strings.NewReader("to be or\nnot to be\n")))
		return nil
	})
	// Output:
	// to be or
	// not to be
}

// A dataset as the state before the first batch.
func ExampleMapWithState_initialState() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		known := dstream.Parallelize(ssc, []dstream.Pair[string, int]{dstream.KV("apple", 100), dstream.KV("pear", 200)})
		printAll(dstream.MapWithState(prices(ssc), dstream.Function(
			func(item string, price dstream.Option[int], total *dstream.State[int]) dstream.Pair[string, int] {
				total.Update(total.OrElse(0) + price.OrElse(0))
				return dstream.KV(item, total.Get())
			}).InitialState(rdd.Pairs(known)).NumPartitions(1)))
		return nil
	})
	// Output:
	// {apple 103}
	// {pear 205}
	// {apple 107}
	// {pear 211}
}
