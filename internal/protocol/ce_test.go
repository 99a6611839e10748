package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// script moves runs through a world by hand. Runs are counted from 1.
type script struct {
	t     *testing.T
	sh    *shape
	w     *world
	other [maxRuns + 1]bool // the run's functions give their other result
	seen  [sights]int
	log   []string
}

func newScript(t *testing.T, sh shape) *script {
	w := newWorld(&sh)
	s := &script{t: t, sh: &sh, w: &w}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("\n" + strings.Join(s.log, "\n"))
		}
	})
	return s
}

// pick makes the step of a run, or with run 0 of the surroundings, that is called so; "" is the one where nothing goes
// wrong.
func (s *script) pick(run int, what string) {
	s.t.Helper()
	if run > 0 && what == "" && s.other[run] {
		what = "other"
	}
	found := false
	for _, pass := range []string{what, ""} {
		for _, x := range successors(s.sh, s.w, true, func(g sight) { s.seen[g]++ }) {
			if x.run == run-1 && x.what == pass {
				require.Empty(s.t, x.wrong, x.label)
				s.w, found = x.w, true
				s.log = append(s.log, x.label)
				break
			}
		}
		if found || what != "other" {
			break
		}
	}
	require.True(s.t, found, "run %d cannot step %q", run, what)
}

func (s *script) next(run int) Action { return s.w.m[run-1].Next() }
func (s *script) status(run int) status {
	return s.w.local[run-1].status
}

// to lets a run go on until it is asked for an action of that kind.
func (s *script) to(run int, kind ActionKind) {
	s.t.Helper()
	for range 100 {
		if s.status(run) == live && s.next(run).Kind == kind {
			return
		}
		s.pick(run, "")
	}
	s.t.Fatalf("run %d does not come to %v", run, kind)
}

// past lets it go on beyond the next action of that kind.
func (s *script) past(run int, kind ActionKind) {
	s.t.Helper()
	s.to(run, kind)
	s.pick(run, "")
}

// end lets it go on until it has ended as it should.
func (s *script) end(run int, want status) {
	s.t.Helper()
	for range 100 {
		if st := s.status(run); st != live && st != unborn {
			require.Equal(s.t, want, st)
			return
		}
		s.pick(run, "")
	}
	s.t.Fatalf("run %d does not end", run)
}

// clean lets a run go on until it has reported an epoch, and clean up behind it.
func (s *script) clean(run int, epoch u) {
	s.t.Helper()
	for range 100 {
		if s.status(run) == live && s.w.local[run-1].clean == epoch {
			s.pick(run, "clean")
			return
		}
		s.pick(run, "")
	}
	s.t.Fatalf("run %d does not report %d", run, epoch)
}

// The traces of the reference that concern the order of acts: without the rule, each loses or doubles data or kills the
// run that should live. CE19 and most of CE16 are about files, and are tested where files are made; CE5, CE6, CE10, CE11
// and CE15 break rules of names, cleaning and sinks: TestModelSeesSinks.

// CE1: a fence is taken for a timeout.
func TestCE1(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, sinks: oneKafka, vary: 1, timeouts: 1, lax: true})
	s.to(1, WriteSink)
	s.pick(1, "") // the transaction is open
	s.pick(0, "timeout")
	s.past(1, WriteSink)  // fenced, it seems
	s.past(1, OwnerCheck) // nobody newer
	s.past(2, ReadMemory) // none
	s.past(1, Fence)      // and now run 2 is fenced
	s.other[2] = true
	s.end(1, gone)
	s.end(2, done)
	require.Equal(t, s.w.history[0].lineage, s.w.sinks[0].out[0], "state and output are of one attempt")
}

// CE2: the fence of an older run comes late.
func TestCE2(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, sinks: oneKafka})
	s.to(1, Fence)
	s.past(2, ReadMemory)
	s.past(1, Fence) // run 2 is fenced by it
	s.end(1, gone)
	s.end(2, done)
	require.NotZero(t, s.seen[fencedAgain])
}

// CE3: commits/ is read after the sinks, or the memories are ahead of it.
func TestCE3(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, sinks: oneKafka, lax: true})
	s.to(1, CreateCommit)
	s.to(2, Fence)
	require.Zero(t, s.w.m[1].Committed().Epoch, "nothing is known of commits/ yet")
	require.Nil(t, s.w.m[1].commit.Sinks, "nothing is known of commits/ yet")
	s.past(1, CreateCommit)
	s.end(1, gone)
	s.end(2, done)
	require.Zero(t, s.seen[restarted])
}

// CE4: retention frees names. (a) A commit that its run creates in a hole.
func TestCE4a(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, retention: true, lax: true})
	s.to(1, CreateCommit)
	s.clean(2, 2)
	s.end(1, gone)
	require.NotZero(t, s.seen[commitInHole])
	require.Equal(t, uint64(1), uint64(s.w.commits[0].term), "it stands there, and nobody believes it")
}

// (b) A plan in a hole: no deltas follow it.
func TestCE4b(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, retention: true, lax: true})
	s.to(1, CreatePlan)
	s.clean(2, 2)
	s.past(1, CreatePlan)
	s.end(1, gone)
	require.EqualValues(t, 1, s.w.plans[0].term, "it was created in the hole")
	require.Zero(t, s.w.files[0][1])
}

// (c) A stray commit of an older run, found by a run that was overtaken itself.
func TestCE4c(t *testing.T) {
	s := newScript(t, shape{runs: 3, epochs: 2, retention: true, lax: true})
	s.to(1, CreateCommit)
	s.to(2, CreateCommit)
	s.clean(3, 2)
	s.past(1, CreateCommit)
	s.end(2, gone)
	require.Zero(t, s.seen[restarted], "it does not start anew along a dead line")
	require.EqualValues(t, 3, s.w.term)
}

// The same at a start: what an older run committed is loaded, and the check follows.
func TestCE4cAtStart(t *testing.T) {
	s := newScript(t, shape{runs: 3, epochs: 2, retention: true, lax: true})
	s.past(1, CreateCommit)
	s.to(2, Load)
	s.to(3, CreatePlan)
	s.past(2, Load)
	require.Equal(t, OwnerCheck, s.next(2).Kind)
	s.end(2, gone)
	s.end(3, done)
}

// CE7: a run that is behind cleans up.
func TestCE7(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, orphans: true})
	for s.w.local[0].clean != 1 {
		s.pick(1, "")
	}
	s.to(2, CreateCommit)
	s.pick(1, "clean")
	s.end(2, done)
}

// CE6: files of an epoch without a commit belong to whoever may yet commit them.
func TestCE6(t *testing.T) {
	const floor = 3
	require.False(t, Deletable(File{Epoch: 5, Data: true}, floor), "no commit yet")
	require.False(t, Deletable(File{Epoch: 4, Data: true, Committed: true, Named: true}, floor))
	require.True(t, Deletable(File{Epoch: 4, Data: true, Committed: true}, floor), "an attempt that lost")
	require.False(t, Deletable(File{Epoch: 4, Committed: true}, floor), "a snapshot is named by no commit")
	require.False(t, Deletable(File{Epoch: 3}, floor), "F itself is kept")
	for _, data := range []bool{true, false} {
		require.True(t, Deletable(File{Epoch: 2, Data: data, Committed: true, Named: true}, floor))
	}
}

// CE8: the attempt whose output is out is adopted, not the first one.
func TestCE8(t *testing.T) {
	s := newScript(t, shape{runs: 3, epochs: 1, lock: true, sinks: oneKafka, vary: 1})
	s.to(1, WriteSink)
	s.pick(1, "crash")
	s.other[2] = true
	s.to(2, CreateCommit)
	s.pick(2, "crash")
	s.end(3, done)
	require.NotZero(t, s.seen[adoption])
	require.EqualValues(t, 2, s.w.history[0].file)
}

// CE9: equal deltas, other output.
func TestCE9(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 1, lock: true, sinks: twoSQL, vary: 2})
	s.other[1] = true
	s.past(1, WriteSink)
	s.pick(1, "crash")
	s.end(2, differs)
	require.Zero(t, s.w.sinks[1].out[0], "the other sink is not written")
}

// CE12: a change takes its place in the row of epochs.
func TestCE12(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, change: 2})
	s.to(1, CreatePlan)
	s.to(2, CreatePlan)
	s.past(1, CreatePlan) // a batch
	s.end(2, done)
	require.NotZero(t, s.seen[restarted], "run 2 finds the plan and begins behind it")
	require.EqualValues(t, Batch, s.w.history[0].kind)
	require.EqualValues(t, Change, s.w.history[1].kind)
	s.end(1, gone)
}

// The other way round: a pending change is finished by a run that does not want it.
func TestCE12Pending(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, change: 1})
	s.past(1, CreatePlan)
	s.end(2, done)
	require.EqualValues(t, Change, s.w.history[0].kind)
	s.end(1, gone)
}

// CE13: the reply of a put is lost.
func TestCE13(t *testing.T) {
	for _, kind := range []ActionKind{Register, CreatePlan, CreateCommit} {
		s := newScript(t, shape{runs: 1, epochs: 1, lost: true})
		s.to(1, kind)
		s.pick(1, "lost")
		require.Equal(t, kind, s.next(1).Kind, "the runner tries again")
		s.end(1, done)
	}
}

// CE14: the broker aborts the transaction of a run that is alone.
func TestCE14(t *testing.T) {
	s := newScript(t, shape{runs: 1, epochs: 1, sinks: oneKafka, timeouts: 1, lost: true})
	s.to(1, WriteSink)
	s.pick(1, "")
	s.pick(0, "timeout")
	s.end(1, done)
	require.NotZero(t, s.seen[fencedAgain])
}

// An unknown outcome is resolved by reading the memory, never by writing again.
func TestUnknownOutcome(t *testing.T) {
	for _, sinks := range [][]sinkKind{oneKafka, oneSQL, oneLog} {
		s := newScript(t, shape{runs: 1, epochs: 1, sinks: sinks, lost: true})
		s.to(1, WriteSink)
		if sinks[0] == kafkaLike {
			s.pick(1, "")
		}
		s.pick(1, "lost")
		s.end(1, done)
		require.NotZero(t, s.seen[fencedAgain])
	}
}

// CE16: of two runs that find no metadata the first one's counts.
func TestCE16(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 1, fresh: true})
	s.to(1, FirstMetadata)
	s.past(2, FirstMetadata)
	s.past(1, FirstMetadata)
	require.EqualValues(t, 2, s.w.meta)
	s.end(1, gone)
	s.end(2, done)
}

// CE17: a start that will be refused takes no term and fences nobody.
func TestCE17(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 2, change: 1, strict: true, lax: true})
	for s.w.history[0].term == 0 {
		s.pick(1, "")
	}
	s.to(2, Inspect)
	s.end(2, differs)
	require.EqualValues(t, 1, s.w.term)
	s.end(1, done)
}

// CE18: deltas that are not there are no proof that nothing changed; the digest is.
func TestCE18(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 1, lock: true, sinks: oneKafka, vanish: true})
	s.to(1, CreateCommit)
	s.pick(1, "crash")
	s.pick(0, "vanish")
	s.end(2, differs)
	require.Zero(t, s.w.commits[0].term)
}

// CE20: every epoch asks for every sink.
func TestCE20(t *testing.T) {
	s := newScript(t, shape{runs: 1, epochs: 2, sinks: kafkaSQL})
	s.end(1, done)
	for k := range 2 {
		require.EqualValues(t, 2, s.w.sinks[k].mem.epoch)
	}
}

// A run that was overtaken does not take over from the one that did it.
func TestRestartTakesOverFromNobody(t *testing.T) {
	s := newScript(t, shape{runs: 3, epochs: 1, lax: true})
	s.to(1, CreatePlan)
	s.to(2, CreatePlan)
	s.past(1, CreatePlan)
	s.past(2, CreatePlan)
	s.past(2, OwnerCheck) // it will start anew
	require.Equal(t, Inspect, s.next(2).Kind)
	s.past(3, Register)
	s.end(2, gone)
	s.end(3, done)
}

// Two runs that begin at the same time get two terms.
func TestTermsAreNotShared(t *testing.T) {
	s := newScript(t, shape{runs: 2, epochs: 1})
	s.to(1, Register)
	s.to(2, Register)
	s.past(1, Register)
	s.past(2, Register)
	s.past(2, Register)
	require.Equal(t, [maxTerms]u{0, 1, 2}, s.w.owner)
	s.end(2, done)
	s.end(1, gone)
}
