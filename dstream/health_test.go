package dstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// teller is a source that tells of itself what a test says.
type teller struct {
	*source.Queue[int]
	mu     sync.Mutex
	report source.Report
	broken error // of Plan
}

func newTeller(batches ...[]int) *teller { return &teller{Queue: source.NewQueue(1, batches...)} }

func (s *teller) Report() source.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

func (s *teller) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return source.Plan{}, s.broken
	}
	return s.Queue.Plan(ctx, l)
}

func (s *teller) set(f func(r *source.Report)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.report)
}

func (s *teller) notice(seq int64, text string) {
	s.set(func(r *source.Report) { r.Notices = append(r.Notices, source.Notice{Seq: seq, Text: text}) })
}

func (s *teller) job(f func(int) error) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		dstream.Foreach(dstream.From(ssc, "in", s), func(_ context.Context, _ dstream.Batch, i int) error { return f(i) })
		return nil
	}
}

func ok(int) error { return nil }

// Report 38: what a source has to say is told once, in its order, in the middle of a
// batch too, and what it says when it is closed.
func TestSourceNotices(t *testing.T) {
	s := newTeller([]int{1}, []int{2})
	told := make(chan string, 10)
	entered, leave := make(chan bool), make(chan bool)
	s.notice(1, "at the start")
	r := newRig(t, time.Second, s.job(func(i int) error {
		if i == 2 {
			entered <- true
			<-leave
		}
		return nil
	}), dstream.WithListener(dstream.Listener{SourceNotice: func(name string, n source.Notice) { told <- name + ": " + n.Text }})).start()
	r.tick(1)
	require.Equal(t, "in: at the start", <-told)
	require.Empty(t, told)
	s.notice(2, "two")
	s.notice(3, "three")
	r.clock.Advance(time.Second)
	<-entered
	s.notice(4, "in a batch")
	var got []string
	for len(got) < 3 {
		select {
		case x := <-told:
			got = append(got, x)
		default:
			require.NoError(t, r.clock.BlockUntil(t.Context(), 1))
			r.clock.Advance(100 * time.Millisecond)
		}
	}
	require.Equal(t, []string{"in: two", "in: three", "in: in a batch"}, got)
	leave <- true
	s.notice(5, "at the end")
	require.NoError(t, r.ssc.Stop(context.Background()))
	require.Equal(t, "in: at the end", <-told)
	require.Empty(t, told, "each once")
}

// Report 38, J: lag and last progress of each partition are in the progress and its
// JSON, with what was lost.
func TestSourceReportsInProgress(t *testing.T) {
	s := newTeller([]int{1, 2})
	moved := zero.Add(time.Second)
	s.set(func(r *source.Report) {
		r.Partitions = []source.PartitionReport{{Partition: "0", Next: 2, End: 9, Lag: 7, Progress: moved, Waiting: time.Second, Stalled: true}}
		r.Counters = map[string]int64{"lost_records": 24577}
		r.Warnings = []string{"0 is stalled"}
	})
	r := newRig(t, time.Second, s.job(ok), dstream.WithMaxBytesPerBatch(1<<20)).start()
	r.tick(1)
	p := r.last().Sources[0]
	require.True(t, p.Reports)
	require.EqualValues(t, 7, p.Lag)
	require.EqualValues(t, 1<<20, p.LimitBytes)
	require.EqualValues(t, 24577, p.Counters["lost_records"])
	require.Equal(t, dstream.RangeProgress{Partition: "0", Until: 2, InputRows: 2, End: 9, Lag: 7, LastProgress: moved, Waiting: time.Second, Stalled: true}, p.Ranges[0])
	text, err := json.Marshal(r.last())
	require.NoError(t, err)
	var j struct{ Sources []map[string]any }
	require.NoError(t, json.Unmarshal(text, &j))
	require.Equal(t, map[string]any{"0": 9.0}, j.Sources[0]["latestOffset"])
	require.Equal(t, map[string]any{"0": 7.0}, j.Sources[0]["lag"])
	require.Equal(t, map[string]any{"0": moved.Format(time.RFC3339)}, j.Sources[0]["lastProgress"])
	require.Equal(t, []any{"0"}, j.Sources[0]["stalled"])
	metrics := j.Sources[0]["metrics"].(map[string]any)
	require.EqualValues(t, 24577, metrics["lost_records"])
	require.EqualValues(t, 7, metrics["maxOffsetsBehindLatest"])
}

// Report 38: Healthy names what is wrong, and is nil again when it has passed.
func TestHealthy(t *testing.T) {
	s := newTeller([]int{1}, []int{2})
	entered, leave := make(chan bool), make(chan bool)
	fails := true
	r := newRig(t, time.Second, s.job(func(i int) error {
		if i == 2 {
			if fails {
				fails = false
				return errors.New("no room")
			}
			entered <- true
			<-leave
		}
		return nil
	}), dstream.WithMaxDelay(5*time.Second), dstream.WithMaxLag(10), dstream.WithTaskRetries(1))
	require.ErrorIs(t, r.ssc.Healthy(), dstream.ErrNotStarted)
	require.ErrorIs(t, r.ssc.Healthy(), dstream.ErrNotReady)
	r.start().tick(1)
	require.NoError(t, r.ssc.Healthy())

	s.set(func(r *source.Report) {
		r.Warnings = []string{`topic "t" partition 3 is stalled`}
		r.Partitions = []source.PartitionReport{{Partition: "0", Lag: 11}}
	})
	err := r.ssc.Healthy()
	require.ErrorIs(t, err, dstream.ErrStalled)
	require.ErrorIs(t, err, dstream.ErrBehind)
	require.ErrorContains(t, err, `source "in": topic "t" partition 3 is stalled; source "in": 11 records wait, more than 10`)
	s.set(func(r *source.Report) { *r = source.Report{} })
	require.NoError(t, r.ssc.Healthy())

	r.clock.Advance(time.Second)
	<-entered
	err = r.ssc.Healthy()
	require.ErrorIs(t, err, dstream.ErrFailing)
	require.ErrorContains(t, err, "no room")
	require.NotErrorIs(t, err, dstream.ErrBehind)
	r.clock.Advance(6 * time.Second)
	require.ErrorIs(t, r.ssc.Healthy(), dstream.ErrBehind)
	require.ErrorContains(t, r.ssc.Healthy(), "batch 2 of")
	require.Equal(t, 6*time.Second, r.ssc.Health().Delay)
	leave <- true
	require.NoError(t, r.h.WaitTick(t.Context(), zero.Add(2*time.Second)))
	require.NoError(t, r.ssc.Stop(context.Background()))
	require.ErrorIs(t, r.ssc.Healthy(), dstream.ErrNotReady)
}

// The error that ended a run is what a probe sees afterwards.
func TestHealthyAfterAFailure(t *testing.T) {
	s := newTeller()
	s.broken = &source.ChangedError{Source: "x", What: "another topic"}
	r := newRig(t, time.Second, s.job(ok)).start()
	require.Error(t, r.tryTick())
	require.Error(t, r.end())
	require.ErrorContains(t, r.ssc.Healthy(), "another topic")
	require.ErrorIs(t, r.ssc.Healthy(), dstream.ErrNotReady)
}

// Report 36: no number is taken for "no limit" in silence; the faults have their line.
func TestLimitsAreSaidInWords(t *testing.T) {
	for _, o := range []func() dstream.ContextOption{
		func() dstream.ContextOption { return dstream.WithMaxRecordsPerBatch(0) },
		func() dstream.ContextOption { return dstream.WithMaxRecordsPerBatch(-2) },
		func() dstream.ContextOption { return dstream.WithMaxBytesPerBatch(0) },
		func() dstream.ContextOption { return dstream.WithMaxBytesPerBatch(-2) },
		func() dstream.ContextOption { return dstream.WithMaxLag(0) },
		func() dstream.ContextOption { return dstream.WithMaxDelay(0) },
		func() dstream.ContextOption { return dstream.WithMaxRatePerPartition(0) },
		func() dstream.ContextOption { return dstream.WithMaxRatePerPartition(math.NaN()) },
		func() dstream.ContextOption { return dstream.WithMaxRatePerPartition(0.1) },
		func() dstream.ContextOption { return dstream.WithMaxQueuedBatches(0) },
	} {
		ssc := dstream.New(time.Second, o())
		dstream.Print(dstream.QueueStream(ssc, []int{1}), 1)
		require.ErrorContains(t, ssc.Validate(), "health_test.go:")
	}
	ssc := dstream.New(time.Second, dstream.WithMaxRecordsPerBatch(dstream.Unlimited), dstream.WithMaxBytesPerBatch(dstream.Unlimited), dstream.WithMaxLag(dstream.Unlimited))
	dstream.Print(dstream.QueueStream(ssc, []int{1}), 1)
	require.NoError(t, ssc.Validate())
}

// Report 36: the limit of bytes holds from the first batch on.
func TestBytesPerBatch(t *testing.T) {
	texts := []string{"four", "four", "a longer text than allowed", "x", "y"}
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.QueueNamed(ssc, "in", 1, texts), 1, dstream.Name("out"))
		return nil
	}, dstream.WithMaxBytesPerBatch(8)).start()
	r.tick(3)
	require.Equal(t, [][]string{texts[:2], texts[2:3], texts[3:]}, out[string](r, "out"))
}
