package core

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestProperties feeds a core with a clock that runs, stands, jumps both ways,
// and with results at any moment, and checks the rules of design 8 at each step.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Interval:  rapid.Int64Range(1, 50).Draw(t, "interval"),
			MaxQueued: rapid.IntRange(0, 4).Draw(t, "queue"),
			Remember:  rapid.Int64Range(0, 200).Draw(t, "remember"),
		}
		maxQueued := cfg.MaxQueued
		if maxQueued == 0 {
			maxQueued = 2
		}
		now := rapid.Int64Range(-1000, 1000).Draw(t, "start")
		c, first, err := New(cfg, Start{Now: now})
		require.NoError(t, err)
		require.Empty(t, first)
		require.LessOrEqual(t, c.Zero(), now)
		require.Greater(t, c.Zero()+cfg.Interval, now, "the first tick is the next one")
		require.Zero(t, c.Zero()%cfg.Interval)

		var waiting *Action // what the runner is doing
		planned, committed := uint64(0), uint64(0)
		lastTime, greatest := c.Zero(), now
		stops, ended := 0, false
		handle := func(actions []Action) {
			for _, a := range actions {
				require.False(t, ended, "nothing follows Stop")
				switch a.Kind {
				case Plan:
					require.Nil(t, waiting, "R2: epochs are serial")
					require.Equal(t, committed, planned, "R2: N+1 only after N is committed")
					require.Equal(t, planned+1, a.Batch.Epoch)
					require.Greater(t, a.Batch.Time, lastTime)
					require.LessOrEqual(t, a.Batch.Time, greatest, "no batch before its time")
					require.Zero(t, (a.Batch.Time-c.Zero())%cfg.Interval)
					require.Equal(t, lastTime, a.Batch.Prev)
					require.Zero(t, stops, "no new epoch after a stop")
					planned, lastTime = a.Batch.Epoch, a.Batch.Time
					waiting = &a
				case Compute, Outputs, Commit:
					require.Equal(t, planned, a.Batch.Epoch)
					waiting = &a
				case Seal:
					require.Equal(t, planned, a.Batch.Epoch)
				case Forget:
					require.LessOrEqual(t, a.UpTo, lastTime-cfg.Remember)
				case Abort:
					require.NotNil(t, waiting)
					require.Equal(t, planned, a.Batch.Epoch)
					waiting = nil
				case Stop:
					require.Nil(t, waiting)
					ended = true
				}
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 99).Draw(t, "what"); {
			case k < 50: // the clock
				step := rapid.SampledFrom([]int64{0, 1, cfg.Interval, cfg.Interval, 2 * cfg.Interval, 1000 * cfg.Interval, -1, -30 * cfg.Interval}).Draw(t, "step")
				now += step
				greatest = max(greatest, now)
				before := planned
				handle(c.Step(Tick(now)))
				require.LessOrEqual(t, planned, before+1, "a jump makes one batch, not a storm")
			case k < 95 && waiting != nil: // a result
				a := *waiting
				waiting = nil
				switch a.Kind {
				case Plan:
					handle(c.Step(Planned(a.Batch.Epoch)))
				case Compute:
					handle(c.Step(Computed(a.Batch.Epoch)))
				case Outputs:
					handle(c.Step(OutputsDone(a.Batch.Epoch)))
				case Commit:
					committed = a.Batch.Epoch
					handle(c.Step(Committed(a.Batch.Epoch, false)))
				}
			case k == 98 && !ended:
				stops++
				handle(c.Step(StopRequested()))
				if waiting == nil || stops > 1 {
					require.True(t, ended)
				}
			case k == 99 && waiting != nil && !ended:
				handle(c.Step(Failed(planned, errors.New("x"))))
				require.True(t, ended)
			}
			s := c.Stats()
			require.LessOrEqual(t, s.Queued, maxQueued)
			if !ended && stops == 0 {
				// Every grid time that passed is a batch, waits, or was skipped.
				passed := (c.NextTick()-c.Zero())/cfg.Interval - 1
				require.Equal(t, uint64(passed), planned+uint64(s.Queued)+s.Skipped)
			}
		}
	})
}

func TestBadSettings(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		s    Start
		want string
	}{
		{Config{}, Start{}, "must be positive"},
		{Config{Interval: 1, MaxQueued: -1}, Start{}, "neither may be negative"},
		{Config{Interval: 1, Remember: -1}, Start{}, "neither may be negative"},
		{Config{Interval: 1}, Start{Resumed: true, Pending: &Point{Epoch: 2}}, "cannot follow"},
		{Config{Interval: 1}, Start{Resumed: true, Last: Point{1, 5}, Pending: &Point{2, 5}}, "cannot follow"},
	} {
		_, _, err := New(x.cfg, x.s)
		require.ErrorContains(t, err, x.want)
	}
}

func TestStopErrorsAreTyped(t *testing.T) {
	begin := func() *Core {
		c, _, err := New(Config{Interval: 10}, Start{Now: 3})
		require.NoError(t, err)
		require.Len(t, c.Step(Tick(10)), 1)
		return c
	}
	c := begin()
	c.Step(StopRequested())
	out := c.Step(StopRequested())
	require.ErrorIs(t, out[1].Err, ErrAborted)
	c = begin()
	c.Step(StopRequested())
	out = c.Step(StopDeadline())
	require.ErrorIs(t, out[1].Err, ErrStopTimeout)
	c = begin()
	b, running := c.Batch()
	require.True(t, running)
	require.Equal(t, Batch{Epoch: 1, Time: 10}, b)
	out = c.Step(Committed(1, false))
	var p *ProtocolError
	require.ErrorAs(t, out[1].Err, &p)
	require.Equal(t, uint64(1), p.Epoch)
	_, running = c.Batch()
	require.False(t, running)
}
