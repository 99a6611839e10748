package dstream

import (
	"time"

	"github.com/statemill/statemill/source/receiver"
)

// Events that come up beside the batches are noted by whoever sees them, and told
// by the hand between two phases: listeners are never called from two goroutines at
// once.

// mostSkippedTold bounds the ticks that are told one by one: a clock may jump far.
const mostSkippedTold = 1000

// note keeps an event for the listeners.
func (r *run) note(event func(l *Listener)) {
	if len(r.ssc.cfg.listeners) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// noteTicked notes what became of the ticks from next on up to the planner's new
// next one: the first n were skipped, the others will be batches.
func (r *run) noteTicked(next int64, n uint64) {
	interval := int64(r.ssc.cfg.interval)
	for t := next; t < r.core.NextTick(); t += interval {
		at := time.Unix(0, t).UTC()
		if n == 0 {
			r.note(func(l *Listener) {
				if l.BatchSubmitted != nil {
					l.BatchSubmitted(at)
				}
			})
			continue
		}
		n--
		if !r.tellsSkip() {
			t += interval * int64(n) // the rest of a long row
			n = 0
			continue
		}
		r.note(func(l *Listener) {
			if l.TickSkipped != nil {
				l.TickSkipped(at)
			}
		})
	}
}

// tellsSkip says whether one more skipped tick is to be told by itself.
func (r *run) tellsSkip() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipsTold++
	return r.skipsTold <= mostSkippedTold
}

// noteReceiver notes what happened to a receiver.
func (r *run) noteReceiver(source string, e receiver.Event) {
	r.note(func(l *Listener) {
		switch {
		case e.Kind == receiver.Started && l.ReceiverStarted != nil:
			l.ReceiverStarted(source)
		case e.Kind == receiver.Failed && l.ReceiverFailed != nil:
			l.ReceiverFailed(source, e.Err)
		case e.Kind == receiver.Stopped && l.ReceiverStopped != nil:
			l.ReceiverStopped(source, e.Err)
		}
	})
}

// tellEvents tells the listeners of what was noted.
func (r *run) tellEvents() error {
	r.mu.Lock()
	events := r.events
	r.events, r.skipsTold = nil, 0
	r.mu.Unlock()
	if len(events) == 0 {
		return nil
	}
	return r.listen(func(l *Listener) {
		for _, tell := range events {
			tell(l)
		}
	})
}
