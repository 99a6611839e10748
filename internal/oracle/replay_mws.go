package oracle

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/staterdd"
)

// replayMapWithState compares outputs, snapshots and state times of every
// batch, up to the failing one where the case has one.
func replayMapWithState(t testing.TB, c *Case) {
	if len(c.Config.RepartitionAfterBatch) == 0 {
		replayUninterrupted(t, c)
	}
	if hasStops(c) {
		replayLives(t, c, stopped)
		replayLives(t, c, killed)
	}
}

// replayUninterrupted runs all batches in one run, in memory.
func replayUninterrupted(t testing.TB, c *Case) {
	kit := milltest.New(t, c.Interval(), mwsJob(t, c, c.Config.Partitions, func(ssc *dstream.StreamingContext) *dstream.DStream[dstream.Pair[string, string]] {
		return from[dstream.Pair[string, string]](ssc, inName)
	}))
	n := c.BatchCount()
	in := milltest.Input[dstream.Pair[string, string]](kit, inName)
	if c.Config.InputPartitions > 1 {
		in.Partitions(c.Config.InputPartitions)
	}
	feed(t, in, c.Batches, n, pair[string])

	failing, text := stopsAtFailure(c)
	if failing > 0 {
		n = failing - 1
	}
	for i := range n {
		kit.Tick(1)
		compareTimes(t, c, kit, i)
	}
	if failing > 0 {
		kit.Tick(1)
		assertStopped(t, c, kit, failing, text)
	}
	if err := kit.Err(); err != nil && failing == 0 {
		t.Fatalf("the run failed: %v", err)
	}

	outputs := texts(milltest.Output[string](kit, outName))
	if failing > 0 && len(outputs) != n {
		t.Errorf("%d batches are committed, want %d: batch %d failed", len(outputs), n, failing)
	}
	compareOutputs(t, c, n, outputs)
	if len(c.Snapshots) == 0 {
		return
	}
	snapshots := milltest.Output[dstream.Pair[string, int64]](kit, snapName)
	for i := range min(n, len(snapshots), len(c.Snapshots)) {
		got := canonAll(t, snapshots[i], func(p dstream.Pair[string, int64]) any { return []any{p.Key, p.Value} })
		compareBatch(t, "snapshots", i, c.Snapshots[i].List, got)
	}
}

// mwsJob builds the job of a mapWithState case from its parameters, with that many
// partitions of state.
func mwsJob(t testing.TB, c *Case, partitions int, in func(*dstream.StreamingContext) *dstream.DStream[dstream.Pair[string, string]]) dstream.Job {
	cfg := c.Config
	spec := dstream.FunctionErr(mwsFunc(cfg.OnTimeout)).Named(opName)
	if partitions > 0 {
		spec = spec.NumPartitions(partitions)
	}
	if cfg.TimeoutMs != nil {
		// Spark looks for idle keys only when it writes a checkpoint.
		spec = spec.Timeout(time.Duration(*cfg.TimeoutMs) * time.Millisecond).TimeoutScan(staterdd.AtCheckpoint)
	}
	if cfg.CheckpointIntervalMs != nil {
		spec = spec.CheckpointInterval(time.Duration(*cfg.CheckpointIntervalMs) * time.Millisecond)
	}
	if cfg.DeltaChainThreshold > 0 {
		spec = spec.DeltaChainThreshold(cfg.DeltaChainThreshold)
	}
	if cfg.InitialState != nil {
		var initial []dstream.Pair[string, int64]
		for _, row := range cfg.InitialState {
			p, err := pair[int64](row)
			if err != nil {
				t.Fatalf("initial state: %v", err)
			}
			initial = append(initial, p)
		}
		spec = spec.InitialState(func(yield func(string, int64) bool) {
			for _, p := range initial {
				if !yield(p.Key, p.Value) {
					return
				}
			}
		})
	}
	return func(ssc *dstream.StreamingContext) error {
		mapped := dstream.MapWithState(in(ssc), spec)
		dstream.Print(mapped, 0, dstream.Name(outName))
		dstream.Print(mapped.StateSnapshots(), 0, dstream.Name(snapName))
		return nil
	}
}

// texts takes outputs that are canonical JSON already as multisets.
func texts(outputs [][]string) []Multiset {
	m := make([]Multiset, len(outputs))
	for i, o := range outputs {
		m[i] = o
	}
	return m
}

// compareTimes compares the whole state after batch i with its update times.
func compareTimes(t testing.TB, c *Case, kit *milltest.Kit, i int) {
	t.Helper()
	if err := kit.Err(); err != nil {
		t.Fatalf("batch %d: the run failed: %v", i+1, err)
	}
	if i >= len(c.StateTimes) || c.StateTimes[i].Null {
		return
	}
	compareBatch(t, "state times", i, c.StateTimes[i].List, stateTimes(t, kit))
}

// assertStopped asserts what Statemill gives where Spark goes on failing: the
// run is over, with the function's error, which says where it happened; and the
// newest readable state is that of the batch before.
func assertStopped(t testing.TB, c *Case, kit *milltest.Kit, failing int, recorded string) {
	t.Helper()
	err := kit.Err()
	if err == nil || !kit.Ended() {
		t.Fatalf("batch %d: Spark failed with %q, the run goes on (error %v)", failing, recorded, err)
	}
	var cause *boom
	if !errors.As(err, &cause) || !slices.Contains(mayThrow(c, failing-1, recorded), cause.text) {
		t.Errorf("batch %d: error %v, want the function's own: %q", failing, err, recorded)
	}
	var where *rdd.RecordError
	if !errors.As(err, &where) {
		t.Errorf("batch %d: error %v does not say at which record it happened", failing, err)
	} else if where.Operator != opName {
		t.Errorf("batch %d: the error names operator %q, want %q", failing, where.Operator, opName)
	}
	var batch *dstream.BatchError
	if !errors.As(err, &batch) {
		t.Errorf("batch %d: error %v does not say in which batch it happened", failing, err)
	} else if want := batchTime(c, failing-1); !batch.Batch.Time.Equal(want) {
		t.Errorf("the run failed in the batch of %v, want %v", batch.Batch.Time, want)
	}
	if failing >= 2 {
		compareBatch(t, "state times after the failure", failing-2, at(c.StateTimes, failing-2).List, stateTimes(t, kit))
	}
	kit.Tick(3) // Statemill is not Spark: nothing more happens
	if n := len(kit.Progress()); n != failing-1 {
		t.Errorf("%d batches completed, want %d", n, failing-1)
	}
}

// stateTimes gives the whole state as [key, state, update time].
func stateTimes(t testing.TB, kit *milltest.Kit) (got Multiset) {
	t.Helper()
	for key, s := range milltest.StateTimes[string, int64](kit, opName) {
		text, err := CanonOf([]any{key, s.State, s.Time.UnixMilli()})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	return got
}

// mayThrow lists the texts with which batch i may fail. Where several calls of
// a batch throw, the first to be met ends it: partitions run side by side, and
// keys are not in Spark's partitions here.
func mayThrow(c *Case, i int, recorded string) []string {
	_, text, _ := strings.Cut(recorded, ": ")
	var texts []string
	for _, row := range at(c.Batches, i).List {
		if p, err := pair[string](row); err == nil && p.Value == "throw" {
			texts = append(texts, "boom "+p.Key)
		}
	}
	if c.Config.TimeoutMs != nil && c.Config.OnTimeout == "throw" && i > 0 {
		for _, row := range at(c.StateTimes, i-1).List {
			var key string
			var time int64
			if json.Unmarshal(row, &[]any{&key, new(int64), &time}) == nil && time < batchTime(c, i).UnixMilli()-*c.Config.TimeoutMs {
				texts = append(texts, "boom on timeout "+key)
			}
		}
	}
	if !slices.Contains(texts, text) {
		return []string{text} // not understood: then nothing but the recorded text will do
	}
	return texts
}
