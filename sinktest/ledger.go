package sinktest

import (
	"errors"
	"sync"

	"github.com/statemill/statemill/sink"
)

// ledger is a checkpoint root as far as sinks are concerned: owners, plans,
// deltas and commits, each created once and never replaced.
type ledger struct {
	id string

	mu      sync.Mutex
	term    uint64
	plans   map[uint64]uint64
	deltas  map[[2]uint64]delta // by epoch and term
	commits map[uint64]record
}

// delta is what an attempt computed: the value that its rows have, and the chain
// hash of the state after it.
type delta struct {
	value string
	chain sink.Sum
}

// record is commits/N.
type record struct {
	delta
	term uint64
	mems map[int]sink.Memory
}

func newLedger(id string) *ledger {
	return &ledger{id: id, plans: map[uint64]uint64{}, deltas: map[[2]uint64]delta{}, commits: map[uint64]record{}}
}

// fork is another root with the commits of l up to an epoch.
func (l *ledger) fork(id string, upTo uint64) *ledger {
	f := newLedger(id)
	f.term = l.term
	for n := uint64(1); n <= upTo; n++ {
		f.commits[n] = l.commits[n]
	}
	return f
}

var (
	errNotOwner = errors.New("a newer run owns the root")
	errRefused  = errors.New("memory and commits/ do not fit")
	errDiffers  = errors.New("the redo differs")
	errNoDeltas = errors.New("no deltas of the writer")
	errRestart  = errors.New("an older run's commit was found")
)
