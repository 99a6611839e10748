package kafkatest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// tally counts, over all histories of a run, what their plans asked for and what has
// happened of it: a step may find nothing to do, such as retention where nothing was
// read yet. A history in which nothing happens proves nothing.
type tally struct{ planned, happened map[string]int }

func newTally() *tally { return &tally{planned: map[string]int{}, happened: map[string]int{}} }

// How often something is planned that must then have happened: in histories that are
// always the same, and in new ones, each of which may leave it out by chance.
const (
	enoughOfFixed = 5
	enoughOfNew   = 20
)

// plans counts what steps ask for. Each step is one of its kind, and how a transaction
// ends counts beside that. Compaction counts once: it shows only in the end.
func (y *tally) plans(steps []step) {
	compacts := 0
	for _, s := range steps {
		if s.kind == "compact" {
			compacts = 1
			continue
		}
		y.planned[s.kind]++
		if s.kind == "txn" || s.kind == "end" {
			y.planned[s.ends()]++
		}
	}
	y.planned["compact"] += compacts
}

// missing names what was planned so often and has never happened.
func (y *tally) missing(enough int) (list []string) {
	for kind, n := range y.planned {
		if n >= enough && y.happened[kind] == 0 {
			list = append(list, fmt.Sprintf("%s (planned %d times)", kind, n))
		}
	}
	slices.Sort(list)
	return list
}

func (y *tally) String() string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(y.planned)) {
		list = append(list, fmt.Sprintf("%s %d of %d", kind, y.happened[kind], y.planned[kind]))
	}
	return strings.Join(list, ", ")
}

// require fails if something was planned often enough and never happened.
func (y *tally) require(t *testing.T, enough int) {
	t.Helper()
	t.Logf("happened: %v", y)
	if list := y.missing(enough); len(list) > 0 && !t.Failed() {
		t.Errorf("histories in which it never happened: %v", list)
	}
}

// TestTally: what never happens though it is planned is told, what is rarely planned is
// not.
func TestTally(t *testing.T) {
	y := newTally()
	for range 10 {
		y.plans([]step{{kind: "trim"}, {kind: "txn", yes: true}, {kind: "end"}})
	}
	y.plans([]step{{kind: "kill"}})
	y.happened["txn"], y.happened["end"], y.happened["commit"] = 1, 1, 1
	if got := fmt.Sprint(y.missing(10), y.missing(11)); got != "[die (planned 10 times) trim (planned 10 times)] []" {
		t.Error(got)
	}
}
