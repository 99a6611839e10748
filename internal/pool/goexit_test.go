package pool_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/pool"
)

// A task that ends its goroutine fails; it is not taken for one that succeeded.
func TestGoexitIsAFailure(t *testing.T) {
	start := make(chan struct{}) // worker 0, the caller's goroutine, waits for the other to be there
	var running atomic.Int64
	err := pool.Run(context.Background(), 2, 2, func(_ context.Context, worker, _ int) error {
		if worker == 1 {
			close(start)
			runtime.Goexit()
		}
		<-start
		return nil
	})
	require.ErrorIs(t, err, pool.ErrGoexit)

	// On the caller's goroutine there is nobody to tell, but nobody is left behind.
	done := make(chan bool)
	go func() {
		returned := false
		defer func() { done <- returned || running.Load() != 0 }()
		there := make(chan struct{})
		_ = pool.Run(context.Background(), 2, 2, func(ctx context.Context, worker, _ int) error {
			if worker == 0 {
				<-there
				runtime.Goexit()
			}
			running.Add(1)
			defer running.Add(-1)
			close(there)
			<-ctx.Done()
			return ctx.Err()
		})
		returned = true
	}()
	require.False(t, <-done)
}
