package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
)

// A broker that has a quota for a client answers at once and says for how long it reads
// nothing more from the connection (KIP-219). What is asked meanwhile would look like
// silence, and would be asked again on another connection, which passes the quota by and
// leaves a request behind that arrives later. Fetches heed it where they are made.

// quota is until when brokers want to be left alone. Its methods may be called from any
// goroutine.
type quota struct {
	cfg *config // its clock

	mu    sync.Mutex
	until map[string]time.Time // by address
}

// absurdThrottle is what no quota asks for: their windows are seconds. Such a time is a
// damaged answer's.
const absurdThrottle = time.Hour

// note notes what a broker said.
func (q *quota) note(addr string, d time.Duration) {
	if d <= 0 || d > absurdThrottle || sabotage.On("kafka-quota-unheeded") {
		return
	}
	until := q.cfg.clock.Now().Add(min(d, longestThrottle))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.until == nil {
		q.until = map[string]time.Time{}
	}
	if until.After(q.until[addr]) {
		q.until[addr] = until
	}
}

// heed waits until a broker may be asked again: a minute at most, or until the context
// ends.
func (q *quota) heed(ctx context.Context, addr string) error {
	for {
		q.mu.Lock()
		until, muted := q.until[addr]
		q.mu.Unlock()
		if !muted {
			return nil
		}
		left := until.Sub(q.cfg.clock.Now())
		if left <= 0 {
			q.mu.Lock()
			if q.until[addr].Equal(until) {
				delete(q.until, addr)
			}
			q.mu.Unlock()
			return nil
		}
		if err := clock.Wait(ctx, q.cfg.clock, min(left, longestThrottle)); err != nil {
			return err
		}
	}
}
