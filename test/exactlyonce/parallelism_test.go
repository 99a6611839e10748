package exactlyonce

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// spreadJob lays records out by key without being told in how many partitions, in an
// operator and in windows longer than the time a crash takes, and writes them to two folders that commit one after the other.
func (l *life) spreadJob(tag string) {
	words := dstream.From(l.ssc, "words", l.w.script())
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	add := func(a, b int) int { return a + b }
	sums := dstream.ReduceByKey(ones, add)
	held := dstream.ReduceByKeyAndWindow(ones, add, 24*time.Hour, time.Second).Named("held")
	for _, name := range []string{"a", "b"} {
		unit := sink.NewFiles(name, l.w.store("out", tag, l.in))
		dstream.Output(sums, "sums "+name, sink.Lines(unit, sink.Text[dstream.Pair[string, int]]))
		dstream.Output(held, "held "+name, sink.Lines(unit, sink.Text[dstream.Pair[string, int]]))
	}
}

// unplaced leaves out of what readers see the partitions, and sorts it: after a restart an
// epoch may have others.
func unplaced(sees string) string {
	list := strings.Split(sees, "\n")
	for i, row := range list {
		place, data, _ := strings.Cut(row, "/")
		_, data, _ = strings.Cut(data, " ")
		list[i] = place + " " + data
	}
	return sorted(strings.Join(list, "\n"))
}

// Report 31: what an epoch writes does not depend on the machine that redoes it. Power is lost
// before every call to the disk, and after it, and the job starts again with more cores: the
// epoch that one sink has is redone in as many partitions as it was planned with.
func TestRedoneWithOtherParallelism(t *testing.T) {
	step, crashes := 1, 0
	if testing.Short() {
		step = 7
	}
	clean := newWorld(t, "ab", true)
	clean.other = (*life).spreadJob
	require.NoError(t, clean.life(nil, dstream.WithParallelism(2)).run())
	want := unplaced(clean.states())
	require.Contains(t, want, "b 4 held b {a 3}")
	for at := 1; ; at += step {
		w := newWorld(t, "ab", true)
		w.other = clean.other
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
		err := w.life(in, dstream.WithParallelism(2)).run()
		if in.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.Error(t, err, "call %d", at)
		w.crash(uint64(at), at%2*50)
		require.NoError(t, w.life(nil, dstream.WithParallelism(3)).run(), "call %d", at)
		require.Equal(t, want, unplaced(w.states()), "call %d", at)
		crashes++
	}
	require.Greater(t, crashes, 15)
	t.Log(crashes, "crashes")
}
