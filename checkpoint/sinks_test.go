package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// out is a world in which n batches are committed and the next one went as far
// as a path: the run died before its first call to it. change may spoil the run.
func out(t *testing.T, kind string, n uint64, path string, change func(j *job)) *world {
	w := &world{m: roots[kind](), b: &board{}}
	if n > 0 {
		require.NoError(t, runJob(t.Context(), w.job(nil), n))
	}
	return w.die(t, n+1, path, change)
}

// die runs until the run dies before its first call to path.
func (w *world) die(t *testing.T, n uint64, path string, change func(j *job)) *world {
	var f vfs.Faults
	j := w.job(&f)
	if change != nil {
		change(j)
	}
	// A link or a put makes the name, others only look for it.
	f.Fail(vfs.Rule{Kinds: vfs.KindLink | vfs.KindPut | vfs.KindOther, Path: path, Dead: true})
	require.ErrorIs(t, j.run(t.Context(), n), vfs.ErrInjected)
	require.Positive(t, f.Hits())
	return &world{m: w.m.crash(0, 0), b: w.b.clone()}
}

// other is a function that counts other words: one that does not depend on its
// arguments alone.
func other(j *job) { j.word = func(i int64) string { return fmt.Sprintf("o%d", i%5) } }

// watch records steps and notices.
func watch(j *job) *[]string {
	told := &[]string{}
	j.step = func(what string, n uint64) { *told = append(*told, fmt.Sprintf("%s %d", what, n)) }
	j.cfg.Notice = func(n Notice) { *told = append(*told, n.Text) }
	return told
}

// TestAdoptedWithoutComputing: every sink has epoch 3, so it is committed from
// the deltas that are there; nothing is computed, and the output is out once.
func TestAdoptedWithoutComputing(t *testing.T) {
	state, rows := reference(t, 4)
	for kind := range roots {
		w := out(t, kind, 2, "commits/3", nil)
		j := w.job(nil)
		told := watch(j)
		require.NoError(t, runJob(t.Context(), j, 4))
		require.False(t, slices.Contains(*told, "deltas 3"), "%q", *told)
		require.True(t, slices.Contains(*told, "deltas 4"))
		require.Contains(t, strings.Join(*told, "\n"), "epoch 3 was out already")
		require.Equal(t, state, state0(t, w.m))
		require.Equal(t, rows, w.b.rows["a"])
		c, err := OpenRoot(w.m.open("r", nil)).Commit(t.Context(), 3)
		require.NoError(t, err)
		require.EqualValues(t, 2, c.Sinks[0].Term, "the writer's term stays (CE10)")
		require.EqualValues(t, 3, c.Term)
		require.EqualValues(t, 3*second+zero, c.Time)
	}
}

// TestCE8: the deltas of the run that wrote the sinks are adopted, not those of
// one that died before.
func TestCE8(t *testing.T) {
	for kind := range roots {
		w := out(t, kind, 2, "sink/a/begin", other)            // term 2 wrote deltas of 3
		w = w.die(t, 3, "commits/3", nil)                      // term 3 wrote others, and the sinks
		require.NoError(t, runJob(t.Context(), w.job(nil), 4)) // term 4
		state, rows := reference(t, 4)
		require.Equal(t, state, state0(t, w.m))
		require.Equal(t, rows, w.b.rows["a"])
	}
}

// TestCE18: a partition without a delta is proved not to have changed by the
// digest; a delta that is lost is not taken for that.
func TestCE18(t *testing.T) {
	for kind := range roots {
		only := func(j *job) { j.word = func(int64) string { return "w0" } } // one partition
		w := out(t, kind, 2, "commits/3", only)
		files := list(t, w.m, "state/")
		j := w.job(nil)
		only(j)
		require.NoError(t, runJob(t.Context(), j, 3))
		require.Equal(t, files, list(t, w.m, "state/"))
		require.Contains(t, w.b.rows["a"], "3 counts w0=2")

		w = out(t, kind, 2, "commits/3", nil)
		s := w.m.open("x", nil)
		require.NoError(t, s.Delete(t.Context(), "state/1/0/3.2.delta"))
		err := w.job(nil).run(t.Context(), 3)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "every sink has epoch 3, but the state files of term 2 are not those")

		b := []byte("no state file")
		putBytes(t, s, "state/1/0/3.2.delta", b)
		err = w.job(nil).run(t.Context(), 3)
		require.ErrorContains(t, err, "are damaged or of another line")
	}
}

// TestAdoptedWithItsMetadata: the run that wrote the epoch brought a new
// operator in, whose state is adopted with it.
func TestAdoptedWithItsMetadata(t *testing.T) {
	ops := []JobOperator{counts("counts", 2), counts("late", 3)}
	for kind := range roots {
		w := out(t, kind, 2, "commits/3", func(j *job) { j.cfg.Operators = ops })
		j := w.job(nil)
		j.cfg.Operators = ops
		told := watch(j)
		require.NoError(t, runJob(t.Context(), j, 4))
		require.False(t, slices.Contains(*told, "deltas 3"))
		require.Contains(t, state0(t, w.m), "late w")
		md, err := OpenRoot(w.m.open("r", nil)).Metadata(t.Context(), 2)
		require.NoError(t, err)
		require.EqualValues(t, 2, md.Term)
		require.Equal(t, []string{"metadata/1", "metadata/2"}, list(t, w.m, "metadata/"))

		// Without the operator, the start is refused after the adoption, and only then.
		w = out(t, kind, 2, "commits/3", func(j *job) { j.cfg.Operators = ops })
		err = w.job(nil).run(t.Context(), 4)
		var m *MissingOperatorError
		require.ErrorAs(t, err, &m)
		require.Equal(t, "late", m.Operator)
		// The first version of a root can be adopted too.
		w = out(t, kind, 0, "commits/1", func(j *job) { j.cfg.Operators = ops })
		j = w.job(nil)
		j.cfg.Operators = ops
		require.NoError(t, runJob(t.Context(), j, 1))
		require.Len(t, w.b.rows["a"], len(w.b.rows["b"]))
	}
}

// TestCE9: one of two sinks has the epoch. Computed again it must come out the
// same, output included, or nothing goes on.
func TestCE9(t *testing.T) {
	state, rows := reference(t, 4)
	for kind := range roots {
		w := out(t, kind, 2, "sink/b/commit", nil)
		require.NoError(t, runJob(t.Context(), w.job(nil), 4))
		require.Equal(t, state, state0(t, w.m))
		require.Equal(t, rows, w.b.rows["a"])
		require.Equal(t, rows, w.b.rows["b"])

		for what, change := range map[string]func(j *job){"the output differs": func(j *job) { j.drift = " at noon" }, "the state differs": other} {
			w = out(t, kind, 2, "sink/b/commit", nil)
			j := w.job(nil)
			change(j)
			err := j.run(t.Context(), 4)
			var d *RedoDiffersError
			require.ErrorAs(t, err, &d)
			require.ErrorIs(t, err, ErrRedoDiffers)
			require.Equal(t, []any{uint64(3), "a"}, []any{d.Epoch, d.Sink})
			if what == "the output differs" {
				require.ErrorContains(t, err, what)
			}
			require.NotContains(t, list(t, w.m, "commits/"), "commits/3")
			require.Len(t, w.b.rows["b"], len(rows)/2, "b has epochs 1 and 2")

			j = w.job(nil)
			change(j)
			j.cfg.AcceptRedo = true
			told := watch(j)
			require.NoError(t, runJob(t.Context(), j, 3))
			require.Contains(t, strings.Join(*told, "\n"), "epoch 3 came out another way than sink a has it")
		}
	}
}

// TestMemories: what a sink remembers and what the root records must go
// together; each refusal names both numbers.
func TestMemories(t *testing.T) {
	for what, tc := range map[string]struct {
		spoil func(w *world, key string)
		words []string
	}{
		"above":   {func(w *world, key string) { w.b.mem[key] = sink.Memory{Epoch: 9, Term: 1} }, []string{"remembers epoch 9", "records epoch 2", "older copy"}},
		"below":   {func(w *world, key string) { w.b.mem[key] = sink.Memory{Epoch: 1, Term: 1} }, []string{"remembers epoch 1", "records epoch 2"}},
		"missing": {func(w *world, key string) { delete(w.b.mem, key) }, []string{"forgot it", "restore it", "epoch 2"}},
		"differs": {func(w *world, key string) { w.b.mem[key] = sink.Memory{Epoch: 2, Term: 1} }, []string{"not the same content"}},
		"planless": {func(w *world, key string) {
			w.b.mem[key] = sink.Memory{Epoch: 3, Term: 1}
		}, []string{"a sink has epoch 3, but offsets/3 is gone"}},
	} {
		w := &world{m: roots["objects"](), b: &board{}}
		require.NoError(t, runJob(t.Context(), w.job(nil), 2))
		for key := range w.b.mem {
			if strings.HasPrefix(key, "b ") {
				tc.spoil(w, key)
			}
		}
		err := w.job(nil).run(t.Context(), 3)
		require.ErrorIs(t, err, ErrRefused, what)
		for _, word := range tc.words {
			require.ErrorContains(t, err, word, what)
		}
		require.NotContains(t, list(t, w.m, "offsets/"), "offsets/3")
	}
}

// TestCE20: an epoch without output moves the memory all the same.
func TestCE20(t *testing.T) {
	w := &world{m: roots["objects"](), b: &board{}}
	j := w.job(nil)
	j.quiet = "counts"
	require.NoError(t, runJob(t.Context(), j, 3))
	require.Empty(t, w.b.rows["a"])
	for _, m := range w.b.mem {
		require.EqualValues(t, 3, m.Epoch)
	}
	require.Len(t, w.b.mem, 2)
	require.NoError(t, runJob(t.Context(), w.job(nil), 4))
}

// TestCE14: a transaction that was aborted for time does not end a live owner,
// and an unknown outcome is found out, never written again (P2).
func TestCE14(t *testing.T) {
	state, rows := reference(t, 3)
	for name, r := range map[string]vfs.Rule{
		"fenced at begin":  {Path: "sink/a/begin", K: 2, Err: sink.ErrFenced},
		"fenced at commit": {Path: "sink/a/commit", K: 2, Err: sink.ErrFenced},
		"unknown, lost":    {Path: "sink/a/commit", K: 2, Err: sink.ErrUnknown},
		"unknown, written": {Path: "sink/a/commit", K: 2, Err: sink.ErrUnknown, After: true},
		"fenced twice":     {Path: "sink/a/fence", K: 2, Err: sink.ErrFenced},
	} {
		w := &world{m: roots["objects"](), b: &board{noTerm: true}}
		var f vfs.Faults
		f.Fail(r)
		if name == "fenced twice" {
			f.Fail(vfs.Rule{Path: "sink/a/commit", K: 2, Err: sink.ErrFenced})
		}
		require.NoError(t, runJob(t.Context(), w.job(&f), 3), name)
		require.Positive(t, f.Hits(), name)
		require.Equal(t, state, state0(t, w.m), name)
		require.Equal(t, rows, w.b.rows["a"], name)
	}
	// For ever fenced is an end, too.
	w := &world{m: roots["objects"](), b: &board{}}
	var f vfs.Faults
	f.Fail(vfs.Rule{Path: "sink/a/commit", Err: sink.ErrFenced, Forever: true})
	require.ErrorContains(t, w.job(&f).run(t.Context(), 1), "given up after 20 times")
}

// TestSinkIsAhead: a sink that shows a newer run than owner/ has is refused: the
// root is an older copy.
func TestSinkIsAhead(t *testing.T) {
	w := &world{m: roots["objects"](), b: &board{}}
	require.NoError(t, runJob(t.Context(), w.job(nil), 1))
	for k, f := range w.b.fence {
		f.Term = 40
		w.b.fence[k] = f
	}
	err := w.job(nil).run(t.Context(), 2)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "older copy")
}

// TestGivenUpCommitIsAborted: a commit of the second sink that fails for good ends the session,
// and its transaction with it: readers of that sink need not wait for a timeout.
func TestGivenUpCommitIsAborted(t *testing.T) {
	w := &world{m: roots["objects"](), b: &board{}}
	var f vfs.Faults
	j := w.job(&f)
	f.Fail(vfs.Rule{Kinds: vfs.KindOther, Path: "sink/b/commit", Forever: true})
	var s *Session
	j.step = func(string, uint64) { s = j.s }
	err := j.run(t.Context(), 1)
	require.ErrorIs(t, err, vfs.ErrInjected)
	require.Equal(t, 1, w.b.open)
	require.ErrorIs(t, s.Aborted(t.Context(), errors.New("another error")), vfs.ErrInjected, "the session was over")
	require.Zero(t, w.b.open)
	_, rows := reference(t, 1)
	require.NoError(t, runJob(t.Context(), w.job(nil), 1))
	require.Equal(t, rows, w.b.rows["a"])
	require.Equal(t, rows, w.b.rows["b"])
}

// TestSinkLeftOut: a program without a sink is told so; while an epoch is planned that the sink may
// have already, it is refused before it takes anything (CE17), unless the sink is given up. One that
// comes back is told what it lacks.
func TestSinkLeftOut(t *testing.T) {
	sinks := func(w *world, names ...string) *job {
		j := w.job(nil)
		j.cfg.Sources = []string{"lines"}
		j.cfg.Sinks = nil
		for _, name := range names {
			j.cfg.Sinks = append(j.cfg.Sinks, w.b.unit(name, nil))
		}
		return j
	}
	w := out(t, "objects", 2, "commits/3", nil)
	var refused *SinksError
	err := sinks(w, "a", "c").run(t.Context(), 3)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, SinksError{Epoch: 3, Missing: []string{"b"}}, *refused)
	require.ErrorContains(t, err, `WithDrop("b")`)
	_, rows := reference(t, 3)
	require.NoError(t, runJob(t.Context(), sinks(w, "b", "a"), 3), "nothing was taken")
	require.Equal(t, rows, w.b.rows["b"])

	j := sinks(w, "a")
	told := watch(j)
	require.NoError(t, runJob(t.Context(), j, 5))
	require.Contains(t, *told, "sink b of the checkpoint is not in the program: it gets nothing from epoch 4 on")
	j = sinks(w, "a", "b")
	told = watch(j)
	require.NoError(t, runJob(t.Context(), j, 6))
	require.Contains(t, *told, "sink b was not in the program for a while: it has epoch 3 and goes on with epoch 6; what lies between is not in it")

	w = out(t, "objects", 2, "commits/3", nil)
	j = sinks(w, "a")
	j.cfg.Drop = []string{"b"}
	require.NoError(t, runJob(t.Context(), j, 3))
	require.Equal(t, rows, w.b.rows["a"])
}
