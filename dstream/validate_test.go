package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

type ssc = *dstream.StreamingContext

func numbers(c ssc) *dstream.DStream[int] { return dstream.From(c, "numbers", newScript(1, []int{1})) }

func keyed(c ssc) *dstream.DStream[dstream.Pair[int, int]] {
	return dstream.KeyBy(numbers(c), func(i int) int { return i })
}

func keyedState(c ssc, o dstream.OpOption) {
	dstream.Keyed(keyed(c), "state", func(*dstream.Call[int, int], int, dstream.Option[int]) error { return nil }, o)
}

func spec() dstream.StateSpec[int, int, int, int] {
	return dstream.Function(func(int, dstream.Option[int], *dstream.State[int]) int { return 0 })
}

// Bad input: each fault is told, with the line of the call.
func TestFaults(t *testing.T) {
	type opts = []dstream.ContextOption
	for name, tc := range map[string]struct {
		opts opts
		job  func(c ssc)
		want string
	}{
		"parallelism":      {opts{dstream.WithParallelism(0)}, nil, "the parallelism is 0: want at least 1"},
		"output":           {opts{dstream.WithOutput(nil)}, nil, "the writer is nil"},
		"retries":          {opts{dstream.WithTaskRetries(-1)}, nil, "-1 task retries"},
		"policy":           {opts{dstream.WithRecordPolicy(7)}, nil, "RecordPolicy(7) is no record policy"},
		"records":          {opts{dstream.WithMaxRecordsPerBatch(0)}, nil, "0 records per batch"}, // report 36
		"rate":             {opts{dstream.WithMaxRatePerPartition(0)}, nil, "0 records per second"},
		"slow rate":        {opts{dstream.WithMaxRatePerPartition(0.5)}, nil, "less than one record per interval"}, // report 36
		"queued":           {opts{dstream.WithMaxQueuedBatches(0)}, nil, "queued batches is 0"},
		"stop timeout":     {opts{dstream.WithStopTimeout(0)}, nil, "the stop timeout is 0s"},
		"remember":         {opts{dstream.WithRemember(-time.Second)}, nil, "the remember duration is -1s"},
		"io retry":         {opts{dstream.WithIORetry(-1)}, nil, "I/O retries is -1ns"},
		"clock":            {opts{dstream.WithClock(nil)}, nil, "the clock is nil"},
		"harness":          {opts{dstream.WithHarness(nil)}, nil, "the harness is nil"},
		"nil option":       {opts{nil}, nil, "option 0 is nil"},
		"checkpoint twice": {opts{dstream.WithCheckpoint("dir"), dstream.WithCheckpointStore(vfs.NewObjects())}, nil, "there is a checkpoint already, set at "},
		"checkpoint store": {opts{dstream.WithCheckpointStore(nil)}, nil, "the store is nil"},
		"checkpoint nil":   {opts{dstream.WithCheckpoint("dir", nil)}, nil, "option 0 is nil"},
		"snapshots":        {opts{dstream.WithCheckpoint("dir", dstream.SnapshotEvery(0))}, nil, "the number of versions between snapshots is 0"},
		"retention":        {opts{dstream.WithCheckpoint("dir", dstream.RetainSnapshots(0))}, nil, "the number of snapshots to retain is 0"},
		"maintenance":      {opts{dstream.WithCheckpoint("dir", dstream.MaintenanceInterval(0))}, nil, "the maintenance interval is 0s"},
		"compression":      {opts{dstream.WithCheckpoint("dir", dstream.Compress(9))}, nil, "is no compression"},
		"rescale alone":    {opts{dstream.WithRescale()}, nil, "WithRescale: there is no checkpoint"},
		"drop":             {opts{dstream.WithCheckpoint("dir"), dstream.WithDrop("")}, nil, "the operator's name is empty"},
		"migration":        {opts{dstream.WithCheckpoint("dir"), dstream.WithMigration("x")}, nil, `no step is given for operator "x"`},
		"migration of nothing": {opts{dstream.WithCheckpoint("dir"), dstream.WithMigration("x", codec.Migrate(func(i int) (int, error) { return i, nil }))}, nil,
			`no stateful operator is named "x"`},
		"takeover": {opts{dstream.WithCheckpoint("dir"), dstream.WithTakeover(9)}, nil, "9 is no way to take over"},
		"sink without a checkpoint": {nil, func(c ssc) {
			dstream.Output(numbers(c), "out", sink.Lines(sink.NewFiles("files", vfs.NewObjects()), func(b []byte, _ int) ([]byte, error) { return b, nil }))
		}, "an exactly-once sink needs a checkpoint"},
		"empty sink": {opts{dstream.WithCheckpoint("dir")}, func(c ssc) { dstream.Output(numbers(c), "out", sink.Sink[int]{}) }, "the sink has no unit"},
		"unstorable state": {opts{dstream.WithCheckpoint("dir")}, func(c ssc) { // report 35
			dstream.Print(dstream.MapWithState(keyed(c), dstream.Function(
				func(int, dstream.Option[int], *dstream.State[struct{ n int }]) int { return 0 }).Named("small")), 1)
		}, "n: "},
		"checkpoint empty": {opts{dstream.WithCheckpoint("")}, nil, "the checkpoint directory is empty"},
		"unnamed operator": {opts{dstream.WithCheckpoint("dir")}, func(c ssc) {
			dstream.Print(dstream.MapWithState(keyed(c), spec()), 1)
		}, "the stateful operator has no name"},
		"no end": {opts{dstream.WithStopWhenDone()}, func(c ssc) {
			dstream.Print(dstream.From(c, "forever", endless{}), 1)
		}, `the source "forever" never ends`},

		"nil map":           {nil, func(c ssc) { dstream.Map[int, int](numbers(c), nil) }, "dstream.Map: the function is nil"},
		"nil filter":        {nil, func(c ssc) { dstream.Filter(numbers(c), nil) }, "dstream.Filter: the function is nil"},
		"nil reduce":        {nil, func(c ssc) { dstream.Reduce(numbers(c), nil) }, "the function is nil"},
		"nil transform":     {nil, func(c ssc) { dstream.Transform[int, int](numbers(c), nil) }, "the function is nil"},
		"nil foreach":       {nil, func(c ssc) { dstream.Foreach(numbers(c), nil) }, "dstream.Foreach: the function is nil"},
		"nil state":         {nil, func(c ssc) { dstream.MapWithState(keyed(c), dstream.Function[int, int, int, int](nil)) }, "the function is nil"},
		"nil source":        {nil, func(c ssc) { dstream.From[int](c, "x", nil) }, "the source is nil"},
		"unnamed source":    {nil, func(c ssc) { dstream.From(c, "", newScript[int](1)) }, "the source has no name"},
		"nil union":         {nil, func(c ssc) { dstream.Union(numbers(c), nil) }, "the input stream is nil"},
		"nil pointer":       {nil, func(c ssc) { dstream.Union(numbers(c), (*dstream.MapWithStateDStream[int, int, int])(nil)) }, "the input stream is nil"},
		"repartition":       {nil, func(c ssc) { dstream.Repartition(numbers(c), 0) }, "the number of partitions is 0"},
		"reduce partitions": {nil, func(c ssc) { dstream.ReduceByKey(keyed(c), add, dstream.NumPartitions(0)) }, "the number of partitions is 0"},
		"state partitions":  {nil, func(c ssc) { dstream.MapWithState(keyed(c), spec().NumPartitions(0)) }, "0 partitions"},
		"queue partitions":  {nil, func(c ssc) { dstream.QueueNamed(c, "q", 0, []int{1}) }, "the number of partitions is 0"},
		"partitioner":       {nil, func(c ssc) { dstream.PartitionBy(keyed(c), nil) }, "the partitioner is nil"},
		"bad partitioner":   {nil, func(c ssc) { dstream.PartitionBy(keyed(c), partitioner.Hash[int](0)) }, "0 partitions"},
		"timeout":           {nil, func(c ssc) { dstream.MapWithState(keyed(c), spec().Timeout(-time.Second)) }, "bad timeout: -1s"},
		"interval":          {nil, func(c ssc) { dstream.MapWithState(keyed(c), spec().CheckpointInterval(1500*time.Millisecond)) }, "1.5s is not a multiple of the slide 1s"},
		"stream interval":   {nil, func(c ssc) { dstream.MapWithState(keyed(c), spec()).Checkpoint(0) }, "the checkpoint interval is 0s"},
		"plain interval":    {nil, func(c ssc) { numbers(c).Checkpoint(time.Second) }, "the stream has no state of its own"},
		"key type": {nil, func(c ssc) {
			dstream.MapWithState(dstream.KeyBy(numbers(c), func(i int) chan int { return nil }),
				dstream.Function(func(chan int, dstream.Option[int], *dstream.State[int]) int { return 0 }))
		}, "chan int"},
		"equal sources": {nil, func(c ssc) { numbers(c); numbers(c) }, `two sources are named "numbers"`},
		"equal operators": {nil, func(c ssc) {
			k := keyed(c)
			dstream.MapWithState(k, spec().Named("x"))
			dstream.MapWithState(k, spec().Named("x"))
		}, `two stateful operators are named "x"`},
		"equal outputs": {nil, func(c ssc) {
			n := numbers(c)
			dstream.Print(n, 1, dstream.Name("o"))
			dstream.Print(n, 1, dstream.Name("o"))
		}, `two outputs are named "o"`},
		"equal streams": {nil, func(c ssc) {
			n := numbers(c)
			dstream.Print(dstream.Map(n, func(i int) int { return i }).Named("x"), 1)
			dstream.Print(dstream.Map(n, func(i int) int { return -i }).Named("x"), 1)
		}, `two outputs of different streams go by the name "x"`},
		"name of a stream": {nil, func(c ssc) {
			n := numbers(c)
			dstream.Print(dstream.Map(n, func(i int) int { return i }).Named("x"), 1)
			dstream.Print(n, 1, dstream.Name("x"))
		}, `two outputs of different streams go by the name "x"`},
		"name of keyed": {nil, func(c ssc) { keyedState(c, dstream.Name("x")) }, "dstream.Keyed: Name does not apply to Keyed, whose name is an argument"},
		"keyed option":  {nil, func(c ssc) { keyedState(c, nil) }, "dstream.Keyed: option 0 is nil"},
		"keyed partitions": {nil, func(c ssc) { keyedState(c, dstream.NumPartitions(0)) },
			"dstream.Keyed: the number of partitions is 0"},
		"reduce option": {nil, func(c ssc) { dstream.ReduceByKey(keyed(c), add, dstream.NumPartitions(1), nil) },
			"dstream.ReduceByKey: option 1 is nil"},
		"reduce name": {nil, func(c ssc) { dstream.ReduceByKey(keyed(c), add, dstream.Name("")) },
			"dstream.ReduceByKey: the name is empty"},
		"print partitions": {nil, func(c ssc) { dstream.Print(numbers(c), 1, dstream.NumPartitions(2)) },
			"dstream.Print: NumPartitions does not apply to Print"},
		"print option": {nil, func(c ssc) { dstream.Print(numbers(c), 1, nil) }, "dstream.Print: option 0 is nil"},
		"print name":   {nil, func(c ssc) { dstream.Print(numbers(c), 1, dstream.Name("")) }, "dstream.Print: the name is empty"},
		"foreach partitions": {nil, func(c ssc) {
			dstream.Foreach(numbers(c), func(context.Context, dstream.Batch, int) error { return nil }, dstream.NumPartitions(2))
		}, "dstream.Foreach: NumPartitions does not apply to Foreach"},
		"foreach rdd partitions": {nil, func(c ssc) {
			dstream.ForeachRDD(numbers(c), func(context.Context, dstream.Batch, *dstream.RDD[int]) error { return nil }, dstream.NumPartitions(2))
		}, "dstream.ForeachRDD: NumPartitions does not apply to ForeachRDD"},
		"empty name":      {nil, func(c ssc) { numbers(c).Named("") }, "the name is empty"},
		"renamed source":  {nil, func(c ssc) { numbers(c).Named("other") }, "cannot be renamed"},
		"print":           {nil, func(c ssc) { dstream.Print(numbers(c), -1) }, "-1 records to print"},
		"remember stream": {nil, func(c ssc) { numbers(c).Remember(0) }, "the remember duration is 0s"},
		"other context": {nil, func(c ssc) {
			dstream.Union(numbers(c), numbers(dstream.New(time.Second)))
		}, "the stream belongs to another context"},
		"sink's settings": {nil, func(c ssc) {
			files := sink.Lines(sink.NewFiles("a/b", nil), func(b []byte, _ int) ([]byte, error) { return b, nil })
			dstream.Output(numbers(c), "out", files)
			dstream.Output(numbers(c), "more", files) // told once
		}, "dstream.Output: sink a/b: the store is nil"},
		"no files":     {nil, func(c ssc) { dstream.TextFileStream(c, "files") }, "no file is named"},
		"no directory": {nil, func(c ssc) { dstream.DirStream(c, "dir", "") }, "the directory's name is empty"},
		"no reader":    {nil, func(c ssc) { dstream.ReaderStream(c, "reader", nil) }, "the reader is nil"},
		"no address":   {nil, func(c ssc) { dstream.SocketStream(c, "socket", "") }, "the address is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dstream.NewStreamingContext(time.Second, tc.opts...)
			dstream.Print(dstream.From(c, "good", newScript[int](1)), 1)
			if tc.job != nil {
				tc.job(c)
			}
			err := c.Validate()
			require.ErrorIs(t, err, dstream.ErrInvalid)
			require.ErrorContains(t, err, tc.want)
			var v *dstream.ValidationError
			require.ErrorAs(t, err, &v)
			for _, f := range v.Faults {
				require.Regexp(t, `validate_test\.go:\d+$`, f.Caller)
			}
			require.Equal(t, err.Error(), c.Start().Error())
			require.ErrorIs(t, c.Start(), dstream.ErrStopped)
		})
	}
}

type endless struct{ *neverDone }

// neverDone is a source without Done.
type neverDone struct{}

func (*neverDone) Open(context.Context, *source.Plan) error { return nil }
func (*neverDone) Plan(context.Context, source.Limits) (source.Plan, error) {
	return source.Plan{}, nil
}
func (*neverDone) Read(context.Context, source.Range, func(int64, int) error) error { return nil }
func (*neverDone) Committed(context.Context, source.Plan) error                     { return nil }
func (*neverDone) Close() error                                                     { return nil }

func add(a, b int) int { return a + b }

// All faults of options and graph are told at once, each with its line.
func TestAllFaultsTogether(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	err := dstream.Run(context.Background(), 0, func(c ssc) error { // line + 1
		in := dstream.From(c, "in", newScript[int](1))
		dstream.Map[int, int](in, nil) // line + 3
		dstream.Repartition(in, -1)    // line + 4
		return nil
	}, dstream.WithParallelism(-2), // line + 6
		dstream.WithMaxQueuedBatches(-1)) // line + 7
	require.ErrorIs(t, err, dstream.ErrNoOutputs)
	var v *dstream.ValidationError
	require.ErrorAs(t, err, &v)
	var lines []int
	for _, f := range v.Faults {
		var n int
		_, serr := fmt.Sscanf(f.Caller[strings.LastIndex(f.Caller, ":"):], ":%d", &n)
		require.NoError(t, serr)
		lines = append(lines, n-line)
	}
	// interval, the options, the operators, the missing output
	require.Equal(t, []int{1, 6, 7, 3, 4, 1}, lines, "%v", err)
	require.ErrorContains(t, err, "6 faults")
	require.ErrorContains(t, err, "the batch interval is 0s")
}

func TestJobFaults(t *testing.T) {
	require.ErrorContains(t, dstream.Run(context.Background(), time.Second, nil), "the job is nil")
	mine := errors.New("mine")
	require.ErrorIs(t, dstream.Run(context.Background(), time.Second, func(ssc) error { return mine }), mine)
	// A stream made from nothing belongs to no context: nothing crashes
	// but its output, which Run reports (TestOutputOfANilStream).
	d := dstream.Map(dstream.From[int](nil, "x", nil), func(i int) int { return i }).Named("y").Cache()
	require.Panics(t, func() { dstream.Print(d, 1) })
	require.Zero(t, d.SlideDuration())
}

// Legal: two unnamed outputs of one stream, and a limit beyond an int64.
func TestNoFaults(t *testing.T) {
	c := dstream.New(24*time.Hour, dstream.WithMaxRatePerPartition(1e15))
	n := numbers(c)
	dstream.Print(n, 1)
	dstream.Print(n, 2)
	require.NoError(t, c.Validate())
}

// G1, F8: the states of a context.
func TestLife(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error { dstream.Print(numbers(c), 1); return nil })
	require.ErrorIs(t, r.ssc.Wait(), dstream.ErrNotStarted)
	_, ok := r.ssc.LastProgress()
	require.False(t, ok)
	r.start().tick(1)
	require.ErrorIs(t, r.ssc.Start(), dstream.ErrStarted)
	require.ErrorIs(t, r.ssc.Run(context.Background()), dstream.ErrStarted)
	p, ok := r.ssc.LastProgress()
	require.True(t, ok)
	require.EqualValues(t, 1, p.Batch.Epoch)
	require.NoError(t, r.ssc.Stop(context.Background()))
	require.NoError(t, r.ssc.Stop(context.Background()))
	require.NoError(t, r.ssc.Wait())
	require.ErrorIs(t, r.ssc.Start(), dstream.ErrStopped)

	unstarted := dstream.New(time.Second)
	require.NoError(t, unstarted.Stop(context.Background()))
	require.ErrorIs(t, unstarted.Start(), dstream.ErrStopped)
}

// F8: what is added after the start ends the run with an error that names the line.
func TestAddAfterStart(t *testing.T) {
	var in *dstream.DStream[int]
	r := newRig(t, time.Second, func(c ssc) error { in = numbers(c); dstream.Print(in, 1); return nil }).start().tick(1)
	dstream.Map(in, func(i int) int { return i })
	err := r.end()
	require.ErrorIs(t, err, dstream.ErrStarted)
	require.ErrorContains(t, err, "validate_test.go")
	require.ErrorContains(t, err, "adding inputs, transformations and outputs")
	dstream.Print(in, 1)
	in.Cache()
	require.ErrorIs(t, r.ssc.Validate(), dstream.ErrStopped)
}

// F8: so does what is set on a stream, and the error tells which call it was.
func TestChangeAfterStart(t *testing.T) {
	var in *dstream.DStream[int]
	r := newRig(t, time.Second, func(c ssc) error { in = numbers(c); dstream.Print(in, 1); return nil }).start().tick(1)
	in.Cache()
	err := r.end()
	require.ErrorIs(t, err, dstream.ErrStarted)
	require.ErrorContains(t, err, `dstream.DStream.Cache: the stream "numbers" cannot be changed any more`)
	require.NotContains(t, err.Error(), "adding inputs")
}

func TestNotes(t *testing.T) {
	c := dstream.New(time.Second)
	in := numbers(c)
	dstream.Print(in, 1)
	dstream.Map(in, func(i int) int { return i }).Named("idle")
	require.Len(t, c.Notes(), 1)
	require.Regexp(t, `validate_test\.go:\d+: no output depends on Map "idle"`, c.Notes()[0])
}

// Stop and Wait from inside would wait for themselves.
func TestInside(t *testing.T) {
	var errs []error
	var r *rig
	r = newRig(t, time.Second, func(c ssc) error {
		in := dstream.Map(numbers(c), func(i int) int {
			errs = append(errs, r.ssc.Wait())
			return i
		})
		dstream.ForeachRDD(in, func(context.Context, dstream.Batch, *dstream.RDD[int]) error {
			errs = append(errs, r.ssc.Stop(context.Background()))
			return nil
		})
		return nil
	}, dstream.WithListener(dstream.Listener{Started: func(time.Time) { errs = append(errs, r.ssc.Stop(context.Background())) }}))
	r.start().tick(1)
	require.Len(t, errs, 3)
	for _, err := range errs {
		require.ErrorIs(t, err, dstream.ErrInside)
	}
}

// Run from inside says that the context is started. A whole run of another context
// may be within a function.
func TestRunInside(t *testing.T) {
	var own, other error
	inner := 0
	var r *rig
	r = newRig(t, time.Second, func(c ssc) error {
		dstream.ForeachRDD(numbers(c), func(ctx context.Context, _ dstream.Batch, _ *dstream.RDD[int]) error {
			own = r.ssc.Run(ctx)
			other = dstream.Run(ctx, time.Millisecond, func(c ssc) error {
				dstream.Foreach(dstream.QueueStream(c, []int{1}, []int{2}), func(_ context.Context, _ dstream.Batch, i int) error {
					inner += i
					return nil
				})
				return nil
			}, dstream.WithStopWhenDone())
			return nil
		})
		return nil
	})
	r.start().tick(1)
	require.ErrorIs(t, own, dstream.ErrStarted)
	require.NotErrorIs(t, own, dstream.ErrInside)
	require.NoError(t, other)
	require.Equal(t, 3, inner)
}

// Several contexts in one process, running the same job.
func TestSeveralContexts(t *testing.T) {
	job := func(c ssc) error { dstream.Print(numbers(c), 1, dstream.Name("o")); return nil }
	a, b := newRig(t, time.Second, job).start(), newRig(t, time.Minute, job).start()
	a.tick(2)
	b.tick(1)
	require.Equal(t, [][]int{{1}, {}}, out[int](a, "o"))
	require.Equal(t, [][]int{{1}}, out[int](b, "o"))
}

// The test kit's replacements: by name and type.
func TestReplacedSource(t *testing.T) {
	job := func(c ssc) error { dstream.Print(numbers(c), 1, dstream.Name("o")); return nil }
	with := func(name string, src any) *rig {
		h := harness.New()
		h.ReplaceSource(name, src)
		r := newRig(t, time.Second, job, dstream.WithHarness(h))
		r.h = h
		return r
	}
	r := with("numbers", newScript(1, []int{7})).start().tick(1)
	require.EqualValues(t, 1, r.last().InputRows)
	require.ErrorContains(t, with("numbers", newScript(1, []string{"7"})).ssc.Start(), `in the place of source "numbers"`)
	require.ErrorContains(t, with("letters", newScript(1, []int{7})).ssc.Start(), `no source named "letters"`)
}

func TestSmallThings(t *testing.T) {
	c := dstream.New(3 * time.Second)
	require.Equal(t, 3*time.Second, c.Interval())
	require.Equal(t, "Fail Skip", fmt.Sprint(dstream.Fail, " ", dstream.Skip))
	v, ok := dstream.Some(3).Get()
	require.True(t, ok)
	require.Equal(t, 3, v)
	require.False(t, dstream.None[int]().IsSome())
	var d *dstream.DStream[int]
	require.Empty(t, d.Name())
	require.Equal(t, "Map-1", dstream.Map(numbers(c), func(i int) int { return i }).Name())
}
