package oracle

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
)

// sliceCall is one recorded call of slice, asked after the last batch.
type sliceCall struct {
	FromMs, ToMs int64
	RDDs         [][]Row
}

// replaySlice asks for every recorded range after the last batch that any of
// them names.
func replaySlice(t testing.TB, c *Case) {
	var calls []sliceCall
	if err := json.Unmarshal(c.Outputs, &calls); err != nil {
		t.Fatalf("outputs of slice: %v", err)
	}
	n := len(c.Batches)
	for _, call := range calls {
		n = max(n, int(call.ToMs/c.Config.BatchIntervalMs))
	}
	var stream *dstream.DStream[string]
	kit := milltest.New(t, c.Interval(), func(ssc *dstream.StreamingContext) error {
		stream = from[string](ssc, inName)
		dstream.Print(stream, 0, dstream.Name(outName))
		return nil
	}, dstream.WithRemember(time.Duration(n+1)*c.Interval()))
	feed(t, milltest.Input[string](kit, inName), c.Batches, n, text)
	kit.Tick(n)
	for _, call := range calls {
		got, err := dstream.Slice(stream, time.UnixMilli(call.FromMs), time.UnixMilli(call.ToMs))
		if err != nil {
			t.Errorf("slice from %d to %d ms: %v", call.FromMs, call.ToMs, err)
			continue
		}
		i := 0
		for _, b := range got {
			records, err := rdd.Collect(t.Context(), b.RDD)
			b.RDD.Release()
			if err != nil {
				t.Fatal(err)
			}
			batch := int(b.Time.UnixMilli()/c.Config.BatchIntervalMs) - 1
			if leavesOut(c, batch) {
				compareBatch(t, "slice", batch, nil, canonAll(t, records, raw))
				continue
			}
			if i < len(call.RDDs) {
				compareBatch(t, "slice", batch, call.RDDs[i], canonAll(t, records, raw))
			}
			i++
		}
		if i != len(call.RDDs) {
			t.Errorf("slice from %d to %d ms: %d batches, want %d", call.FromMs, call.ToMs, i, len(call.RDDs))
		}
	}
}
