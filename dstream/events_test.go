package dstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
)

// log is a listener that writes everything down.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func (l *log) listener() dstream.ContextOption {
	second := func(t time.Time) float64 { return t.Sub(zero).Seconds() }
	return dstream.WithListener(dstream.Listener{
		Started:        func(t time.Time) { l.add("started %v", second(t)) },
		BatchSubmitted: func(t time.Time) { l.add("submitted %v", second(t)) },
		BatchStarted:   func(b dstream.Batch) { l.add("batch %d", b.Epoch) },
		OutputStarted:  func(b dstream.Batch, name string) { l.add("output %s of %d", name, b.Epoch) },
		OutputFailed:   func(b dstream.Batch, name string, err error) { l.add("failed %s: %v", name, err) },
		OutputCompleted: func(b dstream.Batch, p dstream.OutputProgress, err error) {
			l.add("done %s after %d: %v", p.Name, p.Attempts, err)
		},
		BatchCompleted:  func(p dstream.Progress) { l.add("completed %d", p.Batch.Epoch) },
		BatchFailed:     func(b dstream.Batch, err error) { l.add("given up %d", b.Epoch) },
		TickSkipped:     func(t time.Time) { l.add("skipped %v", second(t)) },
		ReceiverStarted: func(s string) { l.add("%s receives", s) },
		ReceiverFailed:  func(s string, err error) { l.add("%s fails: %v", s, err) },
		ReceiverStopped: func(s string, err error) { l.add("%s stops: %v", s, err) },
	})
}

// G9: the events of batches and outputs, in their order.
func TestEventsOfBatches(t *testing.T) {
	var l log
	fails := 1
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.QueueNamed(ssc, "in", 1, []int{1})
		dstream.Foreach(in, func(context.Context, dstream.Batch, int) error {
			if fails--; fails >= 0 {
				return errors.New("once")
			}
			return nil
		}, dstream.Name("a"))
		dstream.Print(in, 1, dstream.Name("b"))
		return nil
	}, dstream.WithTaskRetries(1), l.listener()).start()
	r.tick(1).jump(3)
	require.NoError(t, r.ssc.Stop(context.Background()))
	require.Equal(t, []string{
		"started 0", "submitted 1", "batch 1", "output a of 1", "failed a: once", "done a after 2: <nil>", "output b of 1",
		"done b after 1: <nil>", "completed 1", "skipped 2", "skipped 3", "submitted 4", "batch 2", "output a of 2",
		"done a after 1: <nil>", "output b of 2", "done b after 1: <nil>", "completed 2",
	}, l.all())
}

// R9: outputs of one batch run side by side, and the batch waits for all; progress
// has them in the order of registration.
func TestConcurrentOutputs(t *testing.T) {
	var l log
	var both sync.WaitGroup
	both.Add(2)
	computed := 0
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		d := dstream.Map(dstream.QueueNamed(ssc, "in", 1, []int{1}), func(i int) int { computed++; return i })
		for _, name := range []string{"a", "b"} {
			dstream.Foreach(d, func(context.Context, dstream.Batch, int) error {
				both.Done()
				both.Wait() // one after the other would wait for ever
				return nil
			}, dstream.Name(name))
		}
		dstream.Print(d, 1, dstream.Name("c"))
		return nil
	}, dstream.WithConcurrentOutputs(2), l.listener()).start()
	r.tick(1)
	require.Equal(t, 1, computed)
	var names []string
	for _, o := range r.last().Outputs {
		names = append(names, o.Name)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
	all := l.all()
	require.Equal(t, "completed 1", all[len(all)-1])
	require.Len(t, all, 3+6+1)

	ssc := dstream.New(time.Second, dstream.WithConcurrentOutputs(0))
	dstream.Print(dstream.QueueStream(ssc, []int{1}), 1)
	require.ErrorContains(t, ssc.Validate(), "the number of concurrent outputs is 0")
}

// A failed output fails the batch, also if others beside it succeed.
func TestConcurrentOutputFails(t *testing.T) {
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.QueueNamed(ssc, "in", 1, []int{1})
		dstream.Print(in, 1, dstream.Name("a"))
		dstream.Foreach(in, func(context.Context, dstream.Batch, int) error { return errors.New("no") }, dstream.Name("b"))
		return nil
	}, dstream.WithConcurrentOutputs(4)).start()
	require.Error(t, r.tryTick())
	var failed *dstream.BatchError
	require.ErrorAs(t, r.end(), &failed)
	require.Equal(t, "b", failed.Name)
	require.Equal(t, "output", failed.Phase)
}

// O3: the JSON of a batch's progress.
func TestProgressJSON(t *testing.T) {
	b := dstream.Batch{Epoch: 7, Time: zero}
	p := dstream.Progress{
		Batch: b, Interval: 2 * time.Second, InputRows: 10, SchedulingDelay: 5 * time.Millisecond, ProcessingDelay: 500 * time.Millisecond,
		TotalDelay: 505 * time.Millisecond, Phases: dstream.Phases{Plan: 1500 * time.Microsecond, PlanCommit: 250 * time.Microsecond, Compute: 300 * time.Millisecond, Output: 100 * time.Millisecond},
		Sources: []dstream.SourceProgress{{Name: "in", InputRows: 10, Rate: 2.5, Ranges: []dstream.RangeProgress{{Partition: "t/0", From: 3, Until: 13}}}},
		Operators: []dstream.OperatorProgress{{Name: "counts", Partitions: 4, Keys: 9, Changed: 5, Removed: 2, TimedOut: 2, HeapBytes: 77,
			Updates: 3 * time.Millisecond, Removals: 2 * time.Millisecond, Commit: time.Millisecond}},
		Outputs:  []dstream.OutputProgress{{Name: "out", Kind: "Print", Attempts: 1, Duration: time.Millisecond}},
		Counters: []dstream.CounterProgress{{Name: "bad", Added: 1, Total: 4}},
	}
	got, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"id": "", "runId": "", "name": null, "eventTime": {},
		"timestamp": "1970-01-12T13:47:00.005Z", "batchTime": "1970-01-12T13:47:00Z", "batchId": 7, "batchDuration": 500, "batchInterval": 2000,
		"numInputRows": 10, "inputRowsPerSecond": 5, "processedRowsPerSecond": 20,
		"durationMs": {"latestOffset": 1.25, "queryPlanning": 0, "getBatch": 0, "walCommit": 0.25, "addBatch": 400, "compute": 300, "output": 100, "commitOffsets": 0, "triggerExecution": 500},
		"schedulingDelayMs": 5, "totalDelayMs": 505, "skippedRecords": 0, "skippedTicks": 0, "queued": 0,
		"stateOperators": [{"operatorName": "counts", "numRowsTotal": 9, "numRowsUpdated": 3, "allUpdatesTimeMs": 3, "numRowsRemoved": 2, "allRemovalsTimeMs": 2,
			"commitTimeMs": 1, "memoryUsedBytes": 77, "numRowsDroppedByWatermark": 0, "numShufflePartitions": 4, "numStateStoreInstances": 4, "customMetrics": {"timedOut": 2}}],
		"sources": [{"description": "in", "startOffset": {"t/0": 3}, "endOffset": {"t/0": 13}, "latestOffset": null, "numInputRows": 10, "inputRowsPerSecond": 5,
			"processedRowsPerSecond": 20, "metrics": {"rate": 2.5}}],
		"sink": {"description": "out", "numOutputRows": -1, "metrics": {}},
		"outputs": [{"name": "out", "kind": "Print", "attempts": 1, "durationMs": 1}],
		"observedMetrics": {"bad": {"name": "bad", "added": 1, "total": 4}}
	}`, string(got))
}

// O3: how many rows an exactly-once sink was given, and by which of two outputs.
func TestRowsOfSinks(t *testing.T) {
	files := sink.NewFiles("files", vfs.NewObjects())
	line := func(b []byte, i int) ([]byte, error) { return strconv.AppendInt(b, int64(i), 10), nil }
	progress, err := runReal(t, func(s *dstream.DStream[int]) {
		dstream.Output(dstream.Filter(s, func(i int) bool { return i < 7 }), "few", sink.Lines(files, line))
		dstream.Print(s, 1, dstream.Name("printed"))
		dstream.Output(s, "all", sink.Lines(files, line))
	}, dstream.WithCheckpointStore(vfs.NewObjects()))
	require.NoError(t, err)
	var got []string
	for _, o := range progress[0].Outputs {
		got = append(got, fmt.Sprint(o.Name, " ", o.Rows))
	}
	require.Equal(t, []string{"few 7", "printed 0", "all 20"}, got)
	text, err := json.Marshal(progress[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"numOutputRows":7`)
}

// The records of a receiver come from its log, once each, over a restart; its
// events reach the listeners.
func TestReceiverStream(t *testing.T) {
	dir := t.TempDir()
	var l log
	stored := make(chan struct{}, 2)
	var batch []string
	run := func(words ...string) []string {
		batch = nil
		r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
			in := dstream.ReceiverStream(ssc, "words", dir, nil, receiver.Receiver[string](receiver.Func[string](
				func(ctx context.Context, store receiver.Store[string]) error {
					err := store(ctx, words...)
					stored <- struct{}{}
					<-ctx.Done()
					return err
				})), func(s *receiver.Source[string]) { s.MaxBytes = 1 << 20 })
			dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, w string) error { batch = append(batch, w); return nil })
			return nil
		}, l.listener()).start()
		<-stored
		r.tick(1)
		require.NoError(t, r.ssc.Stop(context.Background()))
		return batch
	}
	require.Equal(t, []string{"a", "b"}, run("a", "b"))
	all := l.all()
	require.Contains(t, all, "words receives")
	require.Equal(t, "words stops: <nil>", all[len(all)-1])
	entries, err := vfs.Disk().ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, entries)

	ssc := dstream.New(time.Second)
	dstream.Print(dstream.ReceiverStream[chan int](ssc, "x", "", nil, nil, nil), 1)
	err = ssc.Validate()
	for _, text := range []string{"records have no codec", "the directory's name is empty", "the receiver is nil", "the function is nil"} {
		require.ErrorContains(t, err, text)
	}
}
