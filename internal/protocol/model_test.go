package protocol

import (
	"flag"
	"strings"
	"testing"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	soak      = flag.Bool("soak", false, "TestModelBig: search the big shapes too (tens of minutes)")
	soakBound = flag.Int("soak-states", 8_000_000, "TestModelBig: how many worlds of a shape to visit at most")
)

// TestModel visits every interleaving of small worlds: runs of the real machine that freeze, crash, overtake one another,
// lose replies and delete, over a root and sinks. See shape for what may befall them and the texts of sim for what must
// never happen.
func TestModel(t *testing.T) {
	var seen [sights]int
	states := 0
	for _, sh := range small() {
		t.Run(sh.name, func(t *testing.T) {
			if invariants.Enabled && sh.runs == 3 && !sh.lock {
				t.Skip("too many worlds for the race detector, which has nothing to see here")
			}
			r := search(&sh, 2_000_000, func(string) bool { return true })
			report(t, r)
			require.False(t, r.cut)
			for i, n := range r.seen {
				seen[i] += n
			}
			states += r.states
		})
	}
	t.Logf("%d worlds; seen %v", states, seen)
	if !t.Failed() && states > 500_000 {
		for i, n := range seen {
			assert.NotZero(t, n, "the search never saw: %s", sightNames[i])
		}
	}
}

// TestModelBig is the soak.
func TestModelBig(t *testing.T) {
	if !*soak {
		t.Skip("needs -soak")
	}
	for _, sh := range big() {
		t.Run(strings.ReplaceAll(sh.name, ", ", "/"), func(t *testing.T) {
			r := search(&sh, *soakBound, func(string) bool { return false })
			t.Logf("%d worlds, depth %d, cut off %v, seen %v", r.states, r.depth, r.cut, r.seen)
			report(t, r)
		})
	}
}

func report(t *testing.T, r *searched) {
	for wrong, trace := range r.wrong {
		t.Errorf("%s\n%s", wrong, strings.Join(trace, "\n"))
	}
}

// TestModelSees proves that the search can see: each rule taken out of the machine must show. Where another rule covers
// for it, the audit of the order sees it; where not, the harm itself must show.
func TestModelSees(t *testing.T) {
	if !sabotage.Enabled {
		t.Skip("needs the build tag sabotage")
	}
	for _, c := range []struct {
		fault, shape, wrong string
	}{
		{"adopt-first-term", "kafka-lock", "PROGRESS"},
		{"adopt-least-term", "kafka-kafka-lock-accept", "PROGRESS"},
		{"adopt-unproved", "deltas-vanish", "SINK"},
		{"change-not-rechecked", "not-suited", "LAYOUT"},
		{"change-without-plan", "kafka-change", "LAYOUT"},
		{"commit-unchecked", "two-runs", "REPORT"},
		{"commits-before-fences", "kafka", "ORDER"},
		{"deltas-unchecked", "two-runs", "ORDER"},
		{"fence-unchecked", "kafka", "PROGRESS"},
		{"fenced-is-loss", "kafka", "PROGRESS"},
		{"inspection-ignored", "not-suited", "ORDER"},
		{"lost-reply-is-loss", "two-runs", "PROGRESS"},
		{"memory-not-judged", "memory-forgotten", "SINK"},
		{"newer-name-ignored", "two-runs", "ORDER"},
		{"older-commit-unchecked", "two-runs", "ORDER"},
		{"orphans-by-view", "two-runs", "FILES"},
		{"recheck-skipped", "not-suited", "LAYOUT"},
		{"redo-not-compared", "kafka-kafka-lock", "SINK"},
		{"refence-at-once", "kafka", "ORDER"},
		{"restart-takes-over", "three-runs", "STEAL"},
		{"restart-unchecked", "two-runs", "ORDER"},
		{"sink-not-moved", "kafka-kafka-lock", "SINK"},
		{"term-shared", "two-runs", "PROGRESS"},
		{"unknown-is-written-again", "kafka", "SINK"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Setenv("STATEMILL_SABOTAGE", c.fault)
			sh := shapeNamed(c.shape)
			sh.lax = c.wrong != "ORDER"
			mustShow(t, &sh, c.wrong)
		})
	}
}

// TestModelSeesSinks: the same for the rules that sinks and files must keep, which are no part of the machine.
func TestModelSeesSinks(t *testing.T) {
	for _, c := range []struct {
		rule, shape string
		change      func(*shape)
		wrong       string
	}{
		{"CE5 names are unique", "two-runs-three-epochs", func(sh *shape) { sh.reused, sh.epochs = true, 2 }, "READER"},
		{"CE6 no clean-up at a start", "two-runs", func(sh *shape) { sh.early = true }, "FILES"},
		{"CE10 the fence is stored apart", "sql-three-runs", func(sh *shape) { sh.sharedRow = true }, "PROGRESS"},
		{"CE11 P7 a log with fence entries", "log", func(sh *shape) { sh.perEpoch = true }, "PROGRESS"},
		{"CE15 memory is read when it is stable", "kafka", func(sh *shape) { sh.unstable = true }, "SINK"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			sh := shapeNamed(c.shape)
			c.change(&sh)
			mustShow(t, &sh, c.wrong)
		})
	}
}

func mustShow(t *testing.T, sh *shape, wrong string) {
	sh.solo = false // what it finds does not end a search
	seen := false
	r := search(sh, 2_000_000, func(w string) bool {
		seen = seen || strings.HasPrefix(w, wrong+":")
		return seen
	})
	if !seen {
		t.Errorf("the search saw no %s in %d worlds, but %v", wrong, r.states, r.wrong)
	}
}
