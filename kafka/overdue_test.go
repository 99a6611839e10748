package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// TestTransactionLastsTooLong: the option is named with its value, and after three in a row
// the run ends: the next one would last as long. // CE14
func TestTransactionLastsTooLong(t *testing.T) {
	now := clock.NewManual(time.UnixMilli(0))
	b, s := sinkOf(t, TransactionTimeout(30*time.Second), ProduceBatchBytes(1<<10))
	s.cfg.clock = now
	long := string(make([]byte, 900))
	attempt := func(lasts time.Duration) error {
		fence(t, s, "root")
		tx := begun(t, s, s.have+1, long)
		require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out"}, rowsOf(t, valued(long)...)), "the first one is sent")
		now.Advance(lasts)
		if lasts >= 30*time.Second {
			b.faults(25, int16(wire.InvalidProducerEpoch), "", 1)
		}
		return tx.Commit(t.Context(), memory(s.have+1))
	}
	for range 2 {
		for range overdueLimit - 1 {
			err := attempt(40 * time.Second)
			require.ErrorIs(t, err, sink.ErrFenced)
			require.ErrorIs(t, err, wire.InvalidProducerEpoch)
			require.ErrorContains(t, err, "the transaction was open for 40s, which is longer than TransactionTimeout (30s)")
			require.ErrorContains(t, err, "transaction.max.timeout.ms")
		}
		require.NoError(t, attempt(time.Second), "which begins the count anew")
	}
	for range overdueLimit - 1 {
		require.ErrorIs(t, attempt(40*time.Second), sink.ErrFenced)
	}
	err := attempt(40 * time.Second)
	require.NotErrorIs(t, err, sink.ErrFenced)
	require.False(t, passing(err))
	require.ErrorContains(t, err, "3 of 3 in a row")

	// Fenced in time is no matter of time.
	fence(t, s, "root")
	tx := begun(t, s, s.have+1, "a")
	b.faults(25, int16(wire.InvalidProducerEpoch), "", 1)
	err = tx.Commit(t.Context(), memory(s.have+1))
	require.ErrorIs(t, err, sink.ErrFenced)
	require.False(t, errors.As(err, new(*overdueError)))
}

// TestTransactionTimeoutAboveTheBrokers: says which option, and what it is.
func TestTransactionTimeoutAboveTheBrokers(t *testing.T) {
	b, s := sinkOf(t, TransactionTimeout(time.Hour))
	b.faults(22, int16(wire.InvalidTxnTimeout), "", 1000)
	err := s.Fence(t.Context(), sink.Fence{Root: "root"})
	require.ErrorIs(t, err, wire.InvalidTxnTimeout)
	require.ErrorContains(t, err, "TransactionTimeout is 1h0m0s, which is more than the broker's transaction.max.timeout.ms")
	require.NotContains(t, err.Error(), "tried")
	require.False(t, passing(err))
}

// TestSinkNeedsKafka25: it is told at once, and before any older run is shut out.
func TestSinkNeedsKafka25(t *testing.T) {
	b, s := sinkOf(t)
	counts := b.asked()
	b.mu.Lock()
	b.writes.old = true
	b.mu.Unlock()
	err := s.Fence(t.Context(), sink.Fence{Root: "root"})
	require.ErrorContains(t, err, "of OffsetFetch, Statemill 7 to 7: a broker of Kafka 2.5 or later is needed")
	require.NotContains(t, err.Error(), "tried")
	require.False(t, passing(err))
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Zero(t, counts[22])
}

// TestProducerIsClosed: it writes nothing any more.
func TestProducerIsClosed(t *testing.T) {
	b, p := producerOf(t)
	require.NoError(t, p.Close())
	require.ErrorContains(t, p.Write(t.Context(), "out", Message{Value: []byte("a")}), `write to topic "out": the producer is closed`)
	b.has(t, "out", 0)
}
