package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

func producerOf(t *testing.T, opts ...SinkOption) (*fakeBroker, *Producer) {
	b := newFake(t)
	b.log("out", 0)
	b.log("out", 1)
	p := NewProducer(append([]SinkOption{Brokers(b.addr()), RetryFor(200 * time.Millisecond), RequestTimeout(time.Second)}, opts...)...)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return b, p
}

// TestProducerWrites: keys to their partitions, in order, in as many batches as it
// takes.
func TestProducerWrites(t *testing.T) {
	b, p := producerOf(t, ProduceBatchBytes(1024))
	long := strings.Repeat("x", 700)
	require.NoError(t, p.Write(t.Context(), "out", Message{Key: []byte("k"), Value: []byte("1")}, Message{Key: []byte("k"), Value: []byte(long)},
		Message{Key: []byte("k"), Value: []byte(long)}, Message{Value: []byte("2"), Time: time.UnixMilli(3)}))
	require.NoError(t, p.Write(t.Context(), "out", Message{Key: []byte("k"), Value: []byte("3")}))
	require.NoError(t, p.Write(t.Context(), "out"))
	b.has(t, "out", 0, "k=1", "k="+long, "k="+long, "=2", "k=3")
	b.has(t, "out", 1)
	require.Equal(t, "kafka producer", p.String())
}

// TestProducerAsksAgain: what is sent again, because an answer was lost or the leader
// has moved, is there once.
func TestProducerAsksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		key, code int16
		act       string
		times     int
	}{
		"answer lost":         {0, 0, "close", 1},
		"half an answer":      {0, 0, "half", 1},
		"leader moved":        {0, 6, "", 2},
		"id: not now":         {22, 15, "", 2},
		"id: answer lost":     {22, 0, "close", 1},
		"topic unknown yet":   {3, 3, "", 2},
		"topic has no leader": {3, 5, "", 2},
		"damaged on its way":  {0, 2, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			b, p := producerOf(t)
			b.faults(c.key, c.code, c.act, c.times)
			require.NoError(t, p.Write(t.Context(), "out", Message{Value: []byte("a")}))
			require.NoError(t, p.Write(t.Context(), "out", Message{Value: []byte("b")}))
			b.has(t, "out", 0, "=a", "=b")
		})
	}
}

// TestProducerTakesAnotherID: one whose sequence is not known to the broker any more
// goes on under another identity, a few times.
func TestProducerTakesAnotherID(t *testing.T) {
	for _, code := range []wire.Error{wire.UnknownProducerID, wire.OutOfOrderSequence, wire.DuplicateSequence, wire.InvalidProducerEpoch} {
		b, p := producerOf(t)
		require.NoError(t, p.Write(t.Context(), "out", Message{Value: []byte("a")}))
		was := p.id.ID
		b.faults(0, int16(code), "", identities-1)
		require.NoError(t, p.Write(t.Context(), "out", Message{Value: []byte("b")}))
		require.NotEqual(t, was, p.id.ID)
		b.has(t, "out", 0, "=a", "=b")
		b.faults(0, int16(code), "", identities)
		require.ErrorIs(t, p.Write(t.Context(), "out", Message{Value: []byte("c")}), code)
	}
}

// TestProducerGivesUp: with what it did, and the cause; what cannot pass is told at
// once.
func TestProducerGivesUp(t *testing.T) {
	b, p := producerOf(t)
	write := func(m Message) error { return p.Write(t.Context(), "out", m) }
	a := Message{Value: []byte("a")}
	for _, c := range []struct {
		key, code int16
		says      string
	}{
		{3, 29, "look for the topic"}, {22, 15, "get an id"}, {0, 6, "bytes to out-0"},
		{0, 10, "raise the topic's max.message.bytes"}, {0, 29, "bytes to out-0"},
	} {
		b.faults(c.key, c.code, "", 1000)
		err := write(a)
		require.ErrorIs(t, err, wire.Error(c.code))
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "kafka producer")
		b.faults(0, 0, "", 0)
		require.NoError(t, write(Message{}))
		p.giveUp(p.id)
		if c.key == 3 {
			require.EqualValues(t, 2, p.counts["out"].n, "it has learned")
		}
	}
	require.ErrorContains(t, write(Message{Time: time.UnixMilli(-1)}), "before 1970")
	b.remove("out")
	fresh := NewProducer(Brokers(b.addr()), RetryFor(10*time.Millisecond))
	defer fresh.Close()
	require.ErrorIs(t, fresh.Write(t.Context(), "out", a), ErrNoTopic)
	err := NewProducer(nil).Write(t.Context(), "out", a)
	require.ErrorContains(t, err, "an option is nil")
	require.ErrorContains(t, err, "no broker is named")
	require.False(t, passing(err))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, fresh.Write(ctx, "out", a), context.Canceled)
}

// job runs a stream of the broker's topic "t" to its end.
func job(t *testing.T, b *fakeBroker, build func(in dstream.Stream[Record])) error {
	return dstream.Run(t.Context(), time.Millisecond, func(ssc *dstream.StreamingContext) error {
		build(DirectStream(ssc, "in", Brokers(b.addr()), Topics("t"), FromEarliest(), ReadCommitted(), StopAtEnd()))
		return nil
	}, dstream.WithStopWhenDone())
}

// TestFaultsOfAProducerHaveTheirLine: with all other faults of a job, before anything is
// asked for.
func TestFaultsOfAProducerHaveTheirLine(t *testing.T) {
	ssc := dstream.New(time.Second)
	in := dstream.From(ssc, "in", source.NewQueue(1, []string{"a"}))
	message := func(string) (Message, error) { return Message{}, nil }
	AtLeastOnce(in, NewProducer(Compress("zip"), ProduceBatchBytes(1)), "", message)
	AtLeastOnce(in, nil, "out", message)
	AtLeastOnce(in, NewProducer(Brokers("x:1")), "out", (func(string) (Message, error))(nil))
	AtLeastOnce(in, NewProducer(Brokers("x:1")), "out", message)
	err := ssc.Start()
	require.ErrorIs(t, err, dstream.ErrInvalid)
	for _, says := range []string{"kafka producer: ", "no broker is named", `Compress("zip")`, "ProduceBatchBytes is 1", `topic "": the name`, "AtLeastOnce has no producer", "AtLeastOnce has no function"} {
		require.Equal(t, 1, strings.Count(err.Error(), says), "%s in %v", says, err)
	}
	// Elsewhere the option is a fault itself.
	ssc = dstream.New(time.Second)
	never := func() error { panic("not asked") }
	pairs := dstream.From(ssc, "in", source.NewQueue(1, []dstream.Pair[string, int]{}))
	dstream.Print(dstream.ReduceByKey(pairs, func(a, b int) int { return a + b }, dstream.Checked(never)), 1)
	dstream.Foreach(pairs, func(context.Context, dstream.Batch, dstream.Pair[string, int]) error { return nil }, dstream.Checked(nil))
	err = ssc.Validate()
	require.ErrorContains(t, err, "Checked does not apply to ReduceByKey")
	require.ErrorContains(t, err, "the function is nil")
}

// TestAtLeastOnce: a stream's rows are on the replicas when the output is done; a
// function's error fails the batch.
func TestAtLeastOnce(t *testing.T) {
	b, p := producerOf(t)
	b.log("t", 0, batchtest.Values(0, "a", "b"))
	b.log("t", 1, batchtest.Values(0, "c"))
	message := func(r Record) (Message, error) { return Message{Value: r.Value}, nil }
	require.NoError(t, job(t, b, func(in dstream.Stream[Record]) { AtLeastOnce(in, p, "out", message) }))
	b.has(t, "out", 0, "=a", "=b")
	b.has(t, "out", 1, "=c")

	bad := errors.New("no message")
	err := job(t, b, func(in dstream.Stream[Record]) {
		AtLeastOnce(in, p, "out", func(Record) (Message, error) { return Message{}, bad })
	})
	require.ErrorIs(t, err, bad)
	for _, none := range []func(in dstream.Stream[Record]){
		func(in dstream.Stream[Record]) { AtLeastOnce(in, nil, "out", message) },
		func(in dstream.Stream[Record]) { AtLeastOnce[Record](in, p, "out", nil) },
	} {
		require.ErrorContains(t, job(t, b, none), "AtLeastOnce has no ")
	}
	b.faults(0, 29, "", 1000)
	require.ErrorIs(t, job(t, b, func(in dstream.Stream[Record]) { AtLeastOnce(in, p, "out", message) }), wire.Error(29))
}
