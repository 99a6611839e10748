package core

import (
	"fmt"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
)

// Step takes in one event and returns what to do, in order. The slice is the
// caller's.
func (c *Core) Step(e Event) []Action {
	if c.phase == stopped {
		return nil // results that were on their way
	}
	switch e.Kind {
	case EvTick:
		return c.tick(e.Now)
	case EvStop:
		return c.stop()
	case EvStopDeadline:
		if !c.stopping {
			return c.protocol(e)
		}
		return c.abort(fmt.Errorf("epoch %d: %w", c.batch.Epoch, ErrStopTimeout))
	case EvFailed:
		if e.Err == nil || e.Epoch != 0 && !(c.running() && e.Epoch == c.batch.Epoch) {
			return c.protocol(e)
		}
		return c.abort(e.Err)
	}
	return c.result(e)
}

// tick observes the clock. One observation makes at most one batch time, the
// latest of the grid: what was jumped over is skipped.
func (c *Core) tick(now int64) []Action {
	at := c.floor(now)
	if now < c.seen {
		c.stats.Held++
	}
	c.seen = max(c.seen, now)
	if at <= c.lastTick && !sabotage.On("clock-back-not-held") {
		return nil
	}
	if c.stopping {
		return nil
	}
	if at > c.lastTick {
		c.stats.Skipped += uint64((at - c.lastTick - 1) / c.cfg.Interval) // those between
	}
	c.lastTick = at
	if c.running() && !sabotage.On("epochs-overlap") {
		if len(c.queue) >= c.cfg.MaxQueued && !sabotage.On("skip-queue-limit") {
			c.stats.Skipped++
			return nil
		}
		c.queue = append(c.queue, at)
		return nil
	}
	return c.plan(at)
}

// plan begins the next epoch: only from here, and only when none is under way.
func (c *Core) plan(at int64) []Action {
	if !sabotage.Enabled {
		invariants.Check(c.phase == idle, "planner: epoch %d begun while %s epoch %d", c.batch.Epoch+1, c.phase, c.batch.Epoch)
		invariants.Check(at > c.batch.Time, "planner: batch time %d after %d", at, c.batch.Time)
	}
	c.batch = Batch{Epoch: c.batch.Epoch + 1, Time: at, Prev: c.batch.Time}
	c.phase = planning
	return []Action{{Kind: Plan, Batch: c.batch}}
}

// result moves the epoch under way one phase on.
func (c *Core) result(e Event) []Action {
	want := map[EventKind]phase{EvPlanned: planning, EvComputed: computing, EvOutputsDone: outputting, EvCommitted: committing}
	if p, ok := want[e.Kind]; !ok || c.phase != p || e.Epoch != c.batch.Epoch {
		return c.protocol(e)
	}
	switch e.Kind {
	case EvPlanned:
		c.phase = computing
		return []Action{{Kind: Compute, Batch: c.batch}}
	case EvComputed:
		c.phase = outputting
		return []Action{{Kind: Seal, Batch: c.batch}, {Kind: Outputs, Batch: c.batch}}
	case EvOutputsDone:
		c.phase = committing
		return []Action{{Kind: Commit, Batch: c.batch}}
	}
	c.phase = idle
	actions := []Action{}
	if upTo := c.batch.Time - c.cfg.Remember; upTo > c.zero {
		actions = append(actions, Action{Kind: Forget, UpTo: upTo})
	}
	if (c.stopping && !sabotage.On("stop-starts-next")) || e.Last {
		return append(actions, c.end(nil))
	}
	if len(c.queue) > 0 {
		at := c.queue[0]
		c.queue = c.queue[1:]
		actions = append(actions, c.plan(at)...)
	}
	return actions
}

// stop: the first lets the running epoch finish, the second drops it.
func (c *Core) stop() []Action {
	if c.stopping {
		return c.abort(fmt.Errorf("epoch %d: %w", c.batch.Epoch, ErrAborted))
	}
	c.stopping = true
	if !c.running() {
		return []Action{c.end(nil)}
	}
	return nil
}

// abort gives the epoch under way up, if there is one, and ends the run.
func (c *Core) abort(err error) []Action {
	if !c.running() {
		return []Action{c.end(err)}
	}
	return []Action{{Kind: Abort, Batch: c.batch}, c.end(err)}
}

func (c *Core) protocol(e Event) []Action {
	return c.abort(&ProtocolError{Event: e, Phase: c.phase.String(), Epoch: c.batch.Epoch})
}

func (c *Core) end(err error) Action {
	c.phase, c.queue = stopped, nil
	return Action{Kind: Stop, Err: err}
}

func (c *Core) running() bool { return c.phase != idle && c.phase != stopped }
