package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// The names by which the kit finds the parts of every replayed job.
const (
	inName, in2Name = "in", "in2"
	outName         = "out"
	snapName        = "snapshots"
	opName          = "op"
)

// replayer runs the batches of a case and compares each.
type replayer func(t testing.TB, c *Case)

// replayerOf gives the replayer of an operator, nil when it does not exist yet.
func replayerOf(op string) replayer {
	switch op {
	case "mapWithState":
		return replayMapWithState
	case "mapValues":
		return replayMapValues
	case "flatMapValues":
		return replayFlatMapValues
	case "reduceByKey":
		return replayReduceByKey
	case "transform":
		return replayTransform
	case "reduce":
		return replayReduce
	case "count":
		return replayCount
	case "glom":
		return replayGlom
	case "union":
		return replayUnion
	case "repartition":
		return replayRepartition
	case "glomSizesAfterRepartition":
		return replayGlomSizes
	case "slice":
		return replaySlice
	}
	if r := keyedReplayer(op); r != nil {
		return r
	}
	return windowReplayer(op)
}

// Exists reports whether cases of an operator can be replayed.
func Exists(op string) bool { return replayerOf(op) != nil }

// Replay runs a case and reports every difference on t. A case that cannot be
// replayed yet skips t, saying why.
func Replay(t testing.TB, c *Case) {
	t.Helper()
	if why := skipReason(c); why != "" {
		t.Skip(why)
	}
	replayerOf(c.Op)(t, c)
}

// from is the scripted input's place in the job: the kit puts its own source
// there, so that the queue behind it is never read.
func from[T any](ssc *dstream.StreamingContext, name string) *dstream.DStream[T] {
	return dstream.From(ssc, name, source.NewQueue[T](1))
}

// feed queues n batches of an input. A batch without an RDD is an empty one.
func feed[T any](t testing.TB, in *milltest.In[T], batches []Rows, n int, decode func(Row) (T, error)) {
	t.Helper()
	for i := range n {
		var records []T
		for _, row := range at(batches, i).List {
			v, err := decode(row)
			if err != nil {
				t.Fatalf("batch %d: %v", i+1, err)
			}
			records = append(records, v)
		}
		in.Batch(records...)
	}
}

// pair decodes a row [key, value].
func pair[V any](row Row) (p dstream.Pair[string, V], err error) {
	var both []json.RawMessage
	if err := json.Unmarshal(row, &both); err != nil || len(both) != 2 {
		return p, fmt.Errorf("row %s is no [key, value]", row)
	}
	err = errors.Join(json.Unmarshal(both[0], &p.Key), json.Unmarshal(both[1], &p.Value))
	if err != nil {
		err = fmt.Errorf("row %s: %w", row, err)
	}
	return p, err
}

// text decodes a row of any shape as its canonical text.
func text(row Row) (string, error) { return Canon(row) }

// canonAll gives the records of a batch as a multiset of what show makes of
// each.
func canonAll[T any](t testing.TB, records []T, show func(T) any) Multiset {
	t.Helper()
	m := make(Multiset, 0, len(records))
	for _, r := range records {
		s, err := CanonOf(show(r))
		if err != nil {
			t.Fatal(err)
		}
		m = append(m, s)
	}
	return m
}

// compareOutputs compares the outputs of the first n batches with the recorded
// ones, or with what the list of differences has in their place.
func compareOutputs(t testing.TB, c *Case, n int, got []Multiset) {
	t.Helper()
	want, err := c.OutputRows()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < n {
		t.Errorf("%d batches ran, want %d", len(got), n)
		n = len(got)
	}
	for i := range min(n, len(want)) {
		rows := want[i].List
		if other, differs := nullBatchRows(c, i); differs {
			rows = other
		} else if offSlide(c, i) {
			if !want[i].Null || got[i] != nil {
				t.Errorf("batch %d is off the slide: recorded %v, got %v, want nothing", i+1, want[i], got[i])
			}
			continue
		} else if want[i].Null {
			t.Errorf("batch %d: the case has no output, and no entry of the list of differences says what to expect", i+1)
			continue
		}
		if got[i] == nil {
			t.Errorf("batch %d: the output did not run", i+1)
		}
		compareBatch(t, "outputs", i, rows, got[i])
	}
}

// compareBatch compares one batch with recorded rows.
func compareBatch(t testing.TB, what string, batch int, want []Row, got Multiset) {
	t.Helper()
	w, err := CanonRows(want)
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(w, got); d != "" {
		t.Errorf("batch %d: %s differ from Spark's: %s", batch+1, what, d)
	}
}

// batchTime is the time of batch i (from 0).
func batchTime(c *Case, i int) time.Time {
	return time.UnixMilli(int64(i+1) * c.Config.BatchIntervalMs).UTC()
}
