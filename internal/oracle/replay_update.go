package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// replayUpdateStateByKey runs a case by the function that it names.
func replayUpdateStateByKey(t testing.TB, c *Case) {
	switch c.Config.Function {
	case "sum":
		replayUpdates(t, c, sumUp, showPair)
	case "drop":
		replayUpdates(t, c, func(values []int64, old dstream.Option[int64]) dstream.Option[int64] {
			if sum := sumUp(values, old); sum.OrElse(0) > 0 {
				return sum
			}
			return dstream.None[int64]()
		}, showPair)
	case "idle":
		type state struct{ Total, Idle int64 }
		replayUpdates(t, c, func(values []int64, old dstream.Option[state]) dstream.Option[state] {
			s := old.OrElse(state{})
			switch {
			case len(values) > 0:
				s.Total, s.Idle = sumUp(values, dstream.Some(s.Total)).OrElse(0), 0
			case s.Idle >= 2:
				return dstream.None[state]()
			default:
				s.Idle++
			}
			return dstream.Some(s)
		}, func(p dstream.Pair[string, state]) any { return []any{p.Key, p.Value.Total, p.Value.Idle} })
	case "list":
		replayUpdates(t, c, func(values []int64, old dstream.Option[string]) dstream.Option[string] {
			return dstream.Some(old.OrElse("") + strings.ReplaceAll(fmt.Sprint(values), " ", ","))
		}, func(p dstream.Pair[string, string]) any { return []any{p.Key, p.Value} })
	default:
		t.Fatalf("unknown function %q", c.Config.Function)
	}
}

func sumUp(values []int64, old dstream.Option[int64]) dstream.Option[int64] {
	sum := old.OrElse(0)
	for _, v := range values {
		sum += v
	}
	return dstream.Some(sum)
}

func replayUpdates[S any](t testing.TB, c *Case, f func([]int64, dstream.Option[S]) dstream.Option[S], show func(dstream.Pair[string, S]) any) {
	opts := append(opOptions(c), dstream.Name(opName))
	if c.Config.InitialState != nil {
		opts = append(opts, dstream.InitialState(func(yield func(string, S) bool) {
			for _, row := range c.Config.InitialState {
				p, err := pair[S](row)
				if err != nil {
					t.Fatalf("initial state: %v", err)
				}
				if !yield(p.Key, p.Value) {
					return
				}
			}
		}))
	}
	if keepsInitial(c) {
		compareAll(t, c, updated(t, c, true, f), show) // that the recorded case is this
		c = withOutputs(t, c, updated(t, c, false, f), show)
	}
	replayStopping(t, c, pair[int64], func(in pairs) dstream.Stream[dstream.Pair[string, S]] {
		return dstream.UpdateStateByKey(in, f, opts...)
	}, show)
}

// updated works out what a case's function gives, batch by batch; initialKept: as Spark does
// where the first batches have no RDD.
func updated[S any](t testing.TB, c *Case, initialKept bool, f func([]int64, dstream.Option[S]) dstream.Option[S]) (outputs [][]dstream.Pair[string, S]) {
	t.Helper()
	state := map[string]S{}
	for _, row := range c.Config.InitialState {
		p, err := pair[S](row)
		if err != nil {
			t.Fatalf("initial state: %v", err)
		}
		state[p.Key] = p.Value
	}
	for i := range c.BatchCount() {
		if initialKept = initialKept && at(c.Batches, i).Null; initialKept {
			outputs = append(outputs, []dstream.Pair[string, S]{})
			continue
		}
		values := map[string][]int64{}
		for k := range state {
			values[k] = nil
		}
		for _, row := range at(c.Batches, i).List {
			p, err := pair[int64](row)
			if err != nil {
				t.Fatalf("batch %d: %v", i+1, err)
			}
			values[p.Key] = append(values[p.Key], p.Value)
		}
		batch := []dstream.Pair[string, S]{}
		for k, v := range values {
			old := dstream.None[S]()
			if s, ok := state[k]; ok {
				old = dstream.Some(s)
			}
			s, ok := f(v, old).Get()
			if !ok {
				delete(state, k)
				continue
			}
			state[k] = s
			batch = append(batch, dstream.KV(k, s))
		}
		outputs = append(outputs, batch)
	}
	return outputs
}

// withOutputs is the case with other recorded outputs.
func withOutputs[U any](t testing.TB, c *Case, outputs [][]U, show func(U) any) *Case {
	t.Helper()
	all := [][]any{}
	for _, batch := range outputs {
		rows := []any{}
		for _, v := range batch {
			rows = append(rows, show(v))
		}
		all = append(all, rows)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	other := *c
	other.Outputs = text
	return &other
}

// replayStopping replays a case in one run, and where it was stopped, in its lives too.
func replayStopping[T, U any](t testing.TB, c *Case, decode func(Row) (T, error), build func(in *dstream.DStream[T]) dstream.Stream[U], show func(U) any) {
	t.Helper()
	replayFailing(t, c, decode, build, show)
	if failing, _ := stopsAtFailure(c); hasStops(c) && failing == 0 {
		for _, end := range []string{stopped, killed} {
			compareAll(t, c, runLives(t, c, end, decode, build), show)
		}
	}
}

// runLives runs a case of one input and one output in its lives, each on the checkpoint
// of the one before, and gives what each batch wrote.
func runLives[T, U any](t testing.TB, c *Case, end string, decode func(Row) (T, error), build func(in *dstream.DStream[T]) dstream.Stream[U]) (outputs [][]U) {
	t.Helper()
	n := c.BatchCount()
	in := &Script[T]{Partitions: max(1, c.Config.InputPartitions)}
	for i := range n {
		var batch []T
		for _, row := range at(c.Batches, i).List {
			v, err := decode(row)
			if err != nil {
				t.Fatalf("batch %d: %v", i+1, err)
			}
			batch = append(batch, v)
		}
		in.Batches = append(in.Batches, batch)
	}
	disk := vfs.NewMem()
	for number, l := range livesOf(c, n) {
		store, err := vfs.NewDir(disk, "/ckpt", fmt.Sprint("life", number))
		if err != nil {
			t.Fatal(err)
		}
		kit := milltest.New(t, c.Interval(), func(ssc *dstream.StreamingContext) error {
			dstream.Print(build(dstream.From(ssc, inName, in)), 0, dstream.Name(outName))
			return nil
		}, dstream.WithCheckpointStore(store, dstream.SnapshotEvery(3)))
		kit.StartAt(time.UnixMilli(int64(l.from) * c.Config.BatchIntervalMs))
		kit.Tick(l.to - l.from)
		if err := kit.Err(); err != nil {
			t.Fatalf("the run of batches %d to %d failed: %v", l.from+1, l.to, errors.Unwrap(err))
		}
		if end == killed { // before it goes on to its own end
			disk = disk.CrashClone(nil, 0)
		}
		outputs = append(outputs, newest(l.to-l.from, milltest.Output[U](kit, outName))...)
		if err := kit.Stop(); err != nil {
			t.Fatalf("life of batches %d to %d: %v", l.from+1, l.to, err)
		}
	}
	return outputs
}
