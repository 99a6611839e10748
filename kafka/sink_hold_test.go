package kafka

import (
	"context"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// TestSinkClosedAndFencedAgain: a run whose commit failed has closed the sink, and the next
// one has the same object: what was begun is dead, and not in the way.
func TestSinkClosedAndFencedAgain(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	dead := begun(t, s, 1, "dead")
	require.NoError(t, s.Close())
	require.ErrorIs(t, dead.Commit(t.Context(), memory(1)), sink.ErrFenced)
	require.NoError(t, s.Fence(t.Context(), sink.Fence{Root: "root", Run: "next", Term: 2}))
	tx := begun(t, s, 1, "a")
	require.ErrorIs(t, dead.Commit(t.Context(), memory(1)), sink.ErrFenced)
	require.NoError(t, dead.Abort(t.Context()))
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	b.has(t, "out", 0, "=a")
}

// TestSinkOfTwoRuns: the second is refused before a broker is asked anything.
func TestSinkOfTwoRuns(t *testing.T) {
	b, s := sinkOf(t)
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	b.mu.Lock()
	asked := b.requests
	b.mu.Unlock()
	var e *sink.InUseError
	require.ErrorAs(t, s.Fence(context.Background(), sink.Fence{Root: "other", Run: "q", Term: 1}), &e)
	require.ErrorContains(t, e, `run "q" of root "other" (term 1) cannot have it: run "r" of root "root" (term 1) has it`)
	b.mu.Lock()
	require.Equal(t, asked, b.requests)
	b.mu.Unlock()
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	b.has(t, "out", 0, "=a")
}
