package dstream_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// runReal runs a job over one batch of 0..19 as a user's program does: without
// the test kit, by the system's clock.
func runReal(t *testing.T, build func(*dstream.DStream[int]), opts ...dstream.ContextOption) (progress []dstream.Progress, err error) {
	t.Helper()
	all := make([]int, 20)
	for i := range all {
		all[i] = i
	}
	q := source.NewQueue(3, all)
	q.Finish()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	opts = append([]dstream.ContextOption{dstream.WithStopWhenDone(), dstream.WithParallelism(2), dstream.WithOutput(discard{}),
		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { progress = append(progress, p) }})}, opts...)
	err = dstream.Run(ctx, time.Millisecond, func(c ssc) error { build(dstream.From(c, "in", q)); return nil }, opts...)
	require.NoError(t, ctx.Err(), "the run hangs")
	return progress, err
}

// A function that ends its goroutine, as require does in a test, fails the batch
// like an error: nothing hangs, and no partition is lost.
func TestGoexitFailsTheBatch(t *testing.T) {
	type stream = *dstream.DStream[int]
	for name, build := range map[string]func(stream){
		"worker": func(s stream) {
			dstream.Print(dstream.Map(s, func(i int) int {
				if i == 19 {
					runtime.Goexit()
				}
				return i
			}), 1)
		},
		"output": func(s stream) {
			dstream.Foreach(s, func(context.Context, dstream.Batch, int) error { runtime.Goexit(); return nil })
		},
		"transform": func(s stream) {
			dstream.Print(dstream.Transform(s, func(time.Time, *rdd.RDD[int]) (*rdd.RDD[int], error) { runtime.Goexit(); return nil, nil }), 1)
		},
		"state": func(s stream) {
			pairs := dstream.MapPair(s, func(i int) (int, int) { return i, i })
			dstream.Print(dstream.MapWithState(pairs, dstream.Function(func(k int, _ dstream.Option[int], _ *dstream.State[int]) int {
				runtime.Goexit()
				return k
			})), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			progress, err := runReal(t, build)
			require.ErrorContains(t, err, "runtime.Goexit")
			require.ErrorAs(t, err, new(*dstream.BatchError))
			require.Empty(t, progress)
		})
	}
	cause := errors.New("boom")
	for name, l := range map[string]dstream.Listener{
		"started":   {Started: func(time.Time) { runtime.Goexit() }},
		"batch":     {BatchStarted: func(dstream.Batch) { runtime.Goexit() }},
		"completed": {BatchCompleted: func(dstream.Progress) { runtime.Goexit() }},
		"failed":    {BatchFailed: func(dstream.Batch, error) { runtime.Goexit() }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runReal(t, func(s stream) {
				dstream.Foreach(s, func(context.Context, dstream.Batch, int) error {
					if name == "failed" {
						return cause
					}
					return nil
				})
			}, dstream.WithListener(l))
			require.ErrorContains(t, err, "runtime.Goexit")
			require.Equal(t, name == "failed", errors.Is(err, cause))
		})
	}
}

// Report 30: the policy and the retries hold for what stands before a Foreach,
// which itself runs on one goroutine and as a whole.
func TestForeachKeepsPolicyAndRetries(t *testing.T) {
	bad := errors.New("bad")
	var got []int
	progress, err := runReal(t, func(s *dstream.DStream[int]) {
		good := dstream.MapErr(s, func(i int) (int, error) {
			if i%5 == 0 {
				return 0, bad
			}
			return i, nil
		})
		dstream.Foreach(good, func(_ context.Context, _ dstream.Batch, i int) error { got = append(got, i); return nil })
	}, dstream.WithRecordPolicy(dstream.Skip))
	require.NoError(t, err)
	require.Len(t, got, 16)
	require.EqualValues(t, 4, progress[0].SkippedRecords)
	require.EqualValues(t, 4, progress[0].Sources[0].Skipped)

	calls := 0
	_, err = runReal(t, func(s *dstream.DStream[int]) {
		flaky := dstream.MapErr(s, func(i int) (int, error) {
			if i == 3 { // one partition: one goroutine
				calls++
				if calls <= 2 {
					return 0, bad
				}
			}
			return i, nil
		})
		dstream.Foreach(flaky, func(context.Context, dstream.Batch, int) error { return nil })
	}, dstream.WithTaskRetries(2))
	require.NoError(t, err)
	require.Equal(t, 3, calls)
}

// A sequence that does not stop when told to does not hide the error behind it.
func TestSeqThatDoesNotStop(t *testing.T) {
	bad := errors.New("the real error")
	_, err := runReal(t, func(s *dstream.DStream[int]) {
		many := dstream.FlatMapSeq(s, func(i int) iter.Seq[int] {
			return func(yield func(int) bool) { yield(i); yield(i) }
		})
		dstream.Print(dstream.MapErr(many, func(int) (int, error) { return 0, bad }), 1)
	})
	require.ErrorIs(t, err, bad)
}

func TestPrintAll(t *testing.T) {
	var text bytes.Buffer
	_, err := runReal(t, func(s *dstream.DStream[int]) { dstream.Print(s, math.MaxInt) }, dstream.WithOutput(&text))
	require.NoError(t, err)
	require.Equal(t, 20+4, strings.Count(text.String(), "\n"), text.String())
}

// Cancelling is no error, before the start too; a fault of the graph is.
func TestRunCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	job := func(c ssc) error { dstream.Print(dstream.From(c, "in", source.NewQueue(1, []int{1})), 1); return nil }
	require.NoError(t, dstream.Run(ctx, time.Second, job, dstream.WithOutput(discard{})))
	require.ErrorIs(t, dstream.Run(ctx, time.Second, func(ssc) error { return nil }), dstream.ErrNoOutputs)
}

// With an interval of a nanosecond a stop lets the running batch finish too: ten
// intervals would be no time at all.
func TestStopOfTinyIntervals(t *testing.T) {
	for _, interval := range []time.Duration{1, math.MaxInt64} {
		c := dstream.New(interval, dstream.WithOutput(discard{}))
		dstream.Print(dstream.From(c, "in", source.NewQueue(1, []int{1})), 1)
		require.NoError(t, c.Start())
		require.NoError(t, c.Stop(context.Background()))
	}
}

// An initial state that panics fails the first batch; it does not end the process.
func TestPanicOfInitialState(t *testing.T) {
	_, err := runReal(t, func(s *dstream.DStream[int]) {
		pairs := dstream.MapPair(s, func(i int) (int, int) { return i, i })
		dstream.Print(dstream.MapWithState(pairs, dstream.Function(
			func(k int, _ dstream.Option[int], _ *dstream.State[int]) int { return k }).
			InitialState(func(yield func(int, int) bool) { yield(1, 1); panic("boom") }).Named("op")), 1)
	})
	require.ErrorContains(t, err, `compute "op"`)
	require.ErrorContains(t, err, "boom")
}

// rude is a source one of whose methods panics.
type rude struct {
	*source.Queue[int]
	at string
}

func (r rude) panics(at string) {
	if r.at == at {
		panic("boom")
	}
}

func (r rude) Open(ctx context.Context, last *source.Plan) error {
	r.panics("Open")
	return r.Queue.Open(ctx, last)
}

func (r rude) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	r.panics("Plan")
	return r.Queue.Plan(ctx, l)
}

func (r rude) Read(ctx context.Context, g source.Range, emit func(int64, int) error) error {
	r.panics("Read")
	return r.Queue.Read(ctx, g, emit)
}

func (r rude) Committed(ctx context.Context, p source.Plan) error {
	r.panics("Committed")
	return r.Queue.Committed(ctx, p)
}

func (r rude) Done() bool {
	r.panics("Done")
	return r.Queue.Done()
}

func (r rude) Close() error {
	r.panics("Close")
	return r.Queue.Close()
}

func TestPanicOfASource(t *testing.T) {
	for _, at := range []string{"Open", "Plan", "Read", "Committed", "Done", "Close"} {
		t.Run(at, func(t *testing.T) {
			q := source.NewQueue(1, []int{1})
			q.Finish()
			err := dstream.Run(t.Context(), time.Millisecond, func(c ssc) error {
				dstream.Print(dstream.From(c, "in", source.Source[int](rude{q, at})), 1)
				return nil
			}, dstream.WithStopWhenDone(), dstream.WithIORetry(0), dstream.WithOutput(discard{}))
			require.ErrorContains(t, err, "boom")
		})
	}
}

// A function that adds to the graph for every record ends the run with one fault
// a line, and leaves the graph that the run reads alone.
func TestAddingForEveryRecord(t *testing.T) {
	_, err := runReal(t, func(s *dstream.DStream[int]) {
		dstream.Print(dstream.Map(s, func(i int) int {
			s.Cache()
			dstream.Print(dstream.Filter(s, func(int) bool { return true }), 1)
			return i
		}), 1)
	})
	var v *dstream.ValidationError
	require.ErrorAs(t, err, &v)
	require.ErrorIs(t, err, dstream.ErrStarted)
	require.Len(t, v.Faults, 3, err)
}

// The error of a panic names the stream as the user does.
func TestPanicNamesTheStream(t *testing.T) {
	_, err := runReal(t, func(s *dstream.DStream[int]) {
		parsed := dstream.Map(s, func(int) int { panic("boom") }).Named("parse")
		dstream.Foreach(parsed, func(context.Context, dstream.Batch, int) error { return nil }, dstream.Name("sink"))
	})
	require.ErrorContains(t, err, `output "sink": parse: record at in/0 offset 0: panic: boom`)
}

// An output of a nil stream is not lost.
func TestOutputOfANilStream(t *testing.T) {
	var missing *dstream.DStream[int]
	for name, add := range map[string]func(){
		"nil":     func() { dstream.Print(missing, 1) },
		"derived": func() { dstream.Print(dstream.Map(missing, func(i int) int { return i }), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			progress, err := runReal(t, func(s *dstream.DStream[int]) {
				dstream.Print(s, 1)
				add()
			})
			require.ErrorIs(t, err, dstream.ErrInvalid)
			require.ErrorContains(t, err, "dstream.Print: the input stream is nil")
			require.Empty(t, progress)
		})
	}
}
