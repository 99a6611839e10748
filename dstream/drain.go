package dstream

import (
	"context"
	"errors"
	"sync"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// draining is the first part of a graceful stop: sources that cannot get again what
// they took in (source.Drainer) take in nothing more, and batches go on, at their
// times, until all that they hold is committed. Without such sources the running batch
// is the last one. The loop alone uses it.
type draining struct {
	r    *run
	from []*input // what is drained
	ctx  context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	// over is closed when no source takes in anything any more; nil before begin.
	over chan struct{}
	// taken is over, until the loop has seen it.
	taken <-chan struct{}
}

func newDraining(r *run) *draining {
	d := &draining{r: r, from: r.drainable()}
	d.ctx, d.end = context.WithCancel(r.hard)
	return d
}

// drainable are the sources that a graceful stop drains.
func (r *run) drainable() (all []*input) {
	for _, in := range r.inputs {
		if _, ok := in.src.(source.Drainer); ok && !sabotage.On("stop-drains-nothing") {
			all = append(all, in)
		}
	}
	return all
}

// begin tells the sources; it does not wait for them.
func (d *draining) begin() {
	if d.begun() || len(d.from) == 0 {
		return
	}
	d.over = make(chan struct{})
	d.taken = d.over
	for _, in := range d.from {
		d.all.Go(func() {
			// A panic ends the draining of this source; its next call will tell.
			_ = callErr(in.name(), func() error {
				in.src.(source.Drainer).Drain(d.ctx)
				return nil
			})
		})
	}
	go func() {
		d.all.Wait()
		close(d.over)
	}()
}

// begun says that there is something to drain, and a stop was asked for.
func (d *draining) begun() bool { return d.over != nil }

// done says that no further batch is wanted: all that was taken in is in plans, of
// which the newest may still be under way.
func (d *draining) done() bool {
	if !d.begun() {
		return true
	}
	select {
	case <-d.over:
	default:
		return false
	}
	return len(d.left()) == 0
}

// left names the sources that have something which is not planned.
func (d *draining) left() (names []string) {
	for _, in := range d.from {
		if done, err := call(in.name(), func() (bool, error) { return in.done(), nil }); err == nil && !done {
			names = append(names, in.name())
		}
	}
	return names
}

// leave ends what begin has begun.
func (d *draining) leave() {
	d.end()
	if d.begun() {
		<-d.over
	}
}

// unread adds to the error of an aborted stop which sources were not drained; without
// them, an abort while no batch runs is no error of the run.
func (r *run) unread(err error, d *draining) error {
	if !d.begun() || r.hard.Err() == nil {
		return err
	}
	d.leave()
	var late *StopTimeoutError
	if left := d.left(); len(left) > 0 && (errors.As(err, &late) || err == nil && errors.As(r.lateCause(), &late)) {
		told := *late
		told.Unread = left
		return &told
	}
	return err
}
