package receiver

import (
	"context"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
)

// rate lets records pass at no more than a rate: each call waits for what the
// calls before it have used.
type rate struct {
	perSecond float64 // or Unlimited
	clock     clock.Clock

	mu   sync.Mutex
	free time.Time // from when on the next may pass
}

// longestWait is 73 years: more nanoseconds than that may not be a time.Duration.
const longestWait = 1 << 61

func (r *rate) wait(ctx context.Context, n int) error {
	if r.perSecond == Unlimited {
		return ctx.Err()
	}
	r.mu.Lock()
	now := r.clock.Now()
	at := r.free
	if at.Before(now) {
		at = now
	}
	used := float64(n) / r.perSecond * float64(time.Second)
	r.free = at.Add(time.Duration(min(used, longestWait))) // a low rate is not to become none
	r.mu.Unlock()
	if !at.After(now) {
		return ctx.Err()
	}
	return clock.Wait(ctx, r.clock, at.Sub(now))
}
