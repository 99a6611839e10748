package dstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
)

// requestStop lets no further batch begin, behind what is drained.
func (r *run) requestStop() {
	r.end()
	if len(r.drainable()) == 0 {
		r.halts()
	}
}

func (r *run) stopping() bool { return r.soft.Err() != nil }

// stopGrace is how long an aborted batch may take to come back from user code
// before it is left alone.
const stopGrace = time.Second

// askStop notes that a stop is asked for, by Stop or by the end of Run's context, and
// says whether one was before.
func (r *run) askStop() (second bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	second = r.stopAsked
	r.stopAsked = true
	return second
}

// stop ends the run, at once or when the running batch is done; see
// StreamingContext.Stop. One that was left alone may have come back meanwhile: it gets
// the grace once more.
func (r *run) stop(ctx context.Context, now bool) error {
	r.requestStop()
	select {
	case <-r.done:
		return r.outcome()
	case <-r.left:
		return r.giveUp()
	default:
	}
	if now && !sabotage.On("second-stop-waits") {
		return r.giveUp()
	}
	return r.waitBounded(ctx)
}

// waitBounded waits for the end of the run until the stop timeout passes or ctx ends,
// and then gives it up.
func (r *run) waitBounded(ctx context.Context) error {
	limit := r.ssc.cfg.stopTimeout
	if limit == 0 {
		limit = defaultStopTimeout(r.ssc.cfg.interval)
	}
	timer := r.clock.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-r.left:
	case <-timer.C():
		return r.giveUp()
	case <-ctx.Done():
		return r.giveUp()
	}
	return r.outcome()
}

// giveUp aborts the run, and leaves it alone if it does not end then.
func (r *run) giveUp() error {
	late := r.abortLate()
	grace := r.clock.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-r.done:
	case <-grace.C():
		if late.Idle { // what closes slowly began after that
			now := *late
			now.Tasks = r.tasks()
			late = &now
		}
		r.leftOnce.Do(func() {
			r.leftErr = late
			close(r.left)
		})
	}
	return r.outcome()
}

// outcome is the run's error when it has ended, and else that with which it was left
// alone; one of done and left is closed.
func (r *run) outcome() error {
	select {
	case <-r.done:
		return r.ssc.result()
	default:
		return r.leftErr
	}
}

// wait waits for the end of the run, or until a stop has given up waiting for
// user code: whoever waits shall not hang with it. When the run has failed, that is
// bounded as a stop is: its error shall not wait for what is being closed. It is false if
// ctx ends first.
func (r *run) wait(ctx context.Context) (err error, ended bool) {
	over := r.over
	if sabotage.On("failure-waits-for-closing") {
		over = nil
	}
	select {
	case <-r.done:
	case <-r.left:
	case <-over:
		return r.waitBounded(context.Background()), true
	case <-ctx.Done():
		return nil, false
	}
	return r.outcome(), true
}

// abortLate aborts the run. Whether the running epoch is committed is decided
// here, under mu: what the error says stays true, however late the tasks come
// back.
func (r *run) abortLate() *StopTimeoutError {
	tasks := r.tasks()
	r.mu.Lock()
	defer r.mu.Unlock()
	late := &StopTimeoutError{Batch: r.last, Committed: r.epoch >= r.last.Epoch, Committing: r.committing, Tasks: tasks, Cause: r.overErr}
	if late.Idle = late.Cause != nil || late.Committed && !r.busy; late.Idle {
		late.Batch = Batch{Epoch: r.epoch, Time: r.committedAt}
		late.Committed, late.Committing = true, false
	}
	r.abort(late)
	r.lateOnce.Do(func() { close(r.late) })
	return late
}

// fails notes the error by which the run ends, before anything is closed. It is false if
// the run was aborted before: then that is why.
func (r *run) fails(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.overErr != nil:
		return true
	case r.hard.Err() != nil:
		return false
	}
	r.overErr = err
	close(r.over)
	return true
}

// ending is why nothing is tried any more, as a class of ErrNotReady; nil while the run goes on.
func (r *run) ending() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.overErr != nil:
		return fmt.Errorf("%w: the run has failed, and what it opened is being closed: %w", ErrNotReady, r.overErr)
	case r.hard.Err() != nil:
		return fmt.Errorf("%w: the run is being aborted: %w", ErrNotReady, context.Cause(r.hard))
	}
	return nil
}

// tasks names what is in user code.
func (r *run) tasks() []string {
	tasks := r.exec.tally.tasks()
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(tasks, slices.Sorted(maps.Keys(r.doing))...)
}
