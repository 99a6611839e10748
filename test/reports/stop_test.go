package reports

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// tenBatches is a source of ten batches of one record: n in batch n.
func tenBatches() *source.Queue[int] {
	q := source.NewQueue[int](1)
	for n := range 10 {
		q.Push([]int{n + 1})
	}
	return q
}

// summing is a job that sums its input; f is called with every record.
func summing(f func(n int)) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := dstream.KeyBy(dstream.From(ssc, "in", tenBatches()), func(int) string { return "sum" })
		sums := dstream.MapWithState(in, dstream.Function(
			func(_ string, v dstream.Option[int], s *dstream.State[int]) int {
				n, _ := v.Get()
				f(n)
				s.Update(s.OrElse(0) + n)
				return s.Get()
			}).Named("sums").NumPartitions(1))
		dstream.Print(sums, 1, dstream.Name("out"))
		return nil
	}
}

// report 37: a cancel in mid-batch finishes and commits the batch, and no other
// begins. The bubble's clock is the system's here: no kit is in it.
func TestCancelInMidBatchFinishesTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var started, completed []uint64
		var skippedTicks []time.Time
		err := dstream.Run(ctx, time.Second, summing(func(n int) {
			if n == 7 {
				cancel()
				<-time.After(5 * time.Second) // within the grace of 10 s
			}
		}), dstream.WithStopTimeout(10*time.Second), dstream.WithOutput(discard{}), dstream.WithListener(dstream.Listener{
			BatchStarted:   func(b dstream.Batch) { started = append(started, b.Epoch) },
			BatchCompleted: func(p dstream.Progress) { completed = append(completed, p.Batch.Epoch) },
			TickSkipped:    func(at time.Time) { skippedTicks = append(skippedTicks, at) },
		}))
		require.NoError(t, err)
		want := []uint64{1, 2, 3, 4, 5, 6, 7}
		assert.Equal(t, want, started, "no batch 8 starts")
		assert.Equal(t, want, completed, "batch 7 is committed")
	})
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// held runs six batches, and a seventh that stays in user code until release.
func held(t *testing.T) (kit *milltest.Kit, release func()) {
	gate := make(chan struct{})
	entered := make(chan struct{})
	kit = milltest.New(t, time.Second, summing(func(n int) {
		if n == 7 {
			close(entered)
			<-gate
		}
	}), dstream.WithStopTimeout(10*time.Second))
	kit.Tick(6)
	kit.Advance(1)
	<-entered
	return kit, func() { close(gate) }
}

// report 37: a batch that outlasts the grace is dropped whole, and the error
// says what was still running.
func TestGraceExceededDropsTheBatchWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kit, release := held(t)
		stopped := make(chan error, 1)
		go func() { stopped <- kit.Context().Stop(context.Background()) }()
		synctest.Wait() // the stop waits by the clock
		kit.AdvanceTime(9 * time.Second)
		synctest.Wait()
		assert.Empty(t, stopped, "within the grace")
		kit.AdvanceTime(2 * time.Second)
		synctest.Wait()
		kit.AdvanceTime(2 * time.Second) // and it does not come back from the user's code
		err := <-stopped
		require.ErrorIs(t, err, dstream.ErrStopTimeout)
		assert.ErrorContains(t, err, "sums", "the error names the task")
		release()
		synctest.Wait()
		assert.ErrorIs(t, kit.Err(), dstream.ErrStopTimeout)
		assert.Len(t, kit.Progress(), 6)
		assert.Equal(t, map[string]int{"sum": 21}, milltest.State[string, int](kit, "sums"))
		assert.Equal(t, [][]int{{1}, {3}, {6}, {10}, {15}, {21}}, milltest.Output[int](kit, "out"))
	})
}

// report 37: a second request stops at once, whatever the grace.
func TestSecondStopIsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kit, release := held(t)
		first := make(chan error, 1)
		go func() { first <- kit.Context().Stop(context.Background()) }()
		synctest.Wait()
		now, cancel := context.WithCancel(context.Background())
		cancel()
		second := make(chan error, 1)
		go func() { second <- kit.Context().Stop(now) }()
		synctest.Wait()
		release()
		require.ErrorIs(t, <-second, dstream.ErrStopTimeout)
		require.ErrorIs(t, <-first, dstream.ErrStopTimeout)
		_ = kit.Err()
		assert.Len(t, kit.Progress(), 6)
		assert.Equal(t, map[string]int{"sum": 21}, milltest.State[string, int](kit, "sums"))
	})
}

// report 37: after a clean stop the state is that of the last processed batch.
func TestCleanStopKeepsTheLastVersion(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, summing(func(int) {}))
	kit.Tick(4)
	require.NoError(t, kit.Stop())
	assert.Equal(t, map[string]int{"sum": 10}, milltest.State[string, int](kit, "sums"))
	assert.EqualValues(t, 4, kit.Progress()[3].Batch.Epoch)
	kit.Tick(3)
	assert.Len(t, kit.Progress(), 4)
}
