package dstream_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// printUntil prints the records of a source that has no end, and stops the run after the last one.
func printUntil(last string, source func(ssc *dstream.StreamingContext) *dstream.DStream[string]) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err := dstream.Run(ctx, 5*time.Millisecond, func(ssc *dstream.StreamingContext) error {
		dstream.Foreach(source(ssc), func(_ context.Context, _ dstream.Batch, line string) error {
			fmt.Println(line)
			if line == last {
				stop() // the batch is finished first
			}
			return nil
		})
		return nil
	}, dstream.WithParallelism(1))
	if err != nil {
		fmt.Println(err)
	}
}

// Files are moved into the directory when they are whole.
func ExampleDirStream() {
	dir, err := os.MkdirTemp("", "lines")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, ".part"), []byte("to be or\nnot to be\n"), 0o600); err != nil {
		fmt.Println(err)
	}
	if err := os.Rename(filepath.Join(dir, ".part"), filepath.Join(dir, "hamlet.txt")); err != nil {
		fmt.Println(err)
	}
	printUntil("not to be", func(ssc *dstream.StreamingContext) *dstream.DStream[string] {
		return dstream.DirStream(ssc, "lines", dir)
	})
	// Output:
	// to be or
	// not to be
}

func ExampleSocketStream() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	served := make(chan struct{})
	go func() { // who sends the lines
		defer close(served)
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintln(conn, "to be or")
		fmt.Fprintln(conn, "not to be")
		_, _ = conn.Read(make([]byte, 1)) // until the job hangs up
	}()
	printUntil("not to be", func(ssc *dstream.StreamingContext) *dstream.DStream[string] {
		return dstream.SocketStream(ssc, "lines", server.Addr().String())
	})
	<-served
	// Output:
	// to be or
	// not to be
}

// The lines that are piped into the program; here the example itself writes them.
func ExampleStdinStream() {
	in, lines, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	terminal := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = terminal }()
	fmt.Fprintln(lines, "to be or")
	fmt.Fprintln(lines, "not to be")
	if err := lines.Close(); err != nil {
		fmt.Println(err)
	}
	runToEnd(func(ssc *dstream.StreamingContext) error {
		printAll(dstream.StdinStream(ssc, "lines"))
		return nil
	})
	// Output:
	// to be or
	// not to be
}

// The records of a batch, spread over two partitions.
func ExampleQueueNamed() {
	runToEnd(func(ssc *dstream.StreamingContext) error {
		printAll(dstream.Glom(dstream.QueueNamed(ssc, "numbers", 2, []int{1, 2, 3, 4, 5}, []int{6})))
		return nil
	})
	// Output:
	// [1 2]
	// [3 4 5]
	// []
	// [6]
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
