package checkpoint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/vfs"
)

// thawed is a run that was frozen before its k-th call while a newer run
// committed two epochs, snapshots, floor and clean-up included.
type thawed struct {
	w       *world
	old     *job
	err     error // of the run that was frozen
	frozen  string
	reached bool
}

func frozenAt(t *testing.T, kind string, k int, noTerm bool, newer func(j *job)) thawed {
	ctx := t.Context()
	w := &world{m: roots[kind](), b: &board{noTerm: noTerm}}
	first := w.job(nil)
	first.keep = 1
	require.NoError(t, runJob(ctx, first, 2))

	var f vfs.Faults
	z := thawed{w: w}
	f.Do(vfs.Rule{K: k}, func(c vfs.Call) { z.frozen = c.String() })
	fr := f.Freeze(vfs.Rule{K: k})
	z.old = w.job(&f)
	z.old.keep = 1
	done := make(chan error, 1)
	go func() { done <- runJob(ctx, z.old, 4) }()
	select {
	case <-fr.Reached():
		z.reached = true
	case z.err = <-done: // it makes fewer calls
		return z
	}
	j := w.job(nil)
	j.keep = 1
	j.cfg.Takeover = TakeoverForce
	if newer != nil {
		newer(j)
	}
	require.NoError(t, runJob(ctx, j, 4), "frozen before %s", z.frozen)
	fr.Thaw()
	z.err = <-done
	return z
}

// TestZombieAtEveryCall: a run that is frozen between any two calls, while a
// newer one goes on for two epochs and cleans up, finds out when it thaws and
// changes nothing that anybody believes. What it says is "not the owner", or it
// had not begun yet and goes on as the newest (CE1–CE8, CE12, CE17, report 14).
func TestZombieAtEveryCall(t *testing.T) {
	defer goleak.VerifyNone(t)
	state, rows := reference(t, 6)
	for kind := range roots {
		for _, noTerm := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/no terms %v", kind, noTerm), func(t *testing.T) {
				lost := 0
				for k := 1; ; k += stride {
					z := frozenAt(t, kind, k, noTerm, nil)
					if !z.reached {
						require.NoError(t, z.err)
						break
					}
					hint := fmt.Sprintf("frozen before call %d, %s: %v", k, z.frozen, z.err)
					if z.err != nil {
						require.ErrorIs(t, z.err, ErrNotOwner, hint)
						lost++
					}
					// A later run goes on along one line.
					j := z.w.job(nil)
					j.keep = 1
					j.cfg.Takeover = TakeoverForce
					require.NoError(t, runJob(t.Context(), j, 6), hint)
					require.Equal(t, state, state0(t, z.w.m), hint)
					require.Equal(t, rows, z.w.b.rows["a"], hint)
					require.Equal(t, rows, z.w.b.rows["b"], hint)
				}
				require.Greater(t, lost, 20/stride)
			})
		}
	}
}

// TestZombieInAChange: the run that is frozen between any two calls, and the
// newer one, change the layout or the types at the same time (CE12, CE16).
func TestZombieInAChange(t *testing.T) {
	forScripts(t, func(t *testing.T, sc script, kind string) {
		lost := 0
		for k := 1; ; k += stride {
			w := sc.start(t, kind)
			w.force = true
			var f vfs.Faults
			fr := f.Freeze(vfs.Rule{K: k})
			done := make(chan error, 1)
			go func() { done <- sc.run(t.Context(), w, &f) }()
			select {
			case <-fr.Reached():
			case err := <-done:
				require.NoError(t, err)
				require.Greater(t, lost, 5)
				return
			}
			hint := fmt.Sprintf("frozen before call %d", k)
			sc.finish(t, w, hint)
			fr.Thaw()
			if err := <-done; err != nil {
				require.ErrorIs(t, err, ErrNotOwner, hint)
				lost++
			}
			sc.finish(t, w, hint)
		}
	})
}

// zombieBefore freezes the run before its first call of the kinds to a path.
func zombieBefore(t *testing.T, kind string, r vfs.Rule, newer func(j *job)) thawed {
	ctx := t.Context()
	w := &world{m: roots[kind](), b: &board{}}
	var f vfs.Faults
	z := thawed{w: w, old: w.job(&f)}
	z.old.keep = 1
	fr := f.Freeze(r)
	done := make(chan error, 1)
	go func() { done <- runJob(ctx, z.old, 1) }()
	<-fr.Reached()
	j := w.job(nil)
	j.keep = 1
	j.cfg.Takeover = TakeoverForce
	newer(j)
	fr.Thaw()
	z.err = <-done
	return z
}

var creation = map[string]vfs.Kind{"mem": vfs.KindLink, "objects": vfs.KindPut}

// TestCE4: retention has freed the name commits/1; the run that thaws creates it
// and does not report success; nobody believes the stray.
func TestCE4(t *testing.T) {
	state, rows := reference(t, 4)
	for kind := range roots {
		z := zombieBefore(t, kind, vfs.Rule{Kinds: creation[kind], Path: "commits/1"}, func(j *job) {
			require.NoError(t, runJob(t.Context(), j, 3))
		})
		require.ErrorIs(t, z.err, ErrNotOwner, kind)
		require.ErrorContains(t, z.err, "stands")
		names := list(t, z.w.m, "commits/")
		require.Equal(t, []string{"commits/1", "commits/2", "commits/3"}, names, "the stray is there")
		r := OpenRoot(z.w.m.open("reader", nil))
		nums, err := r.Commits(t.Context())
		require.NoError(t, err)
		require.Equal(t, []uint64{2, 3}, nums, "nothing below the floor is believed (P5)")
		j := z.w.job(nil)
		j.cfg.Takeover = TakeoverForce
		require.NoError(t, runJob(t.Context(), j, 4))
		require.Equal(t, state, state0(t, z.w.m))
		require.Equal(t, rows, z.w.b.rows["a"])
	}
}

// TestCE6AndCE7: files of an epoch without a commit survive the start and the
// clean-up of others.
func TestCE6AndCE7(t *testing.T) {
	for kind := range roots {
		var before, after []string
		z := zombieBefore(t, kind, vfs.Rule{Kinds: creation[kind], Path: "commits/1"}, func(j *job) {
			before = list(t, &z0{j.cfg.Store}, "state/")
			require.NoError(t, j.open(t.Context()))
			after = list(t, &z0{j.cfg.Store}, "state/")
			require.NoError(t, j.close())
		})
		require.ErrorIs(t, z.err, ErrNotOwner)
		require.NotEmpty(t, before)
		require.Equal(t, before, after, "a start deletes nothing (CE6)")
		// The stray commit stands, as nobody has committed another, and names files
		// that are there.
		require.NotEmpty(t, state0(t, z.w.m))
	}
}

// TestCE12: a rescale is an epoch, so it cannot pass one that is under way.
func TestCE12(t *testing.T) {
	state, rows := reference(t, 4)
	for kind := range roots {
		ctx := t.Context()
		w := &world{m: roots[kind](), b: &board{}}
		require.NoError(t, runJob(ctx, w.job(nil), 2))
		var f vfs.Faults
		old := w.job(&f)
		fr := f.Freeze(vfs.Rule{Kinds: creation[kind], Path: "offsets/3"})
		done := make(chan error, 1)
		go func() { done <- runJob(ctx, old, 4) }()
		<-fr.Reached()
		j := w.job(nil, counts("counts", 5))
		j.cfg.Rescale, j.cfg.Takeover = true, TakeoverForce
		require.NoError(t, j.open(ctx)) // epoch 3 is the rescale
		fr.Thaw()
		require.ErrorIs(t, <-done, ErrNotOwner)
		require.NoError(t, runJob(ctx, j, 4))
		require.Equal(t, state, state0(t, w.m))
		require.Equal(t, rows, w.b.rows["a"])
	}
}

// TestRestartBehindAnOlderRun: the older run created the plan, or the commit,
// that the newer one was about to create: it stands, and the newer one starts
// again behind it, with the next term (P3).
func TestRestartBehindAnOlderRun(t *testing.T) {
	state, rows := reference(t, 5)
	for kind := range roots {
		for _, name := range []string{"offsets/3", "commits/3"} {
			ctx := t.Context()
			w := &world{m: roots[kind](), b: &board{}}
			require.NoError(t, runJob(ctx, w.job(nil), 2))
			var f vfs.Faults
			old := w.job(&f)
			old.cfg.Sinks = nil // a sink would have told
			fr := f.Freeze(vfs.Rule{Kinds: creation[kind], Path: name})
			done := make(chan error, 1)
			go func() { done <- runJob(ctx, old, 3) }()
			<-fr.Reached()
			j := w.job(nil)
			j.cfg.Sinks = nil
			j.cfg.Takeover = TakeoverForce
			thaw := map[string]string{"offsets/3": "plan", "commits/3": "deltas"}[name]
			var steps []string
			var oldErr error
			j.step = func(what string, n uint64) {
				steps = append(steps, fmt.Sprintf("%s %d", what, n))
				if what == thaw && n == 3 && oldErr == nil {
					fr.Thaw()
					oldErr = <-done
				}
			}
			require.NoError(t, runJob(ctx, j, 5), "%s on %s", name, kind)
			require.ErrorIs(t, oldErr, ErrNotOwner, "the older run has the epoch, but is no longer the owner")
			require.EqualValues(t, 4, j.s0term, "term 3 lost its epoch, so the next one goes on")
			require.Equal(t, state, state0(t, w.m))
			_ = rows
			require.False(t, slices.Contains(steps, "committed 3") && name == "commits/3", "%v", steps)
		}
	}
}

// TestRestartDoesNotTakeOver: a run that starts again behind an older one asks
// for the next term only: if another run has that, it is newer.
func TestRestartDoesNotTakeOver(t *testing.T) {
	m := roots["objects"]()
	require.NoError(t, runJob(t.Context(), newJob(m, nil), 1))
	require.NoError(t, runJob(t.Context(), newJob(m, nil), 2))
	j := newJob(m, nil)
	j.cfg.After = 1
	err := j.run(t.Context(), 3)
	require.ErrorIs(t, err, ErrNotOwner)
	require.Equal(t, []string{"owner/1", "owner/2"}, list(t, m, "owner/"))
}

// TestCE13: the answer to the creation of commits/N is lost. Every other call's
// answer is in TestFailureAtEveryCall.
func TestCE13(t *testing.T) {
	for kind := range roots {
		m := roots[kind]()
		var f vfs.Faults
		f.Fail(vfs.Rule{Kinds: creation[kind], Path: "commits/2", After: true})
		j := newJob(m, &f)
		j.cfg.Options.RetryLimit = 0
		require.NoError(t, runJob(t.Context(), j, 3))
		require.Equal(t, 1, f.Hits())
		require.Equal(t, []string{"owner/1"}, list(t, m, "owner/"))
	}
}

// TestCE16: a frozen older run creates the metadata number that the newer one
// has read to be free; neither builds on the other's.
func TestCE16(t *testing.T) {
	for kind := range roots {
		ctx := t.Context()
		w := &world{m: roots[kind](), b: &board{}}
		require.NoError(t, runJob(ctx, w.job(nil), 2))
		var f vfs.Faults
		old := w.job(&f, counts("counts", 2), counts("old", 1))
		old.quiet = "old"
		fr := f.Freeze(vfs.Rule{Kinds: creation[kind], Path: "metadata/2"})
		done := make(chan error, 1)
		go func() { done <- runJob(ctx, old, 3) }()
		<-fr.Reached()
		j := w.job(nil, counts("counts", 2), counts("new", 3))
		j.quiet = "new"
		j.cfg.Takeover = TakeoverForce
		require.NoError(t, j.open(ctx))
		fr.Thaw()
		require.ErrorIs(t, <-done, ErrNotOwner)
		require.NoError(t, runJob(ctx, j, 4))
		// The older run's plan stood too, so the newer one started again behind it
		// and wrote its metadata once more.
		require.Equal(t, []string{"metadata/1", "metadata/2", "metadata/3", "metadata/4"}, list(t, w.m, "metadata/"))
		r := OpenRoot(w.m.open("reader", nil))
		c, err := r.Newest(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 4, c.Metadata)
		md, err := r.Metadata(ctx, 4)
		require.NoError(t, err)
		require.NotNil(t, md.Operator("new"))
		require.Nil(t, md.Operator("old"))
		require.EqualValues(t, 1, md.Prev)
	}
}

// z0 is a medium that is only read.
type z0 struct{ s vfs.Store }

func (z *z0) open(string, vfs.Injector) vfs.Store { return z.s }
func (z *z0) crash(uint64, int) medium            { return z }

// list gives the names of a folder, without what puts have left.
func list(t testing.TB, m medium, folder string) (names []string) {
	l, err := m.open("reader", nil).List(t.Context(), folder)
	require.NoError(t, err)
	for _, o := range l {
		names = append(names, o.Name)
	}
	return names
}
