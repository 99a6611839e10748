package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/stretchr/testify/require"
)

// TestSinkHeedsQuotas: a broker that wants to be left alone is asked nothing until the time
// is over, on no connection, and then goes on; whoever is stopped does not wait.
func TestSinkHeedsQuotas(t *testing.T) {
	b, s := sinkOf(t)
	k := clock.NewManual(time.Unix(1000, 0))
	s.cfg.clock = k
	asked := make(chan int16, 1000)
	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) { asked <- key; return 0, "" }
	b.mu.Unlock()
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	b.mu.Lock()
	b.writes.muted = 10_000 // longer than RequestTimeout and RetryFor
	b.mu.Unlock()
	committed := make(chan error, 1)
	running, ended := context.WithCancel(t.Context())
	go func() {
		committed <- tx.Commit(t.Context(), memory(1))
		ended()
	}()
	require.NoError(t, k.BlockUntil(running, 1), "the commit waited for nothing")
	for len(asked) > 1 {
		<-asked
	}
	require.EqualValues(t, 0, <-asked, "Produce is the last that was asked")
	k.Advance(9999 * time.Millisecond)
	require.Empty(t, asked)
	stopped, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	cancel(why)
	require.ErrorIs(t, s.cluster.quota.heed(stopped, b.addr()), why)
	require.Empty(t, asked)
	k.Advance(time.Millisecond)
	require.NoError(t, <-committed)
	b.has(t, "out", 0, "=a")
	require.False(t, s.doubt, "nothing was asked twice")
}

// TestQuotaIsBounded: what a broker says is believed for a minute.
func TestQuotaIsBounded(t *testing.T) {
	k := clock.NewManual(time.Unix(1000, 0))
	q := quota{cfg: &config{clock: k}}
	q.note("a", 24*time.Hour) // damage
	require.NoError(t, q.heed(t.Context(), "a"))
	q.note("a", time.Hour)
	q.note("a", time.Second) // is within it
	require.NoError(t, q.heed(t.Context(), "b"), "another broker")
	done := make(chan error, 1)
	go func() { done <- q.heed(t.Context(), "a") }()
	require.NoError(t, k.BlockUntil(t.Context(), 1))
	k.Advance(time.Minute)
	require.NoError(t, <-done)
	require.NoError(t, q.heed(t.Context(), "a"))
}
