package tools

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/partitioner"
)

// runTime bounds a run that should end by itself.
const runTime = time.Minute

type count = dstream.Pair[string, int64]

// wordCount counts the words of a topic's values and tells every new total.
func wordCount(told func(count), opts ...kafka.SourceOption) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		lines := kafka.DirectStream(ssc, "lines", opts...)
		words := dstream.FlatMap(lines, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
		ones := dstream.MapPair(words, func(w string) (string, int64) { return w, 1 })
		totals := dstream.MapWithState(ones, dstream.Function(
			func(w string, one dstream.Option[int64], s *dstream.State[int64]) count {
				n := s.OrElse(0) + one.OrElse(0)
				s.Update(n)
				return dstream.KV(w, n)
			}).Named("totals").Partitioner(partitioner.Murmur2(3)))
		dstream.Foreach(totals, func(_ context.Context, _ dstream.Batch, c count) error {
			told(c)
			return nil
		})
		return nil
	}
}

// text makes n lines "key<tab>words" and adds their words to want.
func text(mark string, n int, want map[string]int64) (lines []string) {
	for i := range n {
		words := fmt.Sprintf("%s w%d w%d %s%d", mark, i%97, i%7, mark, i%31)
		lines = append(lines, fmt.Sprintf("key%d\t%s", i%53, words))
		for _, w := range strings.Fields(words) {
			want[w]++
		}
	}
	return lines
}

// TestConsoleProducerIsCounted writes the same topic in every codec.
func TestConsoleProducerIsCounted(t *testing.T) {
	const each = 3000
	k := onKafka(t)
	topic := k.topic(3)
	want := map[string]int64{}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		k.produce(topic, codec, text(codec, each, want))
	}
	k.checkCodecs(topic)

	got := map[string]int64{}
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	err := dstream.Run(ctx, 50*time.Millisecond, wordCount(func(c count) { got[c.Key] = c.Value },
		kafka.Brokers(k.brokers()...), kafka.Topics(topic), kafka.FromEarliest(), kafka.StopAtEnd()),
		dstream.WithStopWhenDone(), dstream.WithMaxRecordsPerBatch(each))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// TestConsoleProducerWhileRunning: records that arrive between batches of one run
// are added to the totals, each of them once.
func TestConsoleProducerWhileRunning(t *testing.T) {
	k := onKafka(t)
	topic := k.topic(3)
	want := map[string]int64{}
	first, second := text("a", 500, want), text("b", 700, want)
	const wordsOfFirst, words = 4 * 500, 4 * (500 + 700)

	got := map[string]int64{}
	n := 0
	half, all := make(chan struct{}), make(chan struct{})
	job := wordCount(func(c count) {
		got[c.Key] = c.Value
		switch n++; n {
		case wordsOfFirst:
			close(half)
		case words:
			close(all)
		}
	}, kafka.Brokers(k.brokers()...), kafka.Topics(topic), kafka.FromEarliest())
	ctx, stop := context.WithTimeout(t.Context(), 3*runTime)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- dstream.Run(ctx, 20*time.Millisecond, job) }()
	await := func(what string, c <-chan struct{}) {
		select {
		case <-c:
		case err := <-ended:
			require.FailNow(t, "the run ended early", "before %s: %v", what, err)
		case <-ctx.Done():
			require.FailNow(t, "the run took too long", "waiting for %s", what)
		}
	}
	k.produce(topic, "none", first)
	await("the first records", half)
	k.produce(topic, "zstd", second)
	await("the second records", all)
	stop()
	if err := <-ended; err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Equal(t, want, got)
}
