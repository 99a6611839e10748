package hostile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/vfs"
)

// play feeds a run its input until it ends.
func (l *life) play() (err error) {
	for n := 0; n < len(input) && err == nil; n++ {
		l.w.fill(n + 1)
		err = l.tick(1)
	}
	return err
}

// Run's context is cancelled at any call to the file system: at the start, while state
// is loaded, between epochs, in mid-commit. Run returns nil, the lock is given back,
// and the next run goes on.
func TestCancelAtEveryCall(t *testing.T) {
	for k := 1; ; k += 5 {
		w := newWorld(t)
		w.fill(2)
		once := w.life(twoOutputs(w)) // so that there is state to load
		require.NoError(t, once.ssc.Start())
		require.NoError(t, once.tick(2))
		require.NoError(t, once.stop())

		mem := w.fs
		var f vfs.Faults
		w.fs = vfs.WithFaults(mem, &f)
		ctx, cancel := context.WithCancel(context.Background())
		var hit atomic.Bool
		f.Do(vfs.Rule{K: k}, func(vfs.Call) { hit.Store(true); cancel() })
		l := w.life(twoOutputs(w))
		ended := make(chan error, 1)
		go func() { ended <- l.ssc.Run(ctx) }()
		if l.h.WaitStarted(context.Background()) == nil {
			_ = l.play()
		}
		cancel()
		require.NoError(t, <-ended, "call %d", k)
		w.now = l.clock.Now()
		w.fs = mem
		w.finish(fmt.Sprint("call ", k))
		if !hit.Load() {
			require.Greater(t, k, 100)
			return
		}
	}
}

// A second stop at any call aborts: at worst the epoch is redone.
func TestAbortAtEveryCall(t *testing.T) {
	for k := 1; ; k += 9 {
		w := newWorld(t)
		mem := w.fs
		var f vfs.Faults
		w.fs = vfs.WithFaults(mem, &f)
		l := w.life(twoOutputs(w))
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		var stops sync.WaitGroup
		var hit atomic.Bool
		f.Do(vfs.Rule{K: k}, func(vfs.Call) {
			hit.Store(true)
			stops.Go(func() { _ = l.ssc.Stop(gone) })
		})
		err := l.ssc.Start()
		if errors.Is(err, dstream.ErrStopped) {
			err = nil // it came before the run began
		} else if err == nil {
			_ = l.play()
		}
		err = errors.Join(err, l.ssc.Stop(context.Background()))
		if err != nil {
			require.ErrorIs(t, err, dstream.ErrStopTimeout, "call %d", k)
		}
		stops.Wait()
		w.now = l.clock.Now()
		w.fs = mem
		w.finish(fmt.Sprint("call ", k))
		if !hit.Load() {
			return
		}
	}
}

// A listener that does not return is named by the stop that gives up waiting; what was
// committed before it stays.
func TestListenerBlocks(t *testing.T) {
	w := newWorld(t)
	w.fill(2)
	gate, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l := w.life(twoOutputs(w), dstream.WithListener(dstream.Listener{BatchCompleted: func(dstream.Progress) {
		once.Do(func() { close(entered); <-gate })
	}}))
	require.NoError(t, l.ssc.Start())
	l.clock.Advance(l.interval)
	<-entered
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- l.ssc.Stop(gone) }()
	require.NoError(t, l.clock.BlockUntil(context.Background(), 1))
	for len(stopped) == 0 {
		l.clock.Advance(l.interval) // the grace
	}
	err := <-stopped
	require.ErrorIs(t, err, dstream.ErrStopTimeout)
	require.ErrorContains(t, err, "listener")
	require.ErrorContains(t, err, "is committed")
	close(gate)
	_ = l.ssc.Stop(context.Background())
	w.now = l.clock.Now()
	w.finish("")
}
