package dstream_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/statemill/statemill/dstream"
)

// A counter counts every committed epoch once.
func ExampleStreamingContext_Counter() {
	var long *dstream.Counter
	job := func(ssc *dstream.StreamingContext) error {
		long = ssc.Counter("long words")
		words := dstream.QueueStream(ssc, []string{"a", "longer"}, []string{"longest"})
		dstream.Print(dstream.Map(words, func(w string) string {
			if len(w) > 5 {
				long.Add(1)
			}
			return w
		}), 10)
		return nil
	}
	err := dstream.Run(context.Background(), 10*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithOutput(io.Discard))
	fmt.Println(long.Name(), long.Value(), err)
	// Output: long words 2 <nil>
}
