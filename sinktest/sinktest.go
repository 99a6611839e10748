// Package sinktest is the acceptance suite of [sink.Unit]: every unit, ours or a
// user's, must pass [Run]. It checks the contract in package sink's comment, one
// subtest a rule, and drives whole runs of a small engine against the unit: dead
// and frozen at every call, with lost answers, alone and beside another unit.
//
//	func TestMine(t *testing.T) {
//		sinktest.Run(t, func(t *testing.T) sinktest.Case { … })
//	}
//
// [Failing] tells which subtests fail instead of failing: the proof that the
// suite notices a broken unit. [Server] plays a system in memory, for tests of
// what writes to sinks.
//
// It does not test speed, nor what a unit is connected to.
package sinktest

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// Case is one system with nothing in it.
type Case struct {
	// Open makes a client of the system, as each run makes its own; all have one
	// name. A client that was closed may be fenced again. Its requests, if it can be arranged, pass in (vfs.WithFaults,
	// vfs.WithStoreFaults, vfs.Inject), so that the suite can end, freeze and deafen
	// it between any two; in may be nil. The suite closes it.
	Open func(in vfs.Injector) sink.Unit
	// Target is the Target of sinks.
	Target string
	// Encode gives the suite's rows, which are text without control characters, in
	// the form that the unit takes; nil means as they are.
	Encode func(dst []byte, text string) ([]byte, error)
	// Read gives the texts of all rows that a reader sees now, of all roots; those
	// of one part in order.
	Read func(ctx context.Context) ([]string, error)
	// KnowsTerms says that the system keeps the term of a fence, so that a run of
	// a lower term is refused. Without it the last fence wins.
	KnowsTerms bool
	// Expire makes the system give up open transactions for time and fence their
	// owners. Nil: there is no such thing.
	Expire func()
	// Crash plays a crash of the system's machine: clients that are opened, and
	// Read, afterwards find what was durable. Nil: it cannot be played.
	Crash func()
}

// Run runs the suite. open makes a case anew for each subtest, and may register
// clean-up on t.
func Run(t *testing.T, open func(t *testing.T) Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(&kit{T: t, TB: t, open: open}) })
	}
}

// Failing returns the names of the subtests of Run that fail: of those that are
// named, or of all if none is.
func Failing(t *testing.T, open func(t *testing.T) Case, only ...string) (names []string) {
	t.Helper()
	for _, c := range cases {
		if len(only) > 0 && !slices.Contains(only, c.name) {
			continue
		}
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					r.Errorf("panic: %v", p)
				}
			}()
			c.test(&kit{T: t, TB: r, open: open})
		}()
		<-done
		if r.failed {
			names = append(names, c.name)
		}
	}
	return names
}

var cases = []struct {
	name string
	test func(*kit)
}{
	{"FreshRoot", freshRoot},
	{"MemoryIsWhatWasCommitted", memoryIsKept},
	{"RowsInOrder", rowsInOrder},
	{"NothingBeforeCommit", nothingBeforeCommit},
	{"AbortLeavesNothing", abortLeavesNothing},
	{"AbortMoreThanOnce", abortTwice},
	{"EpochsGoForward", epochsGoForward},
	{"EmptyEpochMovesMemory", emptyEpoch},
	{"FenceShutsOutOlder", fenceShutsOut},
	{"LowerTermIsRefused", lowerTerm},
	{"FenceAgain", fenceAgain},
	{"RootsApart", rootsApart},
	{"OneRunAtATime", inUse},
	{"CloseAndFence", closeAndFence},
	{"LostCommitAnswer", lostAnswer},
	{"PartsSideBySide", sideBySide},
	{"FailedWrite", failedWrite},
	{"ExpiredTransaction", expired},
	{"NotOpen", notOpen},
	{"Cancelled", cancelled},
	{"DryRunTouchesNothing", dryRun},
	{"CrashAtEveryCall", crashEverywhere},
	{"LostAnswerAtEveryCall", lostEverywhere},
	{"FailureAtEveryCall", failEverywhere},
	{"ZombieAtEveryCall", zombieEverywhere},
	{"TwoRunsInterleaved", interleaved},
	{"TwoUnitsCrashAtEveryCall", twoUnitsCrash},
	{"TwoUnitsZombieAtEveryCall", twoUnitsZombie},
	{"RewoundRootIsRefused", rewound},
}

// TB is what a subtest needs of a test.
type TB interface {
	require.TestingT
	// Helper is that of testing.T.
	Helper()
}

// kit is one subtest.
type kit struct {
	TB
	T    *testing.T
	open func(t *testing.T) Case
}

func (k *kit) ctx() context.Context { return k.T.Context() }

// skip leaves a subtest out; under Failing it passes.
func (k *kit) skip(why string) {
	if t, ok := k.TB.(*testing.T); ok {
		t.Skip(why)
	}
	runtime.Goexit()
}

// recorder is a TB that remembers the failure instead of telling it.
type recorder struct{ failed bool }

func (r *recorder) Helper() {}

// Errorf remembers.
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// FailNow ends the subtest.
func (r *recorder) FailNow() {
	r.failed = true
	runtime.Goexit()
}
