package hostile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
)

// A relative folder is that of the start, wherever the program goes to.
func TestProgramChangesItsDirectory(t *testing.T) {
	base := t.TempDir()
	a, b := filepath.Join(base, "a"), filepath.Join(base, "b")
	require.NoError(t, os.Mkdir(a, 0o755))
	require.NoError(t, os.Mkdir(b, 0o755))
	w := newWorld(t)
	w.topic("a").add("x")
	t.Chdir(a)
	l := w.lifeAt("ckpt", sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	t.Chdir(b)
	require.NoError(t, l.tick(4))
	require.NoError(t, l.stop())
	left, err := os.ReadDir(b)
	require.NoError(t, err)
	require.Empty(t, left)
	t.Chdir(a)
	l = w.lifeAt("./ckpt/", sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	require.NoError(t, l.tick(1))
	require.Equal(t, map[string]int{"x": 1}, state[string, int](t, l, "counts"))
	require.NoError(t, l.stop())
}

// Two jobs of one process on one folder, also by another name of it.
func TestTwoJobsOnOneRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ckpt")
	w := newWorld(t)
	w.topic("a").add("x")
	l := w.lifeAt(dir, sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	require.NoError(t, os.Symlink(dir, dir+"-link"))
	for _, d := range []string{dir, dir + "-link"} {
		err := w.lifeAt(d, sources(w, "a")).ssc.Start()
		require.ErrorIs(t, err, checkpoint.ErrOwned)
		require.ErrorContains(t, err, "stop it first")
	}
	require.NoError(t, l.tick(2))
	require.NoError(t, l.stop())
	l = w.lifeAt(dir+"-link", sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	require.NoError(t, l.tick(1))
	require.Equal(t, map[string]int{"x": 1}, state[string, int](t, l, "counts"))
	require.NoError(t, l.stop())
}

// A root that is deleted under a run ends it at its next epoch.
func TestRootDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ckpt")
	w := newWorld(t)
	w.topic("a").add("x")
	l := w.lifeAt(dir, sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	require.NoError(t, l.tick(2))
	require.NoError(t, os.RemoveAll(dir))
	err := l.tick(1)
	require.ErrorIs(t, err, checkpoint.ErrNotOwner)
	require.ErrorContains(t, err, "owner/1, which this run has made, is gone")
	require.Error(t, l.stop())
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is written any more")
}

// Nor does it write into the root that another run has made in the place.
func TestRootMadeAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ckpt")
	w := newWorld(t)
	w.topic("a").add("x")
	old := w.lifeAt(dir, sources(w, "a"))
	require.NoError(t, old.ssc.Start())
	require.NoError(t, old.tick(2))
	require.NoError(t, os.RemoveAll(dir))
	anew := w.lifeAt(dir, sources(w, "a"))
	require.NoError(t, anew.ssc.Start())
	require.NoError(t, anew.tick(1))
	w.topic("a").add("x")
	err := old.tick(2)
	require.ErrorIs(t, err, checkpoint.ErrNotOwner)
	require.ErrorContains(t, err, "another one put in its place")
	require.Error(t, old.stop())
	require.NoError(t, anew.tick(3))
	require.Equal(t, map[string]int{"x": 2}, state[string, int](t, anew, "counts"))
	require.NoError(t, anew.stop())
}
