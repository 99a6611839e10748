package kafka

import (
	"context"
	"testing"

	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// TestTopicMadeAgainWithFewerPartitions: the epoch begins anew behind a fence, with messages
// placed by the number that there is, and is not asked for again and again.
func TestTopicMadeAgainWithFewerPartitions(t *testing.T) {
	b, s := sinkOf(t, RetryFor(DefaultRetryFor))
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out", Index: 1}, rowsOf(t, valued("b")...)))
	b.remove("out")
	b.log("out", 0)
	asked := 0
	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 24 {
			asked++
			return 3, ""
		}
		return 0, ""
	}
	b.mu.Unlock()
	err := tx.Commit(t.Context(), memory(1))
	require.ErrorIs(t, err, sink.ErrFenced)
	require.ErrorContains(t, err, `topic "out" has 1 partitions now, partition 1 is none of them`)
	b.mu.Lock()
	require.Equal(t, 1, asked)
	b.mu.Unlock()
	require.NoError(t, tx.Abort(t.Context()))

	b.faults(24, 3, "", 2) // a broker that does not know it yet is asked again
	fence(t, s, "root")
	tx = begun(t, s, 1, "a")
	require.NoError(t, tx.Write(t.Context(), sink.Part{Target: "out", Index: 1}, rowsOf(t, valued("b")...)))
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	b.has(t, "out", 0, "=a", "=b")
}

// TestAbortOfWhatMayStillArrive: a run that is stopped while a leader says nothing leaves no
// open transaction behind; it has the next epoch of the producer, so that what arrives
// later is refused. After somebody else's fence it touches nothing.
func TestAbortOfWhatMayStillArrive(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	ctx, cancel := context.WithCancel(t.Context())
	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 0 {
			cancel() // the run is stopped
			return 0, "silent"
		}
		return 0, ""
	}
	b.mu.Unlock()
	require.ErrorIs(t, tx.Commit(ctx, memory(1)), context.Canceled)
	open := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.writes.producers[s.txn.ID].added)
	}
	require.Equal(t, 1, open())
	require.NoError(t, tx.Abort(t.Context()))
	require.Zero(t, open())
	_, err := s.Begin(t.Context(), 1)
	require.ErrorIs(t, err, sink.ErrFenced, "only a fence makes the producer's hold known")

	b.faults(0, int16(wire.InvalidProducerEpoch), "", 1)
	fence(t, s, "root")
	tx = begun(t, s, 1, "a")
	require.ErrorIs(t, tx.Commit(t.Context(), memory(1)), sink.ErrFenced)
	require.NoError(t, tx.Abort(t.Context()))
	require.Equal(t, 1, open(), "whose it is now is not this run's to end")
}
