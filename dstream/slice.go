package dstream

import (
	"fmt"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// BatchRDD is the RDD of one batch of a stream.
type BatchRDD[T any] struct {
	Time time.Time
	RDD  *RDD[T]
}

// Slice gives the RDDs of the committed batches of a stream with times from
// from to until, both included. Times off the grid of the stream's slide are moved
// down to it. The stream must be one that an output depends on (others do not run) and that is kept:
// one with two or more consumers or with an output of its own, or one set to Cache or
// Remember.
//
// Each RDD is retained for the caller, who must Release it. A batch that the
// stream no longer remembers is a *ForgottenError, also one of an earlier run on the
// checkpoint, of which only what windows read is kept; batches before the first one
// are left out. When the run has ended nothing is remembered: that is ErrStopped.
func Slice[T any](in Stream[T], from, until time.Time) ([]BatchRDD[T], error) {
	n := nodeOf(in)
	if n == nil || n.ssc == nil {
		return nil, fmt.Errorf("dstream: slice of a nil stream")
	}
	n.ssc.mu.Lock()
	r := n.ssc.run
	n.ssc.mu.Unlock()
	if r == nil {
		return nil, fmt.Errorf("dstream: slice of %q: %w", n.label(), ErrNotStarted)
	}
	if !n.live && !sabotage.On("not-live-not-told") {
		return nil, fmt.Errorf("dstream: slice of %q: no output depends on it, so it does not run: give it one, or make what you slice another way", n.label())
	}
	if !n.kept && !n.stable {
		return nil, fmt.Errorf("dstream: slice of %q: its records are not kept: call Cache or Remember on the stream", n.label())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return nil, fmt.Errorf("dstream: slice of %q: %w, and its batches are let go: slice before the stop, and keep the RDDs", n.label(), ErrStopped)
	}
	var out []BatchRDD[T]
	release := func() {
		for _, s := range out {
			s.RDD.Release()
		}
	}
	first, last := r.gridTime(n, from), r.gridTime(n, until)
	if !first.After(r.zero) { // also so that a far past costs no walk over its grid
		first = r.zero.Add(n.grid())
	}
	for t := first; !t.After(last) && !t.After(r.committedAt); t = t.Add(n.grid()) {
		kept, ok, err := r.remembers(n, t)
		if err == nil && ok {
			typed := kept.(*rdd.RDD[T])
			if err = typed.Retain(); err == nil {
				out = append(out, BatchRDD[T]{t.UTC(), typed})
			}
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return out, nil
}

// gridTime moves t down to the grid of a stream's times.
func (r *run) gridTime(n *node, t time.Time) time.Time {
	return r.zero.Add(t.Sub(r.zero).Truncate(n.grid()))
}

// remembers gives the RDD of a stream at a batch time; ok is false for a tick
// that got no batch. mu is held.
func (r *run) remembers(n *node, t time.Time) (kept any, ok bool, err error) {
	// Asked first: the driver lets go of a batch a moment after the commit.
	if !t.After(r.committedAt.Add(-r.rememberOf(n))) {
		return nil, false, &ForgottenError{Stream: n.label(), Time: t.UTC(), Remember: r.rememberOf(n)}
	}
	for _, b := range r.remembered {
		if at, due := b.slides(n); due && at.Equal(t) {
			if s := b.slots[n.id]; s.made {
				return s.rdd, true, s.err
			}
			return nil, false, r.missing(n, t)
		}
	}
	return nil, false, r.missing(n, t)
}

// missing is an error if a time without an RDD may be that of a batch of an earlier run:
// of those only what windows read is remembered. mu is held.
func (r *run) missing(n *node, t time.Time) error {
	if t.After(r.foundAt) || sabotage.On("earlier-batches-left-out") {
		return nil
	}
	for _, b := range r.remembered { // the next batch of the stream says which one came before
		if at, due := b.slides(n); due && b.slots[n.id].made && t.Before(at) && t.After(b.prev) {
			return nil
		}
	}
	return &ForgottenError{Stream: n.label(), Time: t.UTC(), Remember: r.rememberOf(n), Earlier: true}
}
