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
	perSecond float64 // 0: no bound
	clock     clock.Clock

	mu   sync.Mutex
	free time.Time // from when on the next may pass
}

func (r *rate) wait(ctx context.Context, n int) error {
	if r.perSecond == 0 {
		return ctx.Err()
	}
	r.mu.Lock()
	now := r.clock.Now()
	at := r.free
	if at.Before(now) {
		at = now
	}
	r.free = at.Add(time.Duration(float64(n) / r.perSecond * float64(time.Second)))
	r.mu.Unlock()
	if !at.After(now) {
		return ctx.Err()
	}
	return clock.Wait(ctx, r.clock, at.Sub(now))
}
