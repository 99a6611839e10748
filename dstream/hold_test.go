package dstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/vfs"
)

// wall is a clock whose timers go by another one that nobody can set, as those of the
// system do: only what it shows can be set back.
type wall struct {
	m   *clock.Manual
	off atomic.Int64
}

func (w *wall) Now() time.Time { return w.m.Now().Add(time.Duration(w.off.Load())) }

func (w *wall) NewTimer(d time.Duration) clock.Timer { return w.m.NewTimer(d) }

// D: a clock that is set back holds the batches until it has passed the last one. It
// is told once each time, counted, and shown while it lasts.
func TestClockSetBackIsTold(t *testing.T) {
	w := &wall{m: clock.NewManual(zero)}
	h := harness.New()
	holds := make(chan dstream.ClockHeld, 10)
	c := dstream.NewStreamingContext(time.Second, dstream.WithClock(w), dstream.WithHarness(h), dstream.WithOutput(discard{}),
		dstream.WithListener(dstream.Listener{ClockHeld: func(c dstream.ClockHeld) { holds <- c }}))
	dstream.Print(dstream.QueueNamed[int](c, "in", 1), 1)
	require.NoError(t, c.Start())
	defer func() { require.NoError(t, c.Stop(context.Background())) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := func() {
		t.Helper()
		require.NoError(t, w.m.BlockUntil(ctx, 1))
		w.m.Advance(time.Second)
		require.NoError(t, h.WaitTick(ctx, w.Now()))
	}
	told := func() dstream.ClockHeld {
		t.Helper()
		select {
		case c := <-holds:
			return c
		case <-ctx.Done():
			t.Fatal("a hold is not told")
			return dstream.ClockHeld{}
		}
	}
	tick()
	tick()
	for n := range int64(2) {
		p, _ := c.LastProgress()
		require.Zero(t, p.HeldUntil)
		require.Equal(t, n, p.ClockHolds)
		last := p.Batch.Time
		require.NoError(t, w.m.BlockUntil(ctx, 1))
		w.off.Add(-int64(5 * time.Second))
		w.m.Advance(time.Second) // the timer that was set before fires
		require.Equal(t, dstream.ClockHeld{Now: last.Add(-4 * time.Second), Until: last.Add(time.Second)}, told())
		p, ok := c.LastProgress()
		require.True(t, ok)
		require.Equal(t, last.Add(time.Second), p.HeldUntil)
		require.Equal(t, n+1, p.ClockHolds)
		text, err := json.Marshal(p)
		require.NoError(t, err)
		require.Contains(t, string(text), `"heldUntil":"`)
		err = c.Healthy()
		require.ErrorIs(t, err, dstream.ErrHeld)
		require.ErrorContains(t, err, fmt.Sprintf("no batch begins before %s, in 5s", last.Add(time.Second).Format(time.RFC3339)))
		require.NoError(t, w.m.BlockUntil(ctx, 1))
		w.m.Advance(5 * time.Second)
		require.NoError(t, h.WaitTick(ctx, last.Add(time.Second)))
		p, _ = c.LastProgress()
		require.Equal(t, last.Add(time.Second), p.Batch.Time, "the next one on the grid")
		require.NoError(t, c.Healthy())
		require.Equal(t, n+1, p.ClockHolds)
	}
	tick()
	require.Empty(t, holds)
}

// The same at a start, if the last batch lies ahead of the clock.
func TestClockBehindTheCheckpointIsTold(t *testing.T) {
	objects := vfs.NewObjects()
	first := newRig(t, time.Second, func(c ssc) error {
		outputs(dstream.MapWithState(ones(c, inputA), dstream.Function(count).Named("count")))
		return nil
	}, dstream.WithCheckpointStore(objects)).start().tick(3)
	require.NoError(t, first.ssc.Stop(t.Context()))
	holds := make(chan dstream.ClockHeld, 10)
	second := newRig(t, time.Second, func(c ssc) error {
		outputs(dstream.MapWithState(ones(c, inputA), dstream.Function(count).Named("count")))
		return nil
	}, dstream.WithCheckpointStore(objects), dstream.WithListener(dstream.Listener{ClockHeld: func(c dstream.ClockHeld) { holds <- c }})).start()
	require.Equal(t, dstream.ClockHeld{Now: zero, Until: zero.Add(4 * time.Second)}, <-holds)
	require.ErrorIs(t, second.ssc.Healthy(), dstream.ErrHeld)
	require.Equal(t, zero.Add(4*time.Second), second.ssc.Health().HeldUntil)
	second.jump(4)
	require.NoError(t, second.ssc.Healthy())
	require.EqualValues(t, 1, second.last().ClockHolds)
	require.Zero(t, second.last().HeldUntil)
}
