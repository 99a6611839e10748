package kafkatest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A history is a list of steps, made of a seed alone: what producers, brokers and the
// job do, in this order. When each of them happens within the job's own work is up to
// the machine.

// step is one thing that happens.
type step struct {
	kind string
	// partition of the counted topic, producer by number, records to write, a number
	// of calls, and what the records are.
	partition, producer, records, calls int
	yes                                 bool // commit, lose the answer, or wait
	data                                uint64
}

func (s step) String() string {
	return fmt.Sprintf("%s(partition %d, producer %d, %d records, %d calls, %t)", s.kind, s.partition, s.producer, s.records, s.calls, s.yes)
}

// setting is what a history may do.
type setting struct {
	steps   int
	nodes   int  // real brokers to kill; 0: an embedded cluster, whose leaders move
	kills   int  // of real brokers, at most
	objects bool // the checkpoint is in an object store, so old runs may sleep; else on a disk, whose last writes may be lost
}

const (
	historyPartitions = 3 // at first
	historyProducers  = 3 // transactional ones
	historyKeys       = 8
)

// planHistory makes a history. Steps that cannot be done are not planned: a producer
// ends a transaction before it begins another, one broker is down at a time.
func planHistory(random *rand.Rand, s setting) (steps []step) {
	open, partitions, kills, down, asleep := map[int]bool{}, historyPartitions, s.kills, 0, false
	kinds := strings.Fields("write write write txn txn txn txn end end table table trim trim lose cut crash crash crash stop await grow")
	switch {
	case s.nodes == 0:
		kinds = append(kinds, "move", "move", "coordinators", "compact", "compact")
	case s.nodes == 1:
		kinds = append(kinds, "restart", "restart")
	default:
		kinds = append(kinds, "kill", "kill", "kill")
	}
	if s.objects {
		kinds = append(kinds, "sleep", "wake", "wake")
	}
	for len(steps) < s.steps {
		x := step{kind: kinds[random.IntN(len(kinds))], partition: random.IntN(partitions), producer: random.IntN(historyProducers),
			records: 1 + random.IntN(40), calls: 1 + random.IntN(120), yes: random.IntN(3) > 0, data: random.Uint64()}
		if down > 0 {
			if down--; down == 0 {
				steps = append(steps, step{kind: "start"})
			}
		}
		switch x.kind {
		case "txn":
			if open[x.producer] {
				continue
			}
			open[x.producer] = random.IntN(3) == 0
			if open[x.producer] {
				x.kind = "begin"
			}
		case "end":
			if !open[x.producer] {
				continue
			}
			delete(open, x.producer)
		case "lose": // what is lost is counted exactly, so nothing may be undecided
			if len(open) > 0 && (open[0] || open[1] || open[2]) || x.records < 2 || asleep || down > 0 {
				continue
			}
		case "grow":
			if partitions >= historyPartitions+2 || down > 0 {
				continue
			}
			partitions++
		case "restart", "kill":
			if kills == 0 || down > 0 {
				continue
			}
			kills--
			if x.kind == "kill" {
				down = 1 + random.IntN(4)
			}
		case "sleep":
			if asleep {
				continue
			}
			asleep = true
		case "wake":
			if !asleep {
				continue
			}
			asleep = false
		}
		steps = append(steps, x)
	}
	if down > 0 {
		steps = append(steps, step{kind: "start"})
	}
	for p := range historyProducers {
		if open[p] {
			steps = append(steps, step{kind: "end", producer: p, yes: random.IntN(2) == 0})
		}
	}
	if asleep {
		steps = append(steps, step{kind: "wake"})
	}
	return steps
}

// fixedHistories is how many histories are the same in each run.
const fixedHistories = 20

// TestFixedHistoriesDoAll: each thing that may happen does, in those of every run.
func TestFixedHistoriesDoAll(t *testing.T) {
	seen, dies := map[string]int{}, 0
	for seed := range uint64(fixedHistories) {
		s, random := embeddedHistory, rand.New(rand.NewPCG(seed+1, 0))
		s.objects = random.IntN(2) == 0
		for _, x := range planHistory(random, s) {
			if seen[x.kind]++; x.kind == "end" && x.dies() {
				dies++
			}
		}
	}
	for _, kind := range strings.Fields("write begin txn end table trim lose cut crash stop await grow move coordinators compact sleep wake") {
		require.Positive(t, seen[kind], kind)
	}
	require.Positive(t, dies, "producers that die in a transaction")
}

// TestHistoryIsOfItsSeed: a seed gives one history, another seed another one, and all
// kinds of steps come.
func TestHistoryIsOfItsSeed(t *testing.T) {
	plan := func(seed uint64, s setting) []step { return planHistory(rand.New(rand.NewPCG(seed, 0)), s) }
	for _, s := range []setting{{steps: 300, objects: true}, {steps: 300, nodes: 1, kills: 2}, {steps: 300, nodes: 3, kills: 2}} {
		require.Equal(t, plan(1, s), plan(1, s))
		require.NotEqual(t, plan(1, s), plan(2, s))
		seen := map[string]int{}
		for _, x := range plan(1, s) {
			seen[x.kind]++
		}
		for _, kind := range strings.Fields("write begin txn end table trim lose cut crash stop await grow") {
			require.Positive(t, seen[kind], kind)
		}
		require.Equal(t, s.objects, seen["sleep"] > 0)
		require.Equal(t, s.nodes == 1, seen["restart"] > 0)
		require.Equal(t, seen["kill"], seen["start"])
	}
}
