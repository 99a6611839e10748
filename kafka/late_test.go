package kafka

import (
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// TestSinkTakesTheNextEpoch: after a request without an answer, before anything of the next
// transaction; not after one with any answer. A run that was fenced meanwhile takes none. // CE1
func TestSinkTakesTheNextEpoch(t *testing.T) {
	for key, name := range map[int16]string{24: "AddPartitions", 25: "AddOffsets", 28: "TxnOffsetCommit", 26: "EndTxn"} {
		t.Run(name, func(t *testing.T) {
			b, s := sinkOf(t)
			fence(t, s, "root")
			was := s.txn.Epoch
			b.faults(key, 15, "", 1)
			require.NoError(t, begun(t, s, 1, "a").Commit(t.Context(), memory(1)))
			tx := begun(t, s, 2, "b")
			require.Equal(t, was, s.txn.Epoch, "it was answered")
			b.faults(key, 0, "close", 1)
			require.NoError(t, tx.Commit(t.Context(), memory(2)))
			require.Equal(t, was, s.txn.Epoch)
			b.faults(22, 0, "close", 1) // this one too
			tx = begun(t, s, 3, "c")
			require.Equal(t, was+1, s.txn.Epoch)
			b.faults(key, 0, "close", 1)
			require.NoError(t, tx.Commit(t.Context(), memory(3)))
			b.has(t, "out", 0, "=a", "=b", "=c")

			young := NewSink("s", Brokers(b.addr()))
			young.Topic("out")
			defer young.Close()
			fence(t, young, "root")
			_, err := s.Begin(t.Context(), 4)
			require.ErrorIs(t, err, sink.ErrFenced, "the younger run stays in charge")
			require.NoError(t, begun(t, young, 4, "d").Commit(t.Context(), memory(4)))
			b.has(t, "out", 0, "=a", "=b", "=c", "=d")
		})
	}
}

// TestNextEpochOfSomebodyElse: a server that gives everybody the next one is found out.
func TestNextEpochOfSomebodyElse(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	b.faults(26, 0, "close", 1)
	require.NoError(t, begun(t, s, 1, "a").Commit(t.Context(), memory(1)))
	b.mu.Lock()
	b.writes.producers["statemill.root.s"].epoch++ // somebody was here
	b.writes.anybody = true
	b.mu.Unlock()
	_, err := s.Begin(t.Context(), 2)
	require.ErrorIs(t, err, sink.ErrFenced)
	require.ErrorContains(t, err, "take the next epoch")
}

// TestNoAbortBehindACommit: once the commit was asked for, only the memory tells what
// became of it, and no other memory can be put in its place.
func TestNoAbortBehindACommit(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	b.faults(26, 0, "close", 1000)
	require.Error(t, tx.Commit(t.Context(), memory(1)))
	require.ErrorIs(t, tx.Commit(t.Context(), sink.Memory{Epoch: 1, Term: 2}), sink.ErrMisuse)
	counts := b.asked()
	require.NoError(t, tx.Abort(t.Context()))
	b.mu.Lock()
	require.Zero(t, counts[26])
	b.mu.Unlock()
	_, err := s.Begin(t.Context(), 1)
	require.ErrorIs(t, err, sink.ErrFenced)
	fence(t, s, "root")
	m, ok, err := s.Memory(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, memory(1), m, "it was done")
	b.has(t, "out", 0, "=a")
}

// TestMemoryBehindItsTransaction: brokers that do not ask the transaction's coordinator
// keep one that arrives late for ever, until the next transaction of the group ends.
func TestMemoryBehindItsTransaction(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	require.NoError(t, begun(t, s, 1, "a").Commit(t.Context(), memory(1)))
	stuck := true
	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 26 {
			stuck = false
		}
		if key == 9 && stuck {
			return 88, ""
		}
		return 0, ""
	}
	b.mu.Unlock()
	m, ok, err := s.Memory(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, memory(1), m)
	require.NoError(t, begun(t, s, 2, "b").Commit(t.Context(), memory(2)))
	b.has(t, "out", 0, "=a", "=b")
}
