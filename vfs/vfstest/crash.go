package vfstest

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// Crasher is a file system of which a crash can be played.
type Crasher struct {
	// FS is the file system; it goes on after a crash.
	FS vfs.FS
	// Dir is an existing, durable, empty directory.
	Dir string
	// Crash returns what is there after a crash in this instant. Each part that
	// was not synced is kept with the probability percent, or in part.
	Crash func(rng *rand.Rand, percent int) vfs.FS
}

// OpenCrasher opens one for each case.
type OpenCrasher = func(t *testing.T) Crasher

// RunCrash checks what is durable.
func RunCrash(t *testing.T, open OpenCrasher) {
	t.Helper()
	run(t, crashCases(open))
}

// FailingCrash returns the names of the cases of RunCrash that fail.
func FailingCrash(t *testing.T, open OpenCrasher) []string {
	t.Helper()
	return failing(t, crashCases(open))
}

func crashCases(open OpenCrasher) (list []testCase) {
	for _, c := range []struct {
		name string
		test func(TB, Crasher)
	}{
		{"SyncedSurvives", syncedSurvives},
		{"CreateExclusiveIsDurable", createExclusiveDurable},
		{"TakenIsDurable", takenDurable},
		{"WholeOrNothingAfterAnyCrash", wholeAfterAnyCrash},
	} {
		list = append(list, testCase{c.name, func(t *testing.T, tb TB) { c.test(tb, open(t)) }})
	}
	return list
}

// each plays crashes that lose everything, keep everything, and between.
func (c Crasher) each(visit func(after vfs.FS)) {
	visit(c.Crash(nil, 0))
	visit(c.Crash(nil, 100))
	for seed := range uint64(8) {
		visit(c.Crash(rand.New(rand.NewPCG(seed, 0)), 50))
	}
}

func syncedSurvives(t TB, c Crasher) {
	sub := filepath.Join(c.Dir, "sub")
	require.NoError(t, c.FS.MkdirAll(sub))
	require.NoError(t, c.FS.SyncDir(c.Dir))
	write(t, c.FS, filepath.Join(sub, "a"), "synced")
	require.NoError(t, c.FS.Link(filepath.Join(sub, "a"), filepath.Join(sub, "b")))
	require.NoError(t, c.FS.SyncDir(sub))
	require.NoError(t, c.FS.Remove(filepath.Join(sub, "a")))
	require.NoError(t, c.FS.SyncDir(sub))
	c.each(func(after vfs.FS) {
		require.Equal(t, "synced", read(t, after, filepath.Join(sub, "b")))
		_, err := after.Stat(filepath.Join(sub, "a"))
		require.ErrorIs(t, err, fs.ErrNotExist, "a removal is durable too")
	})
}

func createExclusiveDurable(t TB, c Crasher) {
	require.NoError(t, vfs.CreateExclusive(c.FS, c.Dir, "7", "7.tmp", text("all of it")))
	c.each(func(after vfs.FS) { require.Equal(t, "all of it", read(t, after, filepath.Join(c.Dir, "7"))) })
}

// Who is told that a name is taken may build on the file that is there, also if
// its maker has not come to the sync of the folder.
func takenDurable(t TB, c Crasher) {
	var faults vfs.Faults
	faults.Fail(vfs.Rule{Kinds: vfs.KindSyncDir, Dead: true})
	err := vfs.CreateExclusive(vfs.WithFaults(c.FS, &faults), c.Dir, "7", "7.tmp1", text("first"))
	require.ErrorIs(t, err, vfs.ErrInjected)
	require.NotErrorIs(t, err, fs.ErrExist)
	require.ErrorIs(t, vfs.CreateExclusive(c.FS, c.Dir, "7", "7.tmp2", text("second")), fs.ErrExist)
	c.each(func(after vfs.FS) { require.Equal(t, "first", read(t, after, filepath.Join(c.Dir, "7"))) })
}

// Report 13: a crash before every call; what is there afterwards is whole, and
// what was there before stays.
func wholeAfterAnyCrash(t TB, c Crasher) {
	require.NoError(t, vfs.CreateExclusive(c.FS, c.Dir, "6", "6.tmp", text("before")))
	calls := 0
	check := func(vfs.Call) {
		calls++
		c.each(func(after vfs.FS) {
			require.Equal(t, "before", read(t, after, filepath.Join(c.Dir, "6")))
			b, err := vfs.ReadFile(after, filepath.Join(c.Dir, "7"))
			if err == nil {
				require.Equal(t, "now", string(b))
			} else {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			// The next run is not hindered by what was left.
			err = vfs.CreateExclusive(after, c.Dir, "7", "7.tmp", text("now"))
			if err != nil {
				require.ErrorIs(t, err, fs.ErrExist)
			}
			require.Equal(t, "now", read(t, after, filepath.Join(c.Dir, "7")))
		})
	}
	var faults vfs.Faults
	faults.Do(vfs.Rule{Forever: true}, check)
	require.NoError(t, vfs.CreateExclusive(vfs.WithFaults(c.FS, &faults), c.Dir, "7", "7.tmp", text("now")))
	require.Equal(t, 7, calls, "create, write, sync, close, link, sync of the folder, remove")
}
