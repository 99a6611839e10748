package oracle

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// windowReplayer gives the replayer of a windowed operator.
func windowReplayer(op string) replayer {
	switch op {
	case "window":
		return replayWindow
	case "reduceByWindow":
		return replayReduceByWindow
	case "countByWindow":
		return replayCountByWindow
	case "countByValueAndWindow":
		return replayCountByValueAndWindow
	case "groupByKeyAndWindow":
		return replayGroupByKeyAndWindow
	case "reduceByKeyAndWindow":
		return replayReduceByKeyAndWindow
	}
	return nil
}

// named are the options of a windowed operator, whose batches a checkpoint finds by name.
func named(c *Case) []dstream.OpOption { return append(opOptions(c), dstream.Name(opName)) }

func replayWindow(t testing.TB, c *Case) {
	replayStopping(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[string] {
		return dstream.Window(in, ms(c.Config.WindowMs), slideOf(c)).Named(opName)
	}, raw)
}

func replayReduceByWindow(t testing.TB, c *Case) {
	decode := func(row Row) (v int64, err error) { return v, json.Unmarshal(row, &v) }
	reduce, length, slide := reducer(t, c), ms(c.Config.WindowMs), slideOf(c)
	replayStopping(t, c, decode, func(in *dstream.DStream[int64]) dstream.Stream[int64] {
		if c.Config.Inverse {
			return dstream.ReduceByWindowInverse(in, reduce, inverse(t, c), length, slide).Named(opName)
		}
		return dstream.ReduceByWindow(in, reduce, length, slide).Named(opName)
	}, func(v int64) any { return v })
}

func replayCountByWindow(t testing.TB, c *Case) {
	replayStopping(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[int64] {
		return dstream.CountByWindow(in, ms(c.Config.WindowMs), slideOf(c)).Named(opName)
	}, func(v int64) any { return v })
}

func replayCountByValueAndWindow(t testing.TB, c *Case) {
	replayStopping(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[pairInt] {
		return dstream.CountByValueAndWindow(in, ms(c.Config.WindowMs), slideOf(c), named(c)...)
	}, showCount)
}

func replayGroupByKeyAndWindow(t testing.TB, c *Case) {
	replayStopping(t, c, pair[int64], func(in pairs) dstream.Stream[dstream.Pair[string, []int64]] {
		return dstream.GroupByKeyAndWindow(in, ms(c.Config.WindowMs), slideOf(c), named(c)...)
	}, showGroup)
}

func replayReduceByKeyAndWindow(t testing.TB, c *Case) {
	reduce, length, slide := reducer(t, c), ms(c.Config.WindowMs), slideOf(c)
	replayStopping(t, c, pair[int64], func(in pairs) dstream.Stream[pairInt] {
		if c.Config.Inverse {
			return dstream.ReduceByKeyAndWindowInverse(in, reduce, inverse(t, c), filter(t, c), length, slide, named(c)...)
		}
		return dstream.ReduceByKeyAndWindow(in, reduce, length, slide, named(c)...)
	}, showPair)
}

// inverse gives the inverse of a case's reduce function.
func inverse(t testing.TB, c *Case) func(a, b int64) int64 {
	t.Helper()
	if c.Config.Reduce != "sum" {
		t.Fatalf("reduce function %q has no known inverse", c.Config.Reduce)
	}
	return func(a, b int64) int64 { return a - b }
}

// filter gives a case's filter of an inverse window, nil for none.
func filter(t testing.TB, c *Case) func(string, int64) bool {
	t.Helper()
	switch {
	case c.Config.Filter == nil:
		return nil
	case *c.Config.Filter == "value != 0":
		return func(_ string, v int64) bool { return v != 0 }
	}
	t.Fatalf("unknown filter %q", *c.Config.Filter)
	return nil
}

// replayFailing replays a case which may end with an error, up to the batch that
// fails; there the run ends, as stopsAtFailure says.
func replayFailing[T, U any](t testing.TB, c *Case, decode func(Row) (T, error), build func(in *dstream.DStream[T]) dstream.Stream[U], show func(U) any) {
	t.Helper()
	failing, recorded := stopsAtFailure(c)
	if failing == 0 {
		compareAll(t, c, run(t, c, decode, build), show)
		return
	}
	kit := milltest.New(t, c.Interval(), func(ssc *dstream.StreamingContext) error {
		dstream.Print(build(from[T](ssc, inName)), 0, dstream.Name(outName))
		return nil
	})
	feed(t, milltest.Input[T](kit, inName), c.Batches, c.BatchCount(), decode)
	kit.Tick(failing)
	err := kit.Err()
	if !errors.Is(err, dstream.ErrNotInWindow) {
		t.Errorf("batch %d: error %v, want ErrNotInWindow for the recorded %q", failing, err, recorded)
	}
	var batch *dstream.BatchError
	if want := batchTime(c, failing-1); !errors.As(err, &batch) || !batch.Batch.Time.Equal(want) {
		t.Errorf("the run ended with %v, want a failure of the batch of %v", err, want)
	}
	got := milltest.Output[U](kit, outName)
	if len(got) != failing-1 {
		t.Errorf("%d batches are committed, want %d: batch %d failed", len(got), failing-1, failing)
	}
	compareFirst(t, c, min(failing-1, len(got)), got, show)
}
