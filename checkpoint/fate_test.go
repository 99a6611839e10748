package checkpoint

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// overtaken gives a run that was frozen before it made commits/3, while a newer one
// committed as many batches.
func overtaken(t *testing.T, kind string, newer uint64) *job {
	m := roots[kind]()
	var f vfs.Faults
	name := "commits/3"
	fr := f.Freeze(vfs.Rule{Path: "*" + name, Kinds: vfs.KindPut | vfs.KindLink})
	old := newJob(m, &f)
	old.keep = 1
	done := make(chan error, 1)
	go func() {
		err := old.open(t.Context())
		for err == nil {
			err = old.one(t.Context())
		}
		done <- err
	}()
	<-fr.Reached()
	j := newJob(m, nil)
	j.keep, j.cfg.Takeover = 1, TakeoverForce
	require.NoError(t, j.run(t.Context(), newer))
	require.NoError(t, j.close())
	fr.Thaw()
	require.ErrorIs(t, <-done, ErrNotOwner)
	t.Cleanup(func() { require.NoError(t, old.close()) })
	return old
}

// P3, P5: a commit that stands is told, whoever is the owner; not one that nobody reads.
func TestFateAfterATakeover(t *testing.T) {
	for kind := range roots {
		for _, c := range []struct {
			name  string
			newer uint64 // batches
			want  Fate
		}{
			{"the newer run builds on it", 2, Committed},
			{"the newer run has committed the epoch", 3, NotCommitted},
			{"its name was free again", 9, CommitUnknown},
		} {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				old := overtaken(t, kind, c.newer)
				require.Equal(t, c.want, old.s.CommitFate(t.Context()))
			})
		}
	}
}

// P4: a name that is there counts as durable only when the folder was synced.
func TestFateOfANameThatIsNotDurable(t *testing.T) {
	for _, c := range []struct {
		name    string
		forever bool
		want    Fate
	}{{"synced now", false, Committed}, {"not synced", true, CommitUnknown}} {
		t.Run(c.name, func(t *testing.T) {
			var f vfs.Faults
			j := newJob(roots["mem"](), &f)
			require.NoError(t, j.open(t.Context()))
			defer func() { require.NoError(t, j.close()) }()
			require.Equal(t, NotCommitted, j.s.CommitFate(t.Context()), "none was begun")
			require.NoError(t, j.one(t.Context()))
			require.Equal(t, NotCommitted, j.s.CommitFate(t.Context()), "the next one was not begun")
			f.Fail(vfs.Rule{Path: "*/commits", Kinds: vfs.KindSyncDir, Forever: c.forever, Err: errors.New("gone")})
			require.ErrorContains(t, j.one(t.Context()), "gone")
			require.Equal(t, c.want, j.s.CommitFate(t.Context()))
		})
	}
}
