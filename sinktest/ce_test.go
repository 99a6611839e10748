package sinktest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The traces that break a naive protocol, as far as sinks are concerned, on every
// kind of system and on the file sink.

func filesCase(*testing.T) Case {
	store := vfs.NewObjects()
	return Case{
		Open: func(in vfs.Injector) sink.Unit { return sink.NewFiles("out", vfs.WithStoreFaults(store, in)) },
		Read: func(ctx context.Context) (list []string, err error) {
			roots, err := sink.FileRoots(ctx, store, "out")
			for _, root := range roots {
				r, err := sink.OpenFiles(ctx, store, "out", root)
				if err != nil {
					return nil, err
				}
				for row, err := range r.Rows(ctx) {
					if err != nil {
						return nil, err
					}
					list = append(list, string(row.Data))
				}
			}
			return list, err
		},
		Target:     "lines",
		KnowsTerms: true,
	}
}

// trace plays a trace on each system; kinds may be told.
func trace(t *testing.T, play func(b *bench), kinds ...string) {
	opens := map[string]func(t *testing.T) Case{"files": filesCase}
	for _, kind := range Kinds() {
		opens[kind.String()] = serverCase(kind, "")
	}
	for name, open := range opens {
		if len(kinds) == 0 || strings.Contains(strings.Join(kinds, " "), name) {
			t.Run(name, func(t *testing.T) { play((&kit{T: t, TB: t, open: open}).bench(2)) })
		}
	}
}

// byTerm is a function whose results depend on when it is called.
func byTerm(_, term uint64) string { return fmt.Sprint("t", term) }

// job is a run of the trace: epochs, and what the function gives.
func (b *bench) job(epochs uint64, value func(epoch, term uint64) string) *engine {
	e := b.engine(&vfs.Faults{})
	e.epochs, e.value = epochs, value
	return e
}

// stand starts a run up to the k-th call of a name.
func (b *bench) stand(e *engine, call string, k int) *frozen {
	b.Helper()
	f, ok := b.freezeAt(e, vfs.Rule{Path: call, K: k})
	require.True(b, ok, "the run reaches %s", call)
	return f
}

// die runs up to the k-th call of a name, which is made or not, and ends there.
func (b *bench) die(e *engine, call string, k int, made bool) {
	b.Helper()
	e.in.Fail(vfs.Rule{Path: call, K: k, After: made, Dead: true})
	require.ErrorIs(b, e.run(b.ctx()), vfs.ErrInjected)
}

// holds asserts that commits/ and all readers have these values.
func (b *bench) holds(want map[uint64]string) {
	b.Helper()
	got := map[uint64]string{}
	for n, r := range b.root.commits {
		got[n] = r.value
	}
	require.Equal(b, want, got, "commits/")
	for _, c := range b.c {
		require.NoError(b, c.check(b.ctx(), b.root.id, want))
	}
}

// A fence taken for a timeout: the older run looks at the owner before it fences
// again, and so leaves the newer one alone.
func TestCE1(t *testing.T) {
	for _, call := range []string{"call/memory", "root/newest", "root/deltas", "call/write", "root/commit"} {
		trace(t, func(b *bench) {
			old := b.stand(b.job(1, byTerm), "call/commit", 1)
			young := b.stand(b.job(1, byTerm), call, 1)
			require.Error(b, old.thaw(), "it is fenced")
			require.True(b, stopped(old.err))
			require.NoError(b, young.thaw())
			b.holds(map[uint64]string{1: "t2"})
		})
	}
}

// A late fence of an older run: nobody is stopped by it but itself.
func TestCE2(t *testing.T) {
	for _, call := range []string{"call/memory", "root/newest", "root/plan", "root/deltas", "call/write", "call/commit", "root/commit"} {
		trace(t, func(b *bench) {
			old := b.stand(b.job(2, byTerm), "call/fence", 1)
			young := b.stand(b.job(2, byTerm), call, 1)
			require.Error(b, old.thaw())
			require.True(b, stopped(old.err))
			require.NoError(b, young.thaw())
			b.holds(map[uint64]string{1: "t2", 2: "t2"})
		})
	}
	// The variant in which the older run has done everything but commits/1.
	trace(t, func(b *bench) {
		old := b.stand(b.job(1, byTerm), "root/commit", 1)
		young := b.stand(b.job(1, byTerm), "root/newest", 1)
		require.ErrorIs(b, old.thaw(), errNotOwner)
		require.NoError(b, young.thaw())
		b.holds(map[uint64]string{1: "t1"})
	})
}

// commits/ is read after the sinks were fenced: what an older run does in between
// refuses nobody.
func TestCE3(t *testing.T) {
	for _, call := range []string{"call/commit", "root/commit"} {
		trace(t, func(b *bench) {
			old := b.stand(b.job(1, same), call, 1+strings.Count(call, "call/"))
			young := b.stand(b.job(1, same), "root/newest", 1)
			require.True(b, stopped(old.thaw()))
			require.NoError(b, young.thaw())
			b.holds(map[uint64]string{1: "x"})
		})
	}
}

// The deltas that are adopted are those of the term in the memory.
func TestCE8(t *testing.T) {
	trace(t, func(b *bench) {
		b.die(b.job(1, byTerm), "call/write", 1, false) // t1 has its deltas only
		b.die(b.job(1, byTerm), "root/commit", 1, false)
		e := b.job(1, byTerm)
		require.NoError(b, e.run(b.ctx()))
		require.Equal(b, []uint64{1}, e.adopted)
		b.holds(map[uint64]string{1: "t2"})
	})
	// Two units written by two runs, of equal output: those of the greater term.
	trace(t, func(b *bench) {
		b.die(b.job(1, same), "call/commit", 2, false)
		b.die(b.job(1, same), "root/commit", 1, false)
		delete(b.root.deltas, [2]uint64{1, 1})
		e := b.job(1, same)
		require.NoError(b, e.run(b.ctx()))
		require.Equal(b, []uint64{1}, e.adopted)
		b.holds(map[uint64]string{1: "x"})
	})
}

// Equal deltas with other output are another attempt.
func TestCE9(t *testing.T) {
	trace(t, func(b *bench) {
		e := b.job(1, byTerm)
		e.delta = same
		b.die(e, "call/commit", 2, false) // one unit has t1's output
		e = b.job(1, byTerm)
		e.delta = same
		require.ErrorIs(b, e.run(b.ctx()), errDiffers)
		// The old program finishes.
		e = b.job(1, func(uint64, uint64) string { return "t1" })
		e.delta = same
		require.NoError(b, e.run(b.ctx()))
		b.holds(map[uint64]string{1: "t1"})
	})
}

// A fence leaves the writer's term.
func TestCE10(t *testing.T) {
	trace(t, func(b *bench) {
		b.die(b.job(1, byTerm), "root/commit", 1, false)
		b.die(b.job(1, byTerm), "call/memory", 1, false) // t2 has only fenced
		e := b.job(1, byTerm)
		require.NoError(b, e.run(b.ctx()))
		require.Equal(b, []uint64{1}, e.adopted)
		b.holds(map[uint64]string{1: "t1"})
	})
}

// A log without fences cannot keep an older run out.
func TestCE11(t *testing.T) {
	trace(t, func(b *bench) {
		old := b.stand(b.job(1, byTerm), "call/commit", 1)
		young := b.stand(b.job(1, byTerm), "root/plan", 1)
		require.Error(b, old.thaw())
		require.NoError(b, young.thaw())
		b.holds(map[uint64]string{1: "t2"})
	}, "filelog", "files")
}

// The memory is read when the last commit is settled.
func TestCE15(t *testing.T) {
	trace(t, func(b *bench) {
		b.die(b.job(1, byTerm), "out/end", 2, true) // the second unit's answer is lost with the process
		e := b.job(2, byTerm)
		require.NoError(b, e.run(b.ctx()))
		require.Equal(b, []uint64{1}, e.adopted)
		b.holds(map[uint64]string{1: "t1", 2: "t2"})
	}, "kafka")
}

// An epoch without output moves every memory, so it can be adopted too.
func TestCE20(t *testing.T) {
	trace(t, func(b *bench) {
		require.NoError(b, b.job(2, same).run(b.ctx()))
		b.die(b.job(3, same), "root/commit", 1, false)
		e := b.job(5, same)
		require.NoError(b, e.run(b.ctx()))
		require.Equal(b, []uint64{3}, e.adopted)
		b.holds(map[uint64]string{1: "x", 2: "x", 3: "x", 4: "x", 5: "x"})
	})
}

// A memory that is missing where commits/ has one is refused.
func TestMissingMemoryIsRefused(t *testing.T) {
	trace(t, func(b *bench) {
		require.NoError(b, b.job(2, same).run(b.ctx()))
		b.c[0] = b.open(t)
		require.ErrorIs(b, b.job(3, same).run(b.ctx()), errRefused)
	})
}
