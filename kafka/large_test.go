package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// producing counts the batches that are sent.
func producing(b *fakeBroker) *int {
	n := new(int)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 0 {
			*n++
		}
		return 0, ""
	}
	return n
}

// TestHeadersFillBatches: a batch is sent when keys, values and headers have the size.
func TestHeadersFillBatches(t *testing.T) {
	var messages []Message
	for range 4 {
		messages = append(messages, Message{Key: []byte("k"), Headers: []Header{{"h", make([]byte, 400)}, {strings.Repeat("x", 100), nil}}})
	}
	b, s := sinkOf(t, ProduceBatchBytes(1100))
	fence(t, s, "root")
	n := producing(b)
	tx, err := s.Begin(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, messages...)))
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	require.Equal(t, 4, *n, "two of them would be more than 1100 bytes")

	b, p := producerOf(t, ProduceBatchBytes(1100))
	n = producing(b)
	require.NoError(t, p.Write(t.Context(), "out", messages...))
	require.Equal(t, 4, *n)
}

// TestTooLargeAMessage: the one that the topic does not take is named, and the setting
// that helps. // report 29
func TestTooLargeAMessage(t *testing.T) {
	small, large := Message{Key: []byte("b"), Value: []byte("x")}, Message{Key: []byte(strings.Repeat("K", 300)), Value: make([]byte, 3000)}
	b, s := sinkOf(t, ProduceBatchBytes(1024))
	fence(t, s, "root")
	tx, err := s.Begin(t.Context(), 1)
	require.NoError(t, err)
	produced := 0
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 0 {
			produced++
		}
		return map[bool]int16{true: 10}[key == 0 && produced > 1], ""
	}
	err = tx.Write(t.Context(), sink.Part{Target: "out", Index: 5}, rowsOf(t, small, large, small, large))
	require.ErrorIs(t, err, wire.MessageTooLarge)
	require.False(t, passing(err))
	for _, says := range []string{"partition 5, row 1", "about 3364 bytes", `with key "KKKK`, `topic "out"`, "max.message.bytes"} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), strings.Repeat("K", 250))
	require.NotContains(t, err.Error(), "ProduceBatchBytes", "it would not help")

	b, p := producerOf(t)
	b.faults(0, 10, "", 1000)
	err = p.Write(t.Context(), "out", large)
	require.ErrorContains(t, err, "a message of about 3364 bytes with key")
	err = p.Write(t.Context(), "out", small, small)
	require.ErrorContains(t, err, "2 messages")
	require.ErrorContains(t, err, "ProduceBatchBytes (524288)")
}

// TestMorePartitions: those that a topic gets while a job runs are written to, after a
// minute at the latest; at once where the topic is not known as it was.
func TestMorePartitions(t *testing.T) {
	m := clock.NewManual(time.Unix(1000, 0))
	timed := sinkOption(func(c *sinkConfig) { c.clock = m })
	keyed := func(n int) (out []Message) { // in many partitions
		for i := range 20 {
			out = append(out, Message{Key: []byte(fmt.Sprint(n, i)), Value: []byte("x")})
		}
		return out
	}
	b, s := sinkOf(t, timed)
	fence(t, s, "root")
	epoch := uint64(0)
	write := func() {
		t.Helper()
		epoch++
		tx, err := s.Begin(t.Context(), epoch)
		require.NoError(t, err)
		require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, keyed(int(epoch))...)))
		require.NoError(t, tx.Commit(t.Context(), memory(epoch)))
	}
	rows := func(p int32) int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.writes.written[TopicPartition{"out", p}])
	}
	write()
	b.log("out", 2)
	m.Advance(countsFor - 1)
	write()
	require.Zero(t, rows(2))
	m.Advance(1)
	write()
	require.NotZero(t, rows(2))
	b.log("out", 3)
	tx := begun(t, s, epoch+1, "x")
	b.faults(0, 3, "", 1) // a broker that does not know it, once
	require.NoError(t, tx.Commit(t.Context(), memory(epoch+1)), "it is asked again")
	epoch++
	write()
	require.NotZero(t, rows(3))

	b, p := producerOf(t, timed)
	require.NoError(t, p.Write(t.Context(), "out", keyed(0)...))
	b.log("out", 2)
	require.NoError(t, p.Write(t.Context(), "out", keyed(1)...))
	require.Zero(t, rows(2))
	m.Advance(countsFor)
	require.NoError(t, p.Write(t.Context(), "out", keyed(2)...))
	require.NotZero(t, rows(2))
	b.remove("out")
	m.Advance(countsFor)
	require.ErrorIs(t, p.Write(t.Context(), "out", keyed(3)...), ErrNoTopic)
}
