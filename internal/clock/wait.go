package clock

import (
	"context"
	"time"
)

// Wait returns nil when d has passed by k, or the cause of ctx's end if that comes
// first.
func Wait(ctx context.Context, k Clock, d time.Duration) error {
	t := k.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
