package dstream

import (
	"time"

	"github.com/statemill/statemill/internal/sabotage"
)

// noteHold takes note of whether the clock is held: whether it shows a time behind
// one that it has shown. Each hold is told and counted once.
func (r *run) noteHold(behind bool) {
	r.mu.Lock()
	before := !r.heldUntil.IsZero()
	r.heldUntil = time.Time{}
	if behind {
		r.heldUntil = time.Unix(0, r.core.NextTick()).UTC()
	}
	held := ClockHeld{Now: r.clock.Now().UTC(), Until: r.heldUntil}
	if behind && !before {
		r.holds++
	}
	r.mu.Unlock()
	if behind && !before && !sabotage.On("hold-untold") {
		r.note(func(l *Listener) {
			if l.ClockHeld != nil {
				l.ClockHeld(held)
			}
		})
	}
}

// held is the time of the next batch while the clock is held, else zero.
func (r *run) held() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heldUntil
}
