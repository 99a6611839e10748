package readme

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/milltest"
)

func job(ssc *dstream.StreamingContext) error {
	messages := kafka.DirectStream(ssc, "messages", kafka.Brokers("localhost:9092"), kafka.Topics("test"))
	words := dstream.FlatMap(messages, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(
		func(word string, one dstream.Option[int], state *dstream.State[int]) dstream.Pair[string, int] {
			sum := one.OrElse(0) + state.OrElse(0)
			state.Update(sum)
			return dstream.KV(word, sum)
		}).Named("counts").NumPartitions(8))
	dstream.Print(counts, 10)
	return nil
}

// Example has no output, so it is compiled and not run: it would wait for a Kafka.
func Example() {
	run := func(ctx context.Context) error {
		err := dstream.Run(ctx, 10*time.Second, job, dstream.WithCheckpoint("ckpt"))
		return err
	}
	_ = run
}

func TestWordCount(t *testing.T) {
	kit := milltest.New(t, time.Second, job)
	in := milltest.Input[kafka.Record](kit, "messages")
	in.Batch(kafka.Record{Value: []byte("a b a")})
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 2, "b": 1}, milltest.State[string, int](kit, "counts"))
}
