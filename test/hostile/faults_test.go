package hostile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// twoOutputs counts words into an exactly-once sink.
func twoOutputs(w *world) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		c := dstream.MapWithState(w.words(ssc, "a"), count())
		dstream.Print(c, 1, dstream.Name("o"))
		dstream.Output(c, "f", sink.Lines(w.files("f"), func(b []byte, p word) ([]byte, error) { return fmt.Append(b, p.Key, p.Value), nil }))
		return nil
	}
}

var (
	input  = []string{"x", "y", "x", "z", "x", "y"}
	totals = map[string]int{"x": 3, "y": 2, "z": 1}
	shown  = []string{"x1", "x2", "x3", "y1", "y2", "z1"}
)

// exact says that sink and state have every record once.
func (w *world) exact(what string) {
	w.Helper()
	var rows []string
	for _, r := range w.written("f") {
		rows = append(rows, r[strings.IndexByte(r, ' ')+1:])
	}
	slices.Sort(rows)
	require.Equal(w, shown, rows, what)
	require.Equal(w, totals, state[string, int](w, w.last, "counts"), what)
}

// finish gives the world's last life all of the input and stops it.
func (w *world) finish(what string) {
	w.Helper()
	l := w.life(twoOutputs(w))
	require.NoError(w, l.ssc.Start(), what)
	w.fill(len(input))
	require.NoError(w, l.tick(4), what)
	w.exact(what)
	require.NoError(w, l.stop(), what)
}

// fill lets the topic have n records.
func (w *world) fill(n int) {
	if have := len(w.topic("a").rows); have < n {
		w.topic("a").add(input[have:n]...)
	}
}

// full is every call that needs room on the disk.
const full = vfs.KindCreate | vfs.KindWrite | vfs.KindSync | vfs.KindLink | vfs.KindMkdirAll | vfs.KindSyncDir

// A disk that is full for a moment, at any call, is waited for, and does not show.
func TestDiskIsFullForAMoment(t *testing.T) {
	for k := 1; ; k += 3 {
		w := newWorld(t)
		var f vfs.Faults
		w.fs = vfs.WithFaults(w.fs, &f)
		f.Fail(vfs.Rule{K: k, Kinds: full, Err: syscall.ENOSPC, After: k%2 == 0})
		l := w.life(twoOutputs(w))
		require.NoError(t, l.ssc.Start(), "call %d", k)
		for n := range input {
			w.fill(n + 1)
			require.NoError(t, l.tick(1), "call %d", k)
		}
		w.exact(fmt.Sprint("call ", k))
		require.NoError(t, l.stop())
		if f.Hits() == 0 {
			require.Greater(t, k, 150)
			return
		}
	}
}

// A disk that stays full ends the run with an error that says so; with room again, the
// next run goes on.
func TestDiskIsFull(t *testing.T) {
	for k := 1; ; k += 7 {
		w := newWorld(t)
		mem := w.fs
		var f vfs.Faults
		w.fs = vfs.WithFaults(mem, &f)
		f.Fail(vfs.Rule{K: k, Kinds: full, Err: syscall.ENOSPC, Forever: true})
		l := w.life(twoOutputs(w))
		err := l.ssc.Start()
		for n := 0; n < len(input) && err == nil; n++ {
			w.fill(n + 1)
			err = l.tick(1)
		}
		if f.Hits() == 0 {
			require.NoError(t, err)
			require.NoError(t, l.stop())
			return
		}
		what := fmt.Sprint("call ", k)
		if err != nil { // snapshots may fail and only tell
			require.ErrorIs(t, err, syscall.ENOSPC, what)
			require.ErrorContains(t, err, "given up after", what)
		}
		_ = l.stop()
		w.fs = mem
		w.finish(what)
	}
}

// A start on a disk that cannot be written tells of its tries, and names the cause.
func TestNothingCanBeWritten(t *testing.T) {
	for _, e := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EACCES} {
		w := newWorld(t)
		var f vfs.Faults
		w.fs = vfs.WithFaults(w.fs, &f)
		f.Fail(vfs.Rule{Kinds: full, Forever: true, Err: e})
		l := w.life(twoOutputs(w))
		require.ErrorIs(t, l.ssc.Start(), e)
		if e == syscall.ENOSPC { // the others do not pass by themselves
			require.Contains(t, l.text(), "is tried again")
		}
	}
}

// The functions of a user that run late in an epoch may panic: the error names them,
// at once, and the next run repeats nothing.
func TestPanicsLateInTheEpoch(t *testing.T) {
	for _, c := range []struct{ where, names string }{
		{"encode", "output f: partition"}, {"completed", "listener: panic: boom"}, {"started", "listener: panic: boom"},
		{"print", `output "o"`}, {"notice", "listener: panic: boom"},
	} {
		w := newWorld(t)
		w.fill(len(input))
		bad := true
		boom := func(here string) {
			if bad && here == c.where {
				panic("boom")
			}
		}
		job := func(ssc *dstream.StreamingContext) error {
			counts := dstream.MapWithState(w.words(ssc, "a"), count())
			dstream.ForeachRDD(counts, func(context.Context, dstream.Batch, *dstream.RDD[word]) error { boom("print"); return nil }, dstream.Name("o"))
			dstream.Output(counts, "f", sink.Lines(w.files("f"), func(b []byte, p word) ([]byte, error) {
				boom("encode")
				return fmt.Append(b, p.Key, p.Value), nil
			}))
			return nil
		}
		listener := dstream.WithListener(dstream.Listener{
			BatchCompleted: func(dstream.Progress) { boom("completed") },
			BatchStarted:   func(dstream.Batch) { boom("started") },
			Notice:         func(dstream.Notice) { boom("notice") },
		})
		l := w.life(job, listener)
		err := l.ssc.Start()
		if err == nil {
			err = l.tick(1)
		}
		require.ErrorContains(t, err, "boom", c.where)
		require.ErrorContains(t, err, c.names, c.where)
		require.NotContains(t, err.Error(), "given up after", c.where)
		_ = l.stop()
		bad = false
		w.finish(c.where)
	}
}
