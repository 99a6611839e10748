package exactlyonce

import (
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
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
	deaths{
		kinds: "ab", job: (*life).spreadJob, sees: func(w *world) string { return unplaced(w.states()) },
		has: []string{"b 4 held b {a 3}"}, least: 15,
		first: []dstream.ContextOption{dstream.WithParallelism(2)}, again: []dstream.ContextOption{dstream.WithParallelism(3)},
	}.everywhere(t)
}
