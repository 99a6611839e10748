package milltest_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

var errDisk = errors.New("disk on fire")

func ignore(int) error { return nil }

func TestReadAndPlanErrorsAreRetriedWithoutWaiting(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore))
	in := milltest.Input[int](kit, "numbers")
	in.Batch(1, 2, 3).FailReads(2, 1, errDisk).FailPlans(1, errDisk)
	kit.Tick(1)
	require.NoError(t, kit.Err())
	// The failed reads had given a record each: it does not come twice.
	assert.Equal(t, [][]int{{10, 20, 30}}, milltest.Output[int](kit, "tens"))
	assert.EqualValues(t, 3, kit.Progress()[0].Sources[0].Retries)
}

func TestReadErrorsThatDoNotEndFailTheRun(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore), dstream.WithIORetry(0))
	in := milltest.Input[int](kit, "numbers")
	in.Batch(1).Batch(2)
	kit.Tick(1)
	in.FailReads(1000, 0, errDisk)
	kit.Tick(1)
	err := kit.Err()
	require.ErrorIs(t, err, errDisk)
	var read *dstream.ReadError
	require.ErrorAs(t, err, &read)
	assert.Equal(t, "numbers", read.Source)
	assert.True(t, kit.Ended())
	assert.Equal(t, [][]int{{10}}, milltest.Output[int](kit, "tens"), "the failed batch has no output")
}

func TestOutputErrors(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore), dstream.WithTaskRetries(1))
	milltest.Input[int](kit, "numbers").Batch(1).Batch(2)
	kit.FailOutput("tens", 1, errDisk)
	kit.Tick(1)
	require.NoError(t, kit.Err(), "one retry is allowed")
	assert.Equal(t, [][]int{{10}}, milltest.Output[int](kit, "tens"))
	assert.Equal(t, 2, kit.Progress()[0].Outputs[0].Attempts)

	kit.FailOutput("tens", 2, errDisk)
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), errDisk)
	assert.Equal(t, [][]int{{10}}, milltest.Output[int](kit, "tens"))
}

func TestRepeatGapAndRedeliver(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore))
	in := milltest.Input[int](kit, "numbers")
	in.Batch(1, 2, 3).Repeat(2)
	in.Gap(0, 100).Batch(4)
	in.Redeliver(0, 3).Batch(5)
	kit.Tick(4)
	assert.Equal(t, [][]int{{10, 20, 30}, {20, 30}, {40}, {50}}, milltest.Output[int](kit, "tens"))
	p := kit.Progress()
	src := func(i int) dstream.SourceProgress { return p[i].Sources[0] }
	assert.Zero(t, src(1).Duplicates, "a record sent again is a new record")
	assert.EqualValues(t, 100, src(2).Gaps)
	assert.EqualValues(t, 3, src(3).Duplicates)
	assert.EqualValues(t, 107, src(3).Ranges[0].Until)
}

func TestBacklogIsTakenByTheLimits(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore), dstream.WithMaxRecordsPerBatch(2))
	in := milltest.Input[int](kit, "numbers")
	in.Backlog(0, 1, 2, 3).Backlog(1, 4)
	kit.Tick(3)
	var all []int
	for _, batch := range milltest.Output[int](kit, "tens") {
		assert.LessOrEqual(t, len(batch), 2)
		all = append(all, batch...)
	}
	assert.ElementsMatch(t, []int{10, 20, 30, 40}, all)
}

// A slow sink: ticks queue up behind it, and more than may wait are skipped.
func TestBlockedOutputAndSkippedTicks(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore), dstream.WithMaxQueuedBatches(2))
	milltest.Input[int](kit, "numbers").Batch(1).Batch(2).Batch(3).Batch(4)
	gate := kit.BlockOutput("tens")
	kit.Advance(1)
	gate.Entered()
	kit.Advance(5)
	assert.Empty(t, kit.Progress())
	gate.Release()
	gate.Release() // once more does nothing
	require.True(t, kit.Await())
	p := kit.Progress()
	require.Len(t, p, 3, "one ran, two were waiting")
	assert.EqualValues(t, 3, p[2].SkippedTicks)
	kit.Tick(1)
	assert.Equal(t, [][]int{{10}, {20}, {30}, {40}}, milltest.Output[int](kit, "tens"))
	assert.Equal(t, time.Unix(7, 0).UTC(), kit.Progress()[3].Batch.Time)
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	bad := errors.New("no configuration")
	kit := milltest.New(t, time.Second, func(*dstream.StreamingContext) error { return bad })
	require.ErrorIs(t, kit.Start(), bad)
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), bad)

	kit = milltest.New(t, time.Second, func(*dstream.StreamingContext) error { return nil })
	require.ErrorIs(t, kit.Start(), dstream.ErrNoOutputs)

	kit = milltest.New(t, time.Second, numbers(ignore))
	milltest.Input[int](kit, "nubmers")
	require.ErrorContains(t, kit.Start(), "nubmers", "a wrong name of an input is an error")

	kit = milltest.New(t, time.Second, numbers(ignore))
	milltest.Input[string](kit, "numbers")
	require.Error(t, kit.Start(), "a wrong type of an input is an error")
	assert.True(t, kit.Ended())
}

// fakeTB stands in for a test that shall fail.
type fakeTB struct {
	testing.TB
	failed   []string
	logged   []string
	cleanups []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Logf(format string, args ...any) {
	f.logged = append(f.logged, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failing runs a test function that is expected to fail.
func failing(test func(t testing.TB)) *fakeTB {
	f := &fakeTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		test(f)
	}()
	<-done
	return f
}

// Mistakes of a test end it, and say what is wrong.
func TestMistakesFailTheTest(t *testing.T) {
	t.Parallel()
	running := func(t testing.TB) *milltest.Kit {
		kit := milltest.New(t, time.Second, wordCount)
		milltest.Input[string](kit, "lines").Batch("a")
		kit.Tick(1)
		return kit
	}
	for name, test := range map[string]func(t testing.TB){
		"no such output":      func(t testing.TB) { milltest.Output[count](running(t), "cuonts") },
		"other output type":   func(t testing.TB) { milltest.Output[string](running(t), "counts") },
		"no such operator":    func(t testing.TB) { milltest.State[string, int](running(t), "cuonts") },
		"other state type":    func(t testing.TB) { milltest.State[string, string](running(t), "counts") },
		"input after start":   func(t testing.TB) { milltest.Input[string](running(t), "lines") },
		"start time too late": func(t testing.TB) { running(t).StartAt(time.Unix(5, 0)) },
		"no partitions": func(t testing.TB) {
			milltest.Input[string](milltest.New(t, time.Second, wordCount), "lines").Partitions(0)
		},
		"repeat of nothing": func(t testing.TB) {
			milltest.Input[string](milltest.New(t, time.Second, wordCount), "lines").Repeat(1)
		},
		"an error that nobody looked at": func(t testing.TB) {
			kit := milltest.New(t, time.Second, numbers(func(int) error { return errDisk }))
			milltest.Input[int](kit, "numbers").Batch(1)
			kit.Tick(1)
		},
		"an output of a failed run": func(t testing.TB) {
			kit := milltest.New(t, time.Second, numbers(func(int) error { return errDisk }))
			milltest.Input[int](kit, "numbers").Batch(1)
			kit.Tick(1)
			milltest.Output[int](kit, "tens")
		},
		"a hung batch": func(t testing.TB) {
			kit := milltest.New(t, time.Second, numbers(ignore))
			kit.Patience(time.Millisecond)
			kit.BlockOutput("tens")
			kit.Advance(1)
			kit.Await()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := failing(test)
			assert.NotEmpty(t, f.failed)
		})
	}
	f := failing(func(t testing.TB) { running(t) })
	assert.Empty(t, f.failed, "a test without a mistake does not fail")
}

// Tests of a function that fails look at its error.
func TestFunctionErrors(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "numbers", source.NewQueue[int](1))
		dstream.Print(dstream.MapErr(in, func(i int) (int, error) {
			if i == 3 {
				return 0, errDisk
			}
			return i, nil
		}), 1, dstream.Name("out"))
		return nil
	})
	in := milltest.Input[int](kit, "numbers")
	in.Batch(1).Batch(2, 3, 4)
	kit.Tick(2)
	err := kit.Err()
	require.ErrorIs(t, err, errDisk)
	var at *rdd.RecordError
	require.ErrorAs(t, err, &at)
	assert.Equal(t, "numbers", at.Stream)
	assert.Equal(t, "0", at.Partition)
	assert.EqualValues(t, 2, at.Offset)
	assert.Equal(t, [][]int{{1}}, milltest.Output[int](kit, "out"))
}

func TestStopFinishesTheRunningBatch(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(ignore))
	milltest.Input[int](kit, "numbers").Batch(1)
	gate := kit.BlockOutput("tens")
	kit.Advance(1)
	gate.Entered()
	stopped := make(chan error)
	go func() { stopped <- kit.Stop() }()
	gate.Release()
	require.NoError(t, <-stopped)
	assert.Equal(t, [][]int{{10}}, milltest.Output[int](kit, "tens"))
	assert.NoError(t, kit.Stop(), "stopping twice is fine")
}

func TestKitThatNeverRan(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, wordCount)
	assert.NoError(t, kit.Stop())
	assert.NoError(t, kit.Err())
	assert.Empty(t, kit.Progress())
	assert.Empty(t, milltest.Output[count](kit, "counts"))
	assert.Empty(t, milltest.State[string, int](kit, "counts"))
	assert.False(t, kit.Await())
}
