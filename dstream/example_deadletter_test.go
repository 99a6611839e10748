package dstream_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// The records that a function fails for are written to a sink of their own, each once,
// with the commit of their epoch; the sum of the others goes on.
func ExampleDeadLetters() {
	store := vfs.NewObjects() // or a folder: vfs.NewDir(vfs.Disk(), …)
	dead := sink.NewFiles("dead", store)
	job := func(ssc *dstream.StreamingContext) error {
		texts := dstream.QueueNamed(ssc, "texts", 1, []string{"1", "two", "3"}, []string{"4", "5"})
		numbers := dstream.MapErr(texts, strconv.Atoi).Named("parse")
		sums := dstream.MapWithState(dstream.KeyBy(numbers, func(int) string { return "sum" }), dstream.Function(
			func(_ string, n dstream.Option[int], s *dstream.State[int]) int {
				s.Update(s.OrElse(0) + n.OrElse(0))
				return s.Get()
			}).Named("sums"))
		dstream.Foreach(sums, func(_ context.Context, _ dstream.Batch, sum int) error { fmt.Println("sum", sum); return nil })
		dstream.DeadLetters(texts, "dead", sink.Lines(dead, func(dst []byte, l dstream.Letter[string]) ([]byte, error) {
			return fmt.Appendf(dst, "%q of %s, partition %s, offset %d: %s: %s",
				l.Record.OrElse(""), l.Source, l.Partition, l.Offset, l.Operator, l.Reason()), nil
		}))
		return nil
	}
	err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(store))
	fmt.Println(err)
	letters, err := sink.OpenFiles(context.Background(), store, "dead", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for row := range letters.Rows(context.Background()) {
		fmt.Printf("epoch %d: %s\n", row.Epoch, row.Data)
	}
	// Output:
	// sum 1
	// sum 4
	// sum 8
	// sum 13
	// <nil>
	// epoch 1: "two" of texts, partition 0, offset 1: parse: strconv.Atoi: parsing "two": invalid syntax
}

// Without a checkpoint, or to do something else with bad records, a function gets them,
// at least once.
func ExampleForeachDeadLetter() {
	job := func(ssc *dstream.StreamingContext) error {
		texts := dstream.QueueNamed(ssc, "texts", 1, []string{"1", "two", "3"})
		dstream.Foreach(dstream.MapErr(texts, strconv.Atoi).Named("parse"),
			func(_ context.Context, _ dstream.Batch, n int) error { fmt.Println(n); return nil })
		dstream.ForeachDeadLetter(texts, func(_ context.Context, b dstream.Batch, l dstream.Letter[string]) error {
			fmt.Println("epoch", b.Epoch, l.Operator, "refused", l.Record.OrElse("?"))
			return nil
		})
		return nil
	}
	fmt.Println(dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone()))
	// Output:
	// 1
	// 3
	// epoch 1 parse refused two
	// <nil>
}
