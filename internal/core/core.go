// Package core is the batch planner as a pure state machine: it is told what
// happened and answers what to do next. It does no I/O, reads no clock, starts no
// goroutine and keeps no lock, so every interleaving can be scripted, replayed
// and searched. One goroutine, the driver, owns a [Core].
//
// How a runner uses it:
//
//	c, actions, err := core.New(cfg, start) // actions: only a pending epoch's redo
//	for {
//		do the actions in order; long ones beside the loop
//		wait for the first of: a result, a stop signal, the clock at c.NextTick()
//		actions = c.Step(that event)
//	}
//
//	action    what the runner does                          then tells
//	Plan      source positions → offsets/N                  Planned
//	Compute   all tasks of the batch; deltas                Computed
//	Seal      seal every partition's version N              (nothing)
//	Outputs   output operations, then exactly-once sinks    OutputsDone
//	Commit    commits/N, then the sources' Committed        Committed
//	Forget    drop remembered batches with time ≤ UpTo      (nothing)
//	Abort     cancel and roll back every partition of N     (nothing)
//	Stop      return Err; no action follows                 (nothing)
//
// An Abort during Commit cancels it but cannot unsay it: if the commit turns out
// to be durable, the epoch counts, and the runner says so in its error.
//
// Any of them may end in Failed instead, after the runner's own retries; epoch 0
// stands for a failure outside an epoch. At most one epoch is under way, so the
// runner may do a long action inline; but then it sees ticks late, and what
// passed meanwhile counts as one tick.
//
// The rules (ARCHITECTURE, "time"):
//   - Batch times lie on the grid zero + k·interval and strictly increase. The
//     first is the next multiple of the interval strictly after the start.
//   - Epochs are 1, 2, 3 … and strictly serial: N+1 is planned only after N is
//     committed (R2).
//   - While a batch runs, at most MaxQueued ticks wait; later ones are skipped:
//     they get no epoch and are counted.
//   - A clock that jumps ahead makes one batch, at the latest grid time; one that
//     jumps back is held: nothing happens until it passes the last tick again.
//   - The first stop lets the running epoch commit and plans no other. A second
//     stop, or the stop deadline, aborts it.
//   - An event that cannot come now is a fault of the runner and stops the run
//     with a [ProtocolError]; after Stop every event is ignored.
//
// Core does not retry, does not know what a plan holds, and does not write
// anything down; recovery gives it the last committed epoch and the pending one.
package core

import (
	"errors"
	"fmt"
)

// Config is the fixed part. All durations are nanoseconds.
type Config struct {
	// Interval is the batch interval, > 0.
	Interval int64
	// MaxQueued is how many ticks may wait while a batch runs; 0 means 2.
	MaxQueued int
	// Remember is how long a batch is remembered after its own time, ≥ 0.
	Remember int64
}

// Start is where a run begins. All instants are unix nanoseconds.
type Start struct {
	// Now is the clock at the start.
	Now int64
	// Resumed says that Zero, Last and Pending come from an earlier run.
	Resumed bool
	// Zero is the grid's origin; without Resumed it is computed.
	Zero int64
	// Last is the newest committed epoch; the zero value if there is none.
	Last Point
	// Pending is the epoch after Last if it was planned but not committed: it is
	// computed again at its own time before anything else. Nil if there is none.
	Pending *Point
}

// Point is an epoch and its batch time.
type Point struct {
	Epoch uint64
	Time  int64
}

// Batch is the epoch that an action is about.
type Batch struct {
	Epoch uint64
	Time  int64
	// Prev is the batch time before it, the grid's zero for the first. Grid
	// times between Prev and Time had no batch: skipped, or nobody ran.
	Prev int64
	// Redo says that the plan exists already: an earlier run made it.
	Redo bool
}

// Stats counts what the clock did.
type Stats struct {
	// Skipped ticks found the queue full or were jumped over.
	Skipped uint64
	// Held counts observations of a clock that had gone back.
	Held uint64
	// Queued is how many ticks wait now.
	Queued int
}

// The reasons of a stop that dropped an epoch. Both come wrapped with its number.
var (
	// ErrStopTimeout: the running epoch was not committed before the stop deadline.
	ErrStopTimeout = errors.New("stop timeout passed before the epoch was committed")
	// ErrAborted: a second stop came while the epoch was running.
	ErrAborted = errors.New("aborted by a second stop")
)

// ProtocolError is an event that the runner must not send now.
type ProtocolError struct {
	Event Event
	Phase string // what the core was waiting for
	Epoch uint64 // the epoch under way, or the last
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("planner: event %q while %s epoch %d: this is a fault of the runner", e.Event, e.Phase, e.Epoch)
}

type phase int

const (
	idle phase = iota
	planning
	computing
	outputting
	committing
	stopped
)

func (p phase) String() string {
	return [...]string{"idle after", "planning", "computing", "in the outputs of", "committing", "stopped at"}[p]
}

// Core is the state machine. Make it with New.
type Core struct {
	cfg      Config
	zero     int64
	phase    phase
	batch    Batch   // under way, or the last
	queue    []int64 // ticks that wait
	lastTick int64   // the grid never goes back behind it
	seen     int64   // the greatest instant observed
	stopping bool
	stats    Stats
}

// New returns a core at its start and the actions to begin with: none, or the
// redo of the pending epoch.
func New(cfg Config, s Start) (*Core, []Action, error) {
	if cfg.Interval <= 0 {
		return nil, nil, fmt.Errorf("planner: batch interval is %d ns: it must be positive", cfg.Interval)
	}
	if cfg.MaxQueued < 0 || cfg.Remember < 0 {
		return nil, nil, fmt.Errorf("planner: MaxQueued is %d and Remember %d ns: neither may be negative", cfg.MaxQueued, cfg.Remember)
	}
	if p := s.Pending; p != nil && (p.Epoch != s.Last.Epoch+1 || p.Time <= s.Last.Time && s.Last.Epoch > 0) {
		return nil, nil, fmt.Errorf("planner: pending epoch %d at %d cannot follow epoch %d at %d", p.Epoch, p.Time, s.Last.Epoch, s.Last.Time)
	}
	if cfg.MaxQueued == 0 {
		cfg.MaxQueued = 2
	}
	c := &Core{cfg: cfg, zero: s.Zero, seen: s.Now}
	if !s.Resumed {
		c.zero = 0
		c.zero = c.floor(s.Now)
	}
	c.batch = Batch{Epoch: s.Last.Epoch, Time: s.Last.Time}
	if s.Last.Epoch == 0 {
		c.batch.Time = c.zero
	}
	// The next tick lies strictly after now, and after every batch there was.
	c.lastTick = max(c.floor(s.Now), c.batch.Time)
	if p := s.Pending; p != nil {
		c.lastTick = max(c.lastTick, p.Time)
		c.batch = Batch{Epoch: p.Epoch, Time: p.Time, Prev: c.batch.Time, Redo: true}
		c.phase = computing
		return c, []Action{{Kind: Compute, Batch: c.batch}}, nil
	}
	return c, nil, nil
}

// Zero is the origin of the grid, to be written down with the run's settings.
func (c *Core) Zero() int64 { return c.zero }

// NextTick is the instant at which the runner should observe the clock next.
func (c *Core) NextTick() int64 { return c.floor(c.lastTick) + c.cfg.Interval }

// Stats returns the counters.
func (c *Core) Stats() Stats {
	s := c.stats
	s.Queued = len(c.queue)
	return s
}

// Batch returns the epoch under way and true, or the last one and false.
func (c *Core) Batch() (Batch, bool) { return c.batch, c.phase != idle && c.phase != stopped }

// floor is the latest grid time not after t.
func (c *Core) floor(t int64) int64 {
	off := (t - c.zero) % c.cfg.Interval
	if off < 0 {
		off += c.cfg.Interval
	}
	return t - off
}
