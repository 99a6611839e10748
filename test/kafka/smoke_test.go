package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/stretchr/testify/require"
)

func TestSmoke(t *testing.T) {
	b, err := embedded.Start(embedded.Topic("words", 3))
	require.NoError(t, err)
	defer b.Close()
	w := &kafkago.Writer{Addr: kafkago.TCP(b.Addr()), Topic: "words", BatchTimeout: time.Millisecond}
	for i := range 10 {
		require.NoError(t, w.WriteMessages(t.Context(), kafkago.Message{Value: []byte(fmt.Sprintf("a b c%d", i))}))
	}
	w.Close()
	var mu sync.Mutex
	got := map[string]int{}
	err = dstream.Run(t.Context(), 50*time.Millisecond, func(ssc *dstream.StreamingContext) error {
		lines := kafka.DirectStream(ssc, "lines", kafka.Brokers(b.Addr()), kafka.Topics("words"), kafka.FromEarliest(), kafka.StopAtEnd())
		words := dstream.FlatMap(lines, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
		counts := dstream.MapWithState(ones, dstream.Function(func(word string, one dstream.Option[int], state *dstream.State[int]) dstream.Pair[string, int] {
			sum := one.OrElse(0) + state.OrElse(0)
			state.Update(sum)
			return dstream.KV(word, sum)
		}).Named("counts"))
		dstream.Foreach(counts, func(ctx context.Context, _ dstream.Batch, p dstream.Pair[string, int]) error {
			mu.Lock()
			defer mu.Unlock()
			got[p.Key] = max(got[p.Key], p.Value)
			return nil
		})
		return nil
	}, dstream.WithStopWhenDone())
	require.NoError(t, err)
	require.Equal(t, 10, got["a"])
	require.Len(t, got, 12)
}
