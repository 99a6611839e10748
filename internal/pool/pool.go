// Package pool runs a numbered set of tasks on a bounded number of goroutines,
// and keeps used scratch objects for reuse.
//
// [Run] joins every goroutine before it returns, and its error does not depend
// on the timing of the workers more than it must: of the tasks that failed, the
// lowest number wins. Panics are not caught here; a task that may panic
// recovers itself.
package pool

import (
	"context"
	"errors"
	"sync"
)

// ErrGoexit is the error of a task that ended its goroutine instead of returning.
var ErrGoexit = errors.New("user code ended its goroutine (runtime.Goexit, as t.FailNow and require do): return an error instead")

// Run calls task for every i in 0..n-1 on at most workers goroutines and
// returns when all of them have ended. Tasks are begun in index order. With one
// worker (or fewer), or one task, it runs them inline on the caller's goroutine.
//
// worker is in [0, workers) and no two tasks run at once with the same worker,
// so it can index scratch space. The context given to the tasks is cancelled at
// the first error, and no task begins after that. Of the errors, that of the
// lowest index is returned; cancellation errors that only follow from another
// task's failure never win. A task that ends its goroutine (runtime.Goexit) fails with
// ErrGoexit; on the caller's goroutine nothing is left to return the error to, and
// Run only joins the others. If ctx ends before all tasks have begun and none
// failed, the cause of ctx is returned.
func Run(ctx context.Context, workers, n int, task func(ctx context.Context, worker, i int) error) error {
	workers = max(1, min(workers, n))
	if workers == 1 {
		return runInline(ctx, n, task)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{n: n, failed: n, fallbackAt: n, cancel: cancel}
	var wg sync.WaitGroup
	defer wg.Wait() // also when a task ends the caller's goroutine
	for w := 1; w < workers; w++ {
		wg.Go(func() { r.work(inner, w, task) })
	}
	// The caller's goroutine is worker 0: one goroutine less to start.
	r.work(inner, 0, task)
	wg.Wait()
	return r.result(ctx)
}

func runInline(ctx context.Context, n int, task func(ctx context.Context, worker, i int) error) error {
	for i := range n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := task(ctx, 0, i); err != nil {
			return err
		}
	}
	return nil
}

// run is the state that the workers of one Run share.
type run struct {
	n      int
	cancel context.CancelFunc

	mu   sync.Mutex
	next int
	// err is the error of task failed, the lowest that failed by itself.
	err    error
	failed int
	// fallback is the error of task fallbackAt, the lowest that only reported
	// its cancellation. It counts if nothing failed by itself.
	fallback   error
	fallbackAt int
}

func (r *run) work(ctx context.Context, worker int, task func(ctx context.Context, worker, i int) error) {
	doing := -1
	defer func() {
		if doing >= 0 {
			r.fail(ctx, doing, ErrGoexit)
		}
	}()
	for {
		i, ok := r.take(ctx)
		if !ok {
			return
		}
		doing = i
		if err := task(ctx, worker, i); err != nil {
			r.fail(ctx, i, err)
		}
		doing = -1
	}
}

func (r *run) take(ctx context.Context) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next >= r.n || ctx.Err() != nil {
		return 0, false
	}
	i := r.next
	r.next++
	return i, true
}

func (r *run) fail(ctx context.Context, i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	follows := ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
	switch {
	case follows && i < r.fallbackAt:
		r.fallback, r.fallbackAt = err, i
	case !follows && i < r.failed:
		r.err, r.failed = err, i
	}
	r.cancel()
}

func (r *run) result(ctx context.Context) error {
	switch {
	case r.err != nil:
		return r.err
	case r.fallback != nil:
		return r.fallback
	case r.next < r.n:
		return context.Cause(ctx)
	}
	return nil
}
