package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func fired(t Timer) (time.Time, bool) {
	select {
	case at := <-t.C():
		return at, true
	default:
		return time.Time{}, false
	}
}

func TestManualFiresWhatIsDueAndNothingElse(t *testing.T) {
	m := NewManual(start)
	late, soon, now := m.NewTimer(2*time.Second), m.NewTimer(time.Second), m.NewTimer(0)
	at, ok := fired(now)
	require.True(t, ok)
	require.Equal(t, start, at)

	m.Advance(time.Second - 1)
	_, ok = fired(soon)
	require.False(t, ok)
	m.Advance(1)
	at, ok = fired(soon)
	require.True(t, ok)
	require.Equal(t, start.Add(time.Second), at)
	_, ok = fired(late)
	require.False(t, ok)

	m.Set(start.Add(time.Hour))
	at, ok = fired(late)
	require.True(t, ok)
	require.Equal(t, start.Add(2*time.Second), at, "a timer tells its due time, not where the clock went")
	require.Equal(t, start.Add(time.Hour), m.Now())
	_, ok = fired(late)
	require.False(t, ok, "once only")
}

func TestManualStop(t *testing.T) {
	m := NewManual(start)
	a, b := m.NewTimer(time.Second), m.NewTimer(time.Second)
	require.True(t, a.Stop())
	require.False(t, a.Stop())
	m.Advance(time.Minute)
	_, ok := fired(a)
	require.False(t, ok)
	require.False(t, b.Stop())
	_, ok = fired(b)
	require.True(t, ok)
}

func TestManualGoesBackWithoutFiring(t *testing.T) {
	m := NewManual(start)
	tm := m.NewTimer(time.Second)
	m.Set(start.Add(-time.Hour))
	require.Equal(t, start.Add(-time.Hour), m.Now())
	_, ok := fired(tm)
	require.False(t, ok)
	m.Set(start.Add(time.Second))
	_, ok = fired(tm)
	require.True(t, ok)
}

func TestManualIsUTCWithoutMonotonicPart(t *testing.T) {
	m := NewManual(time.Now().In(time.FixedZone("x", 3600)))
	require.Equal(t, time.UTC, m.Now().Location())
	require.Equal(t, m.Now(), m.Now().Round(0))
}

func TestBlockUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManual(start)
		done := make(chan error, 1)
		go func() { done <- m.BlockUntil(t.Context(), 2) }()
		one := m.NewTimer(time.Second)
		synctest.Wait()
		require.Empty(t, done)
		one.Stop()
		m.NewTimer(time.Second)
		synctest.Wait()
		require.Empty(t, done, "a stopped timer does not wait")
		m.NewTimer(time.Second)
		synctest.Wait()
		require.NoError(t, <-done)
		require.NoError(t, m.BlockUntil(t.Context(), 2))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := m.BlockUntil(ctx, 3)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "2 of 3 timers")
	})
}

func TestSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := System()
		before := c.Now()
		require.Equal(t, time.UTC, before.Location())
		require.Equal(t, before, before.Round(0), "no monotonic part")
		tm := c.NewTimer(time.Minute)
		<-tm.C()
		require.Equal(t, before.Add(time.Minute), c.Now())
		require.False(t, tm.Stop())
		require.True(t, c.NewTimer(time.Minute).Stop())
	})
}
