package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
)

// watched is an output that does something once when a text appears in it.
type watched struct {
	mu   sync.Mutex
	all  bytes.Buffer
	text string
	then func()
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	if w.then != nil && strings.Contains(w.all.String(), w.text) {
		w.then()
		w.then = nil
	}
	return len(b), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// put writes values to a topic; nil is a tombstone.
func put(t *testing.T, broker *embedded.Broker, topic string, values ...[]byte) {
	w := writeTo([]string{broker.Addr()}, topic, &kafkago.RoundRobin{}, 1<<20, 5)
	records := make([]kafkago.Message, len(values))
	for i, v := range values {
		records[i] = kafkago.Message{Value: v}
	}
	assert.NoError(t, w.WriteMessages(t.Context(), records...))
	assert.NoError(t, w.Close())
}

// records reads all of a topic, as key to value.
func records(t *testing.T, broker *embedded.Broker, topic string) map[string]string {
	got := map[string]string{}
	err := dstream.Run(t.Context(), 5*time.Millisecond, func(ssc *dstream.StreamingContext) error {
		in := kafka.DirectStream(ssc, "in", kafka.Brokers(broker.Addr()), kafka.Topics(topic), kafka.FromEarliest(), kafka.StopAtEnd())
		dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, r kafka.Record) error {
			assert.NotContains(t, got, r.KeyText(), "each word once")
			got[r.KeyText()] = r.Text()
			return nil
		})
		return nil
	}, dstream.WithStopWhenDone())
	require.NoError(t, err)
	return got
}

// A running topic is counted from its oldest record until the interrupt, which
// finishes the batch, prints the numbers, writes the totals and is a success.
func TestTopicUntilInterrupted(t *testing.T) {
	broker, err := embedded.Start(embedded.Topic("in", 3), embedded.Topic("out", 2))
	require.NoError(t, err)
	defer broker.Close()
	put(t, broker, "in", []byte("to be or"), []byte(""), nil, []byte("not to be"))

	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	end := &watched{text: "that 1", then: interrupt}
	more := &watched{text: ": 4 lines, 6 words, 4 keys", then: func() {
		go put(t, broker, "in", []byte("that is"))
	}}
	status := run(ctx, []string{"-brokers", broker.Addrs(), "-topic", "in", "-out", "out", "-interval", "10ms"}, nil, end, more)
	out, errs := end.String(), more.String()
	require.Zero(t, status, errs)
	require.ErrorIs(t, ctx.Err(), context.Canceled, "it was interrupted, not given up")
	assert.Contains(t, out, "topic in at "+broker.Addrs())
	assert.Contains(t, out, "top words: be 2, to 2, not 1, or 1\n")
	assert.Contains(t, out, "all: top words: be 2, to 2, is 1, not 1, or 1, that 1\n")
	assert.Contains(t, out, "records: 8 words of 5 lines in 2 batches")
	assert.Contains(t, out, "keys: 6\n")
	assert.Contains(t, out, "written: 6 totals to topic out\n")
	assert.NotContains(t, out, "verified")
	assert.Equal(t, map[string]string{
		"be": "be\t2", "is": "is\t1", "not": "not\t1", "or": "or\t1", "that": "that\t1", "to": "to\t2",
	}, records(t, broker, "out"))
}

// An empty topic shows nothing, and its end is a success too.
func TestEmptyTopic(t *testing.T) {
	broker, err := embedded.Start(embedded.Topic("in", 1))
	require.NoError(t, err)
	defer broker.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	var errs bytes.Buffer
	out := &watched{text: "counting the words", then: interrupt}
	require.Zero(t, run(ctx, []string{"-brokers", broker.Addrs(), "-topic", "in", "-interval", "10ms"}, nil, out, &errs), errs.String())
	assert.Empty(t, errs.String())
	assert.Contains(t, out.String(), "keys: 0\n")
	assert.NotContains(t, out.String(), "top words")
}

func TestFaultsOfKafka(t *testing.T) {
	broker, err := embedded.Start(embedded.Topic("in", 1))
	require.NoError(t, err)
	defer broker.Close()
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no topic":        {[]string{"-brokers", broker.Addr(), "-topic", "absent"}, []string{"absent", broker.Addr(), "the topic does not exist"}},
		"no output topic": {[]string{"-brokers", broker.Addr(), "-topic", "in", "-out", "absent"}, []string{"output topic", "absent", broker.Addr()}},
		"no broker":       {[]string{"-brokers", "127.0.0.1:1", "-topic", "in", "-out", "out"}, []string{"127.0.0.1:1", "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errs := runIt(c.args, "")
			assert.Equal(t, 1, status)
			for _, want := range c.want {
				assert.Contains(t, errs, want)
			}
			assert.NotContains(t, out, "records:")
		})
	}
}

// endless is a text that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "again and again\n"), nil }

// An interrupt while the text is written and counted ends both.
func TestInterruptWhileWriting(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	out, errs := &watched{text: "top words: again", then: interrupt}, &watched{}
	assert.Equal(t, 1, run(ctx, []string{"-interval", "5ms", "-every", "1", "-"}, endless{}, out, errs))
	assert.Contains(t, errs.String(), "ended early: nothing is verified")
	assert.NotContains(t, out.String(), "verified")
}
