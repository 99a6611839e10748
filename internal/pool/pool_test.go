package pool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errOdd = errors.New("odd")

func TestRunCallsEachOnceInOrderWithItsOwnWorker(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers, n := rapid.IntRange(-1, 9).Draw(rt, "workers"), rapid.IntRange(0, 40).Draw(rt, "n")
		calls := make([]atomic.Int32, n)
		busy := make([]atomic.Bool, max(1, workers))
		var mu sync.Mutex
		last := make([]int, max(1, workers))
		err := Run(context.Background(), workers, n, func(_ context.Context, w, i int) error {
			if !busy[w].CompareAndSwap(false, true) {
				return errOdd // two tasks at once on one worker
			}
			defer busy[w].Store(false)
			mu.Lock()
			defer mu.Unlock()
			if i < last[w] {
				return errOdd // not in order
			}
			last[w] = i
			calls[i].Add(1)
			return nil
		})
		require.NoError(rt, err)
		for i := range calls {
			require.EqualValues(rt, 1, calls[i].Load())
		}
	})
}

func TestRunUsesAllWorkersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		gate := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- Run(t.Context(), 3, 5, func(context.Context, int, int) error {
				running.Add(1)
				<-gate
				return nil
			})
		}()
		synctest.Wait()
		require.EqualValues(t, 3, running.Load())
		close(gate)
		require.NoError(t, <-done)
		require.EqualValues(t, 5, running.Load())
	})
}

// With one worker or one task everything happens on the caller's goroutine: a
// panic comes out of Run itself.
func TestRunInline(t *testing.T) {
	for _, c := range [][2]int{{1, 3}, {8, 1}, {0, 2}} {
		require.PanicsWithValue(t, "here", func() {
			_ = Run(context.Background(), c[0], c[1], func(context.Context, int, int) error { panic("here") })
		})
	}
}

func TestRunReturnsTheLowestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := errors.New("one"), errors.New("two")
		var begun atomic.Int32
		err := Run(t.Context(), 3, 9, func(ctx context.Context, _, i int) error {
			begun.Add(1)
			switch i {
			case 0: // only follows: must not win although it is the lowest
				<-ctx.Done()
				return ctx.Err()
			case 1: // fails later than two, by itself
				<-ctx.Done()
				return one
			}
			return two
		})
		require.Equal(t, one, err)
		require.EqualValues(t, 3, begun.Load(), "no task begins after a failure")
	})
}

// An error that looks like a cancellation but came first is a failure like any.
func TestRunFirstErrorMayBeACancellation(t *testing.T) {
	err := Run(context.Background(), 2, 2, func(ctx context.Context, _, i int) error {
		if i == 1 {
			return context.Canceled
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestRunParentCancelled(t *testing.T) {
	stop := errors.New("stop")
	for _, workers := range []int{1, 4} {
		ctx, cancel := context.WithCancelCause(context.Background())
		var begun atomic.Int32
		err := Run(ctx, workers, 100, func(context.Context, int, int) error {
			begun.Add(1)
			cancel(stop)
			return nil
		})
		require.Equal(t, stop, err)
		require.Less(t, begun.Load(), int32(100))
		// Tasks that report the cancellation, none that failed by itself.
		err = Run(ctx, workers, 2, func(ctx context.Context, _, _ int) error { return ctx.Err() })
		require.Equal(t, stop, err)
	}
	// All tasks had ended well when the parent was cancelled: a success.
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, Run(ctx, 1, 1, func(context.Context, int, int) error { cancel(); return nil }))
}

func TestRunReportsCancelledTasks(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := Run(ctx, 2, 2, func(ctx context.Context, _, i int) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestRunInlineStopsAtError(t *testing.T) {
	n := 0
	require.Equal(t, errOdd, Run(context.Background(), 1, 5, func(context.Context, int, int) error { n++; return errOdd }))
	require.Equal(t, 1, n)
}

func TestFreeList(t *testing.T) {
	var l FreeList[int]
	v := l.Get()
	require.Zero(t, *v)
	*v = 7
	l.Put(v)
	require.Same(t, v, l.Get())
	l.Put(nil)
	require.NotNil(t, l.Get())

	small := FreeList[int]{Max: 1}
	a, b := small.Get(), small.Get()
	*a, *b = 1, 2
	small.Put(a)
	small.Put(b)
	require.Same(t, a, small.Get())
	require.Zero(t, *small.Get(), "the second was dropped")

	none := FreeList[int]{Max: -1}
	none.Put(a)
	require.Zero(t, *none.Get())

	for range 2 * defaultMax {
		l.Put(new(int))
	}
	require.Len(t, l.free, defaultMax)
}
