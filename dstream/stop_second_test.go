package dstream_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source/receiver"
)

// waiting makes a context whose output waits in epoch 2 until release is closed, or, if it
// obeys, until it is told to end; it tells when it is there. It lives by the bubble's clock.
func waiting(obeys bool) (c ssc, there, release chan struct{}) {
	there, release = make(chan struct{}), make(chan struct{})
	c = dstream.New(time.Second, dstream.WithStopTimeout(time.Hour), dstream.WithOutput(discard{}))
	dstream.ForeachRDD(dstream.From(c, "in", newScript(1, []int{1}, []int{2}, []int{3})),
		func(ctx context.Context, b dstream.Batch, _ *dstream.RDD[int]) error {
			if b.Epoch < 2 {
				return nil
			}
			close(there)
			if !obeys {
				<-release
				return nil
			}
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, dstream.Name("slow"))
	return c, there, release
}

// after says that no more than d has passed since the given time.
func after(t *testing.T, from time.Time, d time.Duration) {
	t.Helper()
	require.LessOrEqual(t, clock.System().Now().Sub(from), d)
}

// report 37, D11: a second Stop while one waits is the second signal, and aborts the
// running batch at once; so is a first one after the context of Run has ended.
func TestSecondStopCallAborts(t *testing.T) {
	for _, first := range []string{"Stop", "context of Run"} {
		for _, obeys := range []bool{true, false} {
			t.Run(first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, there, release := waiting(obeys)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					ended := make(chan error, 2)
					go func() { ended <- c.Run(ctx) }()
					<-there
					if first == "Stop" {
						go func() { ended <- c.Stop(context.Background()) }()
					} else {
						cancel()
						ended <- dstream.ErrStopTimeout
					}
					synctest.Wait()
					require.LessOrEqual(t, len(ended), 1, "the first one waits for the batch")
					before := clock.System().Now()
					err := c.Stop(context.Background())
					after(t, before, time.Second)
					var late *dstream.StopTimeoutError
					require.ErrorAs(t, err, &late)
					require.EqualValues(t, 2, late.Batch.Epoch)
					require.False(t, late.Committed)
					require.Equal(t, []string{"output slow"}, late.Tasks)
					require.ErrorIs(t, <-ended, dstream.ErrStopTimeout)
					require.ErrorIs(t, <-ended, dstream.ErrStopTimeout)
					after(t, before, time.Second)
					// As in a deferred call: it may have come back, and gets the grace again.
					require.Equal(t, err.Error(), c.Stop(context.Background()).Error())
					after(t, before, 2*time.Second)
					close(release)
					<-dstream.Done(c)
				})
			})
		}
	}
}

// report 37: what is no second Stop aborts nothing: the end of Run's context while a Stop
// waits, a Wait, and a Stop of what has ended.
func TestNoSecondStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, there, release := waiting(true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 3)
		go func() { ended <- c.Run(ctx) }()
		<-there
		go func() { ended <- c.Stop(context.Background()) }()
		go func() { ended <- c.Wait() }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Empty(t, ended)
		require.False(t, dstream.Aborted(c))
		close(release)
		for range 3 {
			require.NoError(t, <-ended)
		}
		p, _ := c.LastProgress()
		require.EqualValues(t, 2, p.Batch.Epoch)
		require.NoError(t, c.Stop(context.Background()))
		require.NoError(t, c.Stop(context.Background()))
		require.False(t, dstream.Aborted(c))
	})
}

// deep calls f so many calls down.
func deep(n int, f func() error) error {
	if n == 0 {
		return f()
	}
	return deep(n-1, f)
}

// G2: a Stop and a Wait from within are found however deep they are called, and in a
// receiver, which a stop waits for.
func TestInsideAtAnyDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		c := dstream.New(time.Second, dstream.WithStopTimeout(time.Hour), dstream.WithOutput(discard{}))
		var mu sync.Mutex
		errs := map[int]error{}
		note := func(depth int, err error) {
			mu.Lock()
			defer mu.Unlock()
			errs[depth] = err
		}
		in := dstream.From(c, "in", newScript(1, []int{1}, []int{2}))
		dstream.ForeachRDD(in, func(context.Context, dstream.Batch, *dstream.RDD[int]) error {
			for _, depth := range []int{0, 100, 128, 200, 5000} {
				note(depth, deep(depth, func() error { return c.Stop(gone) }))
			}
			return nil
		})
		words := receiver.Func[string](func(ctx context.Context, _ receiver.Store[string]) error {
			note(-1, c.Stop(gone))
			<-ctx.Done()
			return nil
		})
		dstream.Print(dstream.ReceiverStream(c, "words", t.TempDir(), nil, receiver.Receiver[string](words)), 1)
		require.NoError(t, c.Start())
		<-time.After(1500 * time.Millisecond)
		require.NoError(t, c.Stop(context.Background()))
		require.Len(t, errs, 6)
		for depth, err := range errs {
			require.ErrorIs(t, err, dstream.ErrInside, "depth %d", depth)
		}
		require.False(t, dstream.Aborted(c))
	})
}
