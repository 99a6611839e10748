package dstream_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
)

// blocking is a job whose stateful function waits in batch 7 until release is
// closed; it tells when it is there.
func blocking(src *script[string], there, release chan struct{}) dstream.Job {
	return func(c ssc) error {
		pairs := dstream.MapPair(dstream.From(c, "in", src), func(s string) (string, int) { return s, 1 })
		outputs(dstream.MapWithState(pairs, dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) int {
			n := count(k, v, s)
			if n == 7 {
				close(there)
				<-release
			}
			return n
		}).Named("count").NumPartitions(1)))
		return nil
	}
}

func sevens() *script[string] {
	return newScript(1, [][]string{{"a"}, {"a"}, {"a"}, {"a"}, {"a"}, {"a"}, {"a"}, {"a"}, {"a"}}...)
}

// Report 37: cancelling in the middle of batch 7 commits it, begins no batch 8,
// and is no error; the sources are closed after that.
func TestCancelFinishesTheBatch(t *testing.T) {
	there, release := make(chan struct{}), make(chan struct{})
	src := sevens()
	r := newRig(t, time.Second, blocking(src, there, release))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- r.ssc.Run(ctx) }()
	wait, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	require.NoError(t, r.h.WaitStarted(wait))
	r.tick(6)
	r.clock.Advance(time.Second)
	<-there
	cancel()
	require.NoError(t, r.clock.BlockUntil(wait, 2)) // the driver's and the stop timeout's
	r.clock.Advance(2 * time.Second)                // ticks 8 and 9 pass meanwhile
	close(release)
	require.NoError(t, <-result)
	require.EqualValues(t, 7, r.h.Engine().Epoch())
	require.Equal(t, map[string]int{"a": 7}, stateOf[string, int](r, "count"))
	require.Len(t, out[int](r, "mapped"), 7)
	require.Len(t, src.committed, 7)
	require.True(t, src.closed)
	ended, err := r.h.Result()
	require.True(t, ended)
	require.NoError(t, err)
}

// Report 37: with the grace exceeded the batch is dropped whole, and the error
// names what is still in user code. Report 27: Run returns within grace + 1 s.
func TestStopTimeout(t *testing.T) {
	there, release := make(chan struct{}), make(chan struct{})
	src := sevens()
	r := newRig(t, time.Second, blocking(src, there, release)).start().tick(6)
	r.clock.Advance(time.Second)
	<-there
	result := make(chan error, 1)
	go func() { result <- r.ssc.Stop(context.Background()) }()
	wait, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	require.NoError(t, r.clock.BlockUntil(wait, 2))
	r.clock.Advance(10 * time.Second) // the default stop timeout
	var err error
	for err == nil && wait.Err() == nil { // the grace: its timer comes when it comes
		select {
		case err = <-result:
		default:
			r.clock.Advance(time.Second)
			runtime.Gosched()
		}
	}
	require.ErrorIs(t, err, dstream.ErrStopTimeout)
	var s *dstream.StopTimeoutError
	require.ErrorAs(t, err, &s)
	require.EqualValues(t, 7, s.Batch.Epoch)
	require.Equal(t, []string{"count partition 0"}, s.Tasks)
	require.ErrorIs(t, r.end(), dstream.ErrStopTimeout, "Wait does not hang with the user's code")
	close(release)
	<-dstream.Done(r.ssc)
	require.ErrorIs(t, r.end(), dstream.ErrStopTimeout)
	require.EqualValues(t, 6, r.h.Engine().Epoch())
	require.Equal(t, map[string]int{"a": 6}, stateOf[string, int](r, "count"))
	require.Len(t, src.committed, 6)
	require.True(t, src.closed)
}

// Report 37: a second stop, or one whose context has ended, aborts at once.
func TestSecondStopAborts(t *testing.T) {
	there := make(chan struct{})
	r := newRig(t, time.Second, func(c ssc) error {
		dstream.ForeachRDD(dstream.MapWithState(ones(c, inputA), dstream.Function(count).Named("count")),
			func(ctx context.Context, b dstream.Batch, _ *dstream.RDD[int]) error {
				if b.Epoch < 3 {
					return nil
				}
				close(there)
				<-ctx.Done() // well-behaved: it ends when it is told to
				return ctx.Err()
			}, dstream.Name("sink"))
		return nil
	}, dstream.WithTaskRetries(3)).start().tick(2)
	r.clock.Advance(time.Second)
	<-there
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := r.ssc.Stop(ctx)
	require.ErrorIs(t, err, dstream.ErrStopTimeout)
	require.ErrorContains(t, err, "output sink")
	require.EqualValues(t, 2, r.h.Engine().Epoch())
	require.Equal(t, map[string]int{"a": 1}, stateOf[string, int](r, "count"))
}

// A stop while a source is being asked for its plan ends the run: nothing has
// begun.
func TestStopWhilePlanning(t *testing.T) {
	src := newScript(1, []string{"a"})
	r := newRig(t, time.Second, garbage(src, decode))
	asked := make(chan struct{})
	var stop func()
	r.h.OnPlan(func(string, uint64, int) error {
		close(asked)
		stop()
		return errors.New("not now")
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	stop = func() {
		cancel()
		// the run has seen it once Run has taken its stop timer
		wait, end := context.WithTimeout(context.Background(), 20*time.Second)
		defer end()
		_ = r.clock.BlockUntil(wait, 2)
		close(done)
	}
	result := make(chan error, 1)
	go func() { result <- r.ssc.Run(ctx) }()
	wait, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	require.NoError(t, r.h.WaitStarted(wait))
	r.clock.Advance(time.Second)
	<-asked
	<-done
	require.NoError(t, <-result)
	require.Zero(t, r.h.Engine().Epoch())
	require.Empty(t, src.committed)
}

// WithStopWhenDone: the run ends by itself after the last batch of all sources.
func TestStopWhenDone(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		a := dstream.QueueStream(c, []int{1}, []int{2})
		b := dstream.QueueNamed(c, "long", 2, []int{10}, []int{20}, []int{30})
		dstream.Print(dstream.Union(a, b), 10, dstream.Name("o"))
		return nil
	}, dstream.WithStopWhenDone()).start().tick(2)
	err := r.tryTick()
	var e *harness.EndedError
	if err != nil { // the end and the tick race, both are right
		require.ErrorAs(t, err, &e)
	}
	require.NoError(t, r.end())
	require.Equal(t, [][]int{{1, 10}, {2, 20}, {30}}, out[int](r, "o"))
}

// A hundred starts and stops leave nothing behind (TestMain looks for goroutines).
func TestStartStopLoop(t *testing.T) {
	for range 100 {
		c := dstream.New(time.Hour, dstream.WithOutput(discard{}))
		dstream.Print(numbers(c), 1)
		require.NoError(t, c.Start())
		require.NoError(t, c.Stop(context.Background()))
	}
}
