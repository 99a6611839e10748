package kafkatest

import (
	"net"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
)

// TestBadInput: what cannot work is told at once and by name.
func TestBadInput(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.produce(r.client(), topic, value(0, "a"), value(0, "b"))
		run := func(opts ...kafka.SourceOption) error {
			return r.run(func(ssc *dstream.StreamingContext) error {
				collect(r.stream(ssc, topic, opts...))
				return nil
			})
		}
		began := time.Now()
		err := run(kafka.Topics("no-such-topic"))
		require.ErrorIs(r, err, kafka.ErrNoTopic)
		require.ErrorContains(r, err, `topic "no-such-topic"`)
		err = run(kafka.FromOffsets(map[kafka.TopicPartition]int64{{Topic: topic}: 7}))
		var gone *kafka.OffsetRangeError
		require.ErrorAs(r, err, &gone)
		require.Equal(r, kafka.OffsetRangeError{Topic: topic, Wanted: 7, Earliest: 0, Latest: 2}, *gone)
		require.Less(r, time.Since(began), 10*time.Second)
	})
}

// TestUnknownBroker: an error within 10 s that names it, also from the engine, which
// has retries of its own.
func TestUnknownBroker(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := nobody.Addr().String()
	nobody.Close()
	began := time.Now()
	err = dstream.Run(t.Context(), time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(kafka.DirectStream(ssc, "in", kafka.Brokers(addr), kafka.Topics("t")), 1)
		return nil
	})
	require.ErrorContains(t, err, addr)
	require.ErrorContains(t, err, "connection refused")
	require.Less(t, time.Since(began), 10*time.Second)
}
