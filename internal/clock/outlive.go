package clock

import (
	"context"
	"time"
)

// Outlive is a context that ends d after ctx does, with ctx's cause: for the last call of
// what is being stopped, which is worth a bounded wait. The bound is by the machine's own
// clock, as those of the context package. Call the function that it gives when the call
// has returned; nothing is left of it then.
func Outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		rest, done := context.WithTimeout(longer, d)
		defer done()
		<-rest.Done()
		cancel(context.Cause(ctx))
	})
	return longer, func() {
		stop()
		cancel(context.Canceled)
	}
}
