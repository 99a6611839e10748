package dstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/core"
	"github.com/statemill/statemill/internal/pool"
)

// drive is the driver goroutine. It owns the planner (internal/core), watches
// the clock and the stops, and gives the long actions to the hand, one goroutine
// that does them one after the other. So the driver sees every tick while a
// batch runs. Both use the run's state, but never at once: the driver touches it
// only while the hand has nothing to do.
func (r *run) drive() {
	work, results := make(chan core.Action), make(chan core.Event)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		for a := range work {
			r.handle(a, results)
		}
	}()
	stopWatching := r.watchSources()
	err, returned := error(nil), false
	defer func() { // deferred, as a listener may end this goroutine
		if !returned {
			err = errors.Join(r.cause, fmt.Errorf("dstream: listener: %w", pool.ErrGoexit))
		}
		close(work)
		<-joined
		stopWatching()
		r.finish(err)
	}()
	for again := false; ; again = true {
		err = r.loop(work, results, again)
		var why *againError
		if !errors.As(err, &why) {
			break
		}
		if err = r.again(why.cause); err != nil {
			break
		}
	}
	returned = true
}

// handle does one action on the hand and gives its result, also if user code
// ends the hand's goroutine: then the planner is told, and sends no other action.
func (r *run) handle(a core.Action, results chan<- core.Event) {
	returned := false
	defer func() {
		if !returned {
			results <- core.Failed(a.Batch.Epoch, r.failed(phaseOf(a.Kind), "", pool.ErrGoexit))
		}
	}()
	e := r.act(a)
	returned = true
	results <- e
}

// phaseOf is the name of a phase in a *BatchError.
func phaseOf(k core.ActionKind) string {
	switch k {
	case core.Plan:
		return "plan"
	case core.Compute:
		return "compute"
	case core.Outputs:
		return "output"
	}
	return "commit"
}

// finish lets go of the remembered batches and tells the end of the run. The
// operators' newest versions stay readable as long as the context is held.
func (r *run) finish(err error) {
	if err != nil {
		r.fails(err)
	}
	r.end()
	r.halts()
	cerr := errors.Join(r.endLife(), r.tellEvents(), r.tellSources()) // receivers have stopped
	r.mu.Lock()
	r.finished = true
	r.mu.Unlock()
	if r.durable != nil {
		cerr = errors.Join(cerr, r.durable.close())
	}
	r.background.Wait()
	if err == nil {
		err = cerr
	}
	if r.broken != nil {
		err = errors.Join(err, r.broken)
	}
	r.opened()
	r.ssc.ended(err)
	close(r.done)
}

// loop feeds the planner with events and does what it says, until it says Stop.
// again says that an earlier life has told the listeners of the start.
func (r *run) loop(work chan<- core.Action, results <-chan core.Event, again bool) error {
	if err := r.tellReady(again); err != nil {
		return err
	}
	actions := r.first
	r.handled(core.Event{}) // ticks before this life
	busy := false           // the hand has an action
	setBusy := func(is bool) {
		busy = is
		r.mu.Lock()
		r.busy = is
		r.mu.Unlock()
	}
	soft, late := r.soft.Done(), r.late
	stopped := false // the planner knows that it shall stop
	stop := func() []core.Action {
		stopped = true
		r.halts()
		return r.core.Step(core.StopRequested())
	}
	drain := newDraining(r)
	defer drain.leave()
	for {
		for len(actions) > 0 {
			a := actions[0]
			actions = actions[1:]
			switch a.Kind {
			case core.Seal:
				if name, err := r.seal(); err != nil {
					actions = r.core.Step(core.Failed(a.Batch.Epoch, r.failed("compute", name, err)))
				}
			case core.Forget:
				r.forget()
			case core.Abort:
				if busy {
					r.abortLate() // if nobody has done so yet
					<-results
					setBusy(false)
				}
				r.rollBack(stopErr(actions))
			case core.Stop:
				return r.unread(r.ends(a.Err), drain)
			default:
				setBusy(true)
				work <- a
			}
		}
		timer := r.tickTimer(stopped)
		select {
		case e := <-results:
			setBusy(false)
			if e.Kind == core.EvCommitted && !e.Last && r.changeDue() {
				return &againError{errChange}
			}
			// A stop that was asked for before comes first: no further batch begins.
			if soft != nil && r.stopping() {
				soft = nil
				drain.begin()
			}
			// What is drained may be in the plan of a batch that a stop would not begin.
			if soft == nil && !stopped && (!drain.begun() || e.Kind == core.EvCommitted) && drain.done() {
				actions = stop()
			}
			actions = append(actions, r.core.Step(e)...)
			r.handled(e)
		case <-timer.C():
			if soft != nil && r.stopping() {
				break // the stop comes first
			}
			next, before := r.core.NextTick(), r.core.Stats()
			actions = r.core.Step(core.Tick(r.clock.Now().UnixNano()))
			after := r.core.Stats()
			r.noteTicked(next, after.Skipped-before.Skipped)
			r.noteHold(after.Held > before.Held)
			if len(actions) == 0 && !busy { // nobody else tells of it before the next batch
				if err := r.tellEvents(); err != nil {
					actions = r.core.Step(core.Failed(0, err))
				}
			}
			r.handled(core.Event{})
		case <-soft:
			soft = nil
			if drain.begin(); drain.done() {
				actions = stop()
			}
		case <-drain.taken:
			drain.taken = nil
			if !stopped && !busy && drain.done() {
				actions = stop()
			}
		case <-late:
			late, soft = nil, nil
			if !stopped {
				actions = stop()
			}
			actions = append(actions, r.core.Step(core.StopDeadline())...)
		}
		timer.Stop()
	}
}

// stopErr is why an epoch is aborted: an Abort comes with the Stop that follows.
func stopErr(actions []core.Action) error {
	for _, a := range actions {
		if a.Kind == core.Stop {
			return a.Err
		}
	}
	return nil
}

// tickTimer fires at the next tick. A stopping planner takes none: it would stay
// due for ever.
func (r *run) tickTimer(stopping bool) clock.Timer {
	r.noteTicks()
	if stopping {
		return r.clock.NewTimer(math.MaxInt64)
	}
	return clock.TimerAt(r.clock, time.Unix(0, r.core.NextTick()))
}

// act does one long action, on the hand.
func (r *run) act(a core.Action) core.Event {
	epoch, phase := a.Batch.Epoch, phaseOf(a.Kind)
	var do func() (name string, err error)
	var done core.Event
	switch a.Kind {
	case core.Plan:
		r.begin(a.Batch)
		do, done = r.plan, core.Planned(epoch)
	case core.Compute:
		do, done = r.compute, core.Computed(epoch)
		if a.Batch.Redo {
			r.begin(a.Batch)
			do = r.redo
		}
	case core.Outputs:
		do, done = r.outputs, core.OutputsDone(epoch)
	default:
		do, done = r.commit, core.Committed(epoch, false)
	}
	if err := r.tellAll(); err != nil {
		return core.Failed(epoch, r.failed(phase, "listener", err))
	}
	name, err := do()
	if err == nil && r.hard.Err() != nil {
		err = context.Cause(r.hard) // user code that did not see it was over
	}
	if err != nil {
		return core.Failed(epoch, r.failed(phase, name, err))
	}
	if a.Kind == core.Commit && r.ssc.cfg.stopWhenDone {
		if done.Last, err = call("source", r.allDone); err != nil {
			return core.Failed(epoch, r.failed(phase, "", err))
		}
	}
	return done
}

// failed is the error of the running epoch.
func (r *run) failed(phase, name string, err error) error {
	if errors.Is(err, errNotBegun) {
		return err
	}
	if r.hard.Err() != nil {
		return context.Cause(r.hard)
	}
	return &BatchError{Batch: r.cur.batch, Phase: phase, Name: name, Committed: r.cur.committed, Unknown: r.cur.unknown, Err: err}
}

// ends is the error with which the run ends, when the planner says err.
func (r *run) ends(err error) error {
	if r.durable != nil && restarts(err) && r.hard.Err() == nil {
		r.durable.follow(err)
		return &againError{err}
	}
	r.cause = err
	failed := err != nil && !errors.Is(err, errNotBegun)
	if failed && !r.fails(err) {
		err = r.lateCause()
	}
	lerr := r.tellAll()
	if !failed {
		return lerr
	}
	r.cause = err
	return errors.Join(err, lerr, r.listen(func(l *Listener) {
		if l.BatchFailed != nil {
			l.BatchFailed(r.cur.batch, err)
		}
	}))
}

// lateCause is the error of an aborted run: a *StopTimeoutError, which says more
// than what the abort did to some call. It was made when nobody knew how a commit
// under way would end.
func (r *run) lateCause() error {
	cause := context.Cause(r.hard)
	var late *StopTimeoutError
	if errors.As(cause, &late) && late.Committing && r.cur != nil {
		known := *late
		known.Committing, known.Committed = r.cur.unknown, r.cur.committed
		return &known
	}
	return cause
}

// changeDue says that the layout is to be changed before the next epoch.
func (r *run) changeDue() bool { return r.durable != nil && r.durable.change && !r.stopping() }

// tellAll tells the listeners what has come up beside the batches.
func (r *run) tellAll() error {
	err := errors.Join(r.tellEvents(), r.tellSources())
	if r.durable != nil {
		err = errors.Join(err, r.durable.tellNotices())
	}
	return err
}

// handled tells the test kit which ticks need nothing more.
func (r *run) handled(e core.Event) {
	h := r.harness
	if h == nil || e.Kind == core.EvFailed {
		return
	}
	b, running := r.core.Batch()
	switch {
	case !running:
		h.TickHandled(r.core.NextTick() - int64(r.ssc.cfg.interval))
	case e.Kind == core.EvCommitted:
		h.TickHandled(b.Prev)
	}
}

func (r *run) allDone() (bool, error) {
	for _, in := range r.inputs {
		if !in.done() {
			return false, nil
		}
	}
	return true, nil
}
