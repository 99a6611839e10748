package dstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/core"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// A run on a checkpoint may have several lives: when it finds in mid-run that an
// older run has written after all, or after it has changed its layout, it lets go
// of everything and begins anew from the durable state, in place. A run in memory
// has one life.

// againError ends a life after which another one begins.
type againError struct{ cause error }

func (e *againError) Error() string { return "the run begins anew: " + e.cause.Error() }

// errChange: the run begins anew to change its layout.
var errChange = errors.New("the layout of the state is changed, as the program asks")

// begins begins a life: operators, their state, sources, planner.
func (r *run) begins(ctx context.Context) error {
	start := core.Start{}
	var plans func(source string) *source.Plan
	var err error
	if r.durable != nil {
		start, plans, err = r.durable.begins(ctx)
	} else {
		err = r.prepare(nil)
	}
	if err != nil {
		return err
	}
	for _, in := range r.inputs {
		if err := r.openSource(ctx, in, plans); err != nil {
			return err
		}
	}
	if err := r.clashes(); err != nil {
		return err
	}
	start.Now = r.clock.Now().UnixNano()
	c, actions, err := core.New(core.Config{
		Interval:  int64(r.ssc.cfg.interval),
		MaxQueued: r.ssc.cfg.maxQueued,
		Remember:  int64(r.ssc.cfg.interval), // the least; streams that remember longer see to it in forget
	}, start)
	if err != nil {
		return err
	}
	r.core, r.first = c, actions
	r.mu.Lock()
	r.zero = time.Unix(0, c.Zero()).UTC()
	r.epoch, r.committedAt = start.Last.Epoch, time.Unix(0, start.Last.Time).UTC()
	if r.foundAt = r.committedAt; r.epoch == 0 {
		r.foundAt = time.Time{}
	}
	r.mu.Unlock()
	if err := r.bringBack(); err != nil {
		return err
	}
	r.mu.Lock()
	r.heldUntil = time.Time{}
	r.mu.Unlock()
	r.noteHold(start.Last.Epoch > 0 && start.Now < start.Last.Time)
	if r.durable != nil {
		r.durable.setReady(true)
	}
	r.mu.Lock()
	r.begun = true
	r.mu.Unlock()
	return nil
}

// tellReady tells that a life begins; again, that it is not the first.
func (r *run) tellReady(again bool) error {
	ready := Readiness{Epoch: r.Epoch(), Again: again}
	if r.durable != nil {
		ready.Term = r.durable.start.Term
	}
	err := r.listen(func(l *Listener) {
		if l.Started != nil && !again {
			l.Started(r.zero)
		}
		if l.Ready != nil && !(again && sabotage.On("ready-told-once")) {
			l.Ready(ready)
		}
	})
	if err != nil {
		return err
	}
	return r.tellEvents()
}

// tellNotReady tells that the run begins anew, and why.
func (r *run) tellNotReady(why error) error {
	var older *checkpoint.RestartError
	if errors.As(why, &older) {
		why = older // which batch it hit is of no interest: it is done again
	}
	return r.listen(func(l *Listener) {
		if l.NotReady != nil {
			l.NotReady(why)
		}
	})
}

// prepare makes the operators. partitions gives the number of partitions of an
// operator for this life; nil leaves it to the specs.
func (r *run) prepare(partitions func(operator string) int) error {
	var faults []*Fault
	for _, n := range r.ops {
		parts := 0
		if partitions != nil {
			parts = partitions(n.label())
		}
		if err := n.op.prepare(r, parts); err != nil {
			faults = append(faults, &Fault{Caller: n.caller, Call: "dstream." + n.kind, Err: err})
		}
	}
	if len(faults) > 0 {
		return &ValidationError{Faults: faults}
	}
	return nil
}

// openSource opens a source at the newest plan made for it; plans is nil in a
// run without a checkpoint.
func (r *run) openSource(ctx context.Context, in *input, plans func(source string) *source.Plan) error {
	var last *source.Plan
	if plans != nil {
		last = plans(in.name())
	}
	// Not retried: a start that cannot succeed shall say so at once.
	err := r.do("opening of source "+in.name(), func() error {
		if rooted, ok := in.src.(source.Rooted); ok && plans != nil {
			rooted.SetRoot(r.durable.start.Root)
		}
		return in.src.Open(ctx, last)
	})
	if err != nil {
		return fmt.Errorf("open: %w", &ReadError{Source: in.name(), Err: err})
	}
	in.opened = true
	in.opens()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.openedAt = r.clock.Now()
	return nil
}

// endLife lets go of what a life holds: remembered batches and sources. What
// operators have as their newest version stays.
func (r *run) endLife() error {
	r.mu.Lock()
	for _, b := range r.remembered {
		b.dropAll()
	}
	r.remembered = nil
	r.mu.Unlock()
	return r.closeSources()
}

// again begins another life after an againError. Its error ends the run.
func (r *run) again(why error) error {
	if r.broken != nil {
		return r.broken
	}
	if r.durable != nil {
		r.durable.setReady(false)
		r.durable.files.Restarts++
	}
	if err := r.tellNotReady(why); err != nil {
		return err
	}
	if err := r.endLife(); err != nil {
		return err
	}
	if r.durable != nil {
		if err := r.durable.between(); err != nil {
			return fmt.Errorf("dstream: begin anew: %w", err)
		}
	}
	r.background.Wait() // nothing reads the maps that are about to go
	for _, n := range r.ops {
		r.mu.Lock()
		n.op.forget()
		r.mu.Unlock()
	}
	for _, in := range r.inputs {
		in.positions = map[string]position{}
	}
	r.cur = nil
	r.meter.reset()
	if err := r.begins(r.hard); err != nil {
		return fmt.Errorf("dstream: begin anew: %w", err)
	}
	return nil
}
