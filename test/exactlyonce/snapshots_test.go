package exactlyonce

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
)

// snapshotJob writes all its states with each epoch, to two folders that commit one after
// the other. A word that comes again takes its key out of the state, and the next new one
// gets its place there: the order in memory is then not the one after a load.
func (l *life) snapshotJob(tag string) {
	words := dstream.From(l.ssc, "words", l.w.script())
	known := dstream.MapWithState(dstream.MapPair(words, func(w string) (string, int) { return w, 1 }), dstream.Function(
		func(_ string, _ dstream.Option[int], s *dstream.State[int]) int {
			if s.Exists() {
				s.Remove()
			} else {
				s.Update(1)
			}
			return 0
		}).Named("known").NumPartitions(1))
	for _, name := range []string{"a", "b"} {
		unit := sink.NewFiles(name, l.w.store("out", tag, l.in))
		dstream.Output(known.StateSnapshots(), "states "+name, sink.Lines(unit, sink.Text[dstream.Pair[string, int]]))
	}
}

// states is what readers see of the epochs that have input; those after them show the
// newest states once more.
func (w *world) states() string {
	list := strings.Split(w.sees(), "\n")
	return strings.Join(slices.DeleteFunc(list, func(row string) bool {
		return strings.Fields(row)[1] > strconv.Itoa(len(script))
	}), "\n")
}

// A redo writes the states of an epoch as the first try did, on a state that was loaded:
// else a crash between two sinks' commits would lock the job out. Power is lost before
// every call to the disk, and after it.
func TestSnapshotsAreRedone(t *testing.T) {
	deaths{
		kinds: "ab", job: (*life).snapshotJob, sees: (*world).states,
		has: []string{"b 4 states b/0"}, least: 15,
	}.everywhere(t)
}
