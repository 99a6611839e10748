package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyResult draws any result at all.
func anyResult(t *rapid.T, sinks int) Result {
	small := rapid.Uint64Range(0, 6)
	digest := func() Sum { return Sum{rapid.Byte().Draw(t, "digest")} }
	mem := func() Memory { return Memory{small.Draw(t, "epoch"), small.Draw(t, "term"), digest()} }
	entries := make([]Entry, sinks+rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "more"))
	for i := range entries {
		entries[i] = Entry{mem(), rapid.Bool().Draw(t, "present")}
	}
	sums := make([]Sum, rapid.IntRange(0, sinks+1).Draw(t, "sums"))
	kind := PlanKind(rapid.IntRange(0, 1).Draw(t, "kind"))
	return rapid.SampledFrom([]Result{
		OK(), Fail(), Inspected(small.Draw(t, "newest"), rapid.Bool().Draw(t, "fresh")), Unsuitable(), Created(), Mine(),
		Taken(small.Draw(t, "taken")), Lost(), NewerTerm(), StillNewest(), Overtaken(), MemoryIs(mem()), NoMemory(),
		CommitIs(Found{small.Draw(t, "commit"), small.Draw(t, "by"), entries}), NoCommit(), PlanIs(small.Draw(t, "by"), kind), NoPlan(),
		Adopted(sums), NotFound(), Begin(kind), Finish(), Wrote(digest()),
	}).Draw(t, "result")
}

// hopeful draws a result that fits, mostly the one that goes on.
func hopeful(t *rapid.T, m *Machine, a Action) Result {
	if rapid.IntRange(0, 14).Draw(t, "mishap") == 0 {
		return anyResult(t, m.cfg.Sinks)
	}
	switch a.Kind {
	case Inspect:
		return Inspected(m.cfg.After, rapid.Bool().Draw(t, "fresh"))
	case Register, FirstMetadata, CreatePlan, CreateCommit:
		return rapid.SampledFrom([]Result{Created(), Mine()}).Draw(t, "created")
	case OwnerCheck:
		return StillNewest()
	case ReadMemory:
		if m.step == readingAgain {
			return rapid.SampledFrom([]Result{NoMemory(), MemoryIs(Memory{m.epoch, m.term, Sum{1}})}).Draw(t, "memory")
		}
		return rapid.SampledFrom([]Result{NoMemory(), MemoryIs(Memory{1, 1, Sum{1}})}).Draw(t, "memory")
	case FindCommit:
		return NoCommit()
	case ReadPlan:
		if m.term > 1 {
			return PlanIs(1, PlanKind(rapid.IntRange(0, 1).Draw(t, "kind")))
		}
		return NoPlan()
	case Adopt:
		return Adopted(make([]Sum, m.cfg.Sinks))
	case Idle:
		return Begin(PlanKind(rapid.IntRange(0, 1).Draw(t, "kind")))
	case WriteSink:
		return rapid.SampledFrom([]Result{Wrote(Sum{1}), Lost()}).Draw(t, "wrote")
	}
	return OK()
}

// TestProperties: whatever the runner tells, there is no panic; what does not fit is an error that changes nothing; a
// copy is independent; and what must not happen in one run does not, whatever the store and the sinks answer.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Sinks:      rapid.IntRange(0, 3).Draw(t, "sinks"),
			After:      rapid.SampledFrom([]uint64{0, 0, 2}).Draw(t, "after"),
			AcceptRedo: rapid.Bool().Draw(t, "accept"),
		}
		m := New(cfg)
		checked, registered := false, false
		reported := uint64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			a := m.Next()
			require.Equal(t, a, m.Next(), "the same until Done")
			switch a.Kind {
			case WriteDeltas, WriteBases, Report:
				require.True(t, checked, "P3: %v directly after an owner check", a)
			case CreatePlan, CreateCommit, Compute, Idle, FindCommit:
				require.True(t, registered, "P1: %v before the term is registered", a)
			case WriteSink:
				require.True(t, registered)
				if mem, ok := m.Memory(a.Sink); ok && !a.Dry {
					require.NotEqual(t, a.Epoch, mem.Epoch, "an epoch is never written twice")
				}
			}
			if a.Kind == Report {
				require.Greater(t, a.Epoch, reported)
				require.Equal(t, a.Epoch, m.Committed().Epoch)
				require.Equal(t, m.Term(), m.Committed().Term)
			}

			before, key := m, m.appendKey(nil)
			r := hopeful(t, &m, a)
			err := m.Done(r)
			require.Equal(t, key, before.appendKey(nil), "a copy is independent")
			if err != nil {
				var misfit *MisfitError
				require.True(t, errors.As(err, &misfit))
				require.Equal(t, a, misfit.Action)
				require.Contains(t, err.Error(), "fault of the runner")
				require.Equal(t, before, m, "a misfit changes nothing")
				continue
			}
			if a.Kind == Report {
				reported = a.Epoch
			}
			require.NotEqual(t, Stop, a.Kind, "nothing follows a stop")
			checked = a.Kind == OwnerCheck
			registered = registered || a.Kind == Register && (r.kind == isCreated || r.kind == isMine)
		}
	})
}
