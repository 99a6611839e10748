// Package vfstest is the acceptance suite for file systems ([Run], [RunCrash])
// and for stores of whole objects ([RunStore]): what Statemill relies on, and
// nothing that only some of them do.
//
//	func TestMine(t *testing.T) {
//		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return mine.New(), "/work" })
//		vfstest.RunStore(t, func(t *testing.T) vfstest.Stores { … })
//	}
//
// Run checks behaviour while the machine is up, RunCrash what is there after a
// crash, for file systems of which a crash can be played. [Failing] and its
// sisters tell which cases fail instead of failing: the proof that a suite
// notices a broken implementation.
package vfstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// TB is what a case needs of a test: failures, and Helper as testing.T has it.
type TB interface {
	require.TestingT
	Helper()
}

// Open returns, for each case, a file system and an existing, empty directory
// to work in; it may register clean-up on t.
type Open = func(t *testing.T) (vfs.FS, string)

// Run checks a file system.
func Run(t *testing.T, open Open) {
	t.Helper()
	run(t, fsCases(open))
}

// Failing returns the names of the cases of Run that fail.
func Failing(t *testing.T, open Open) []string {
	t.Helper()
	return failing(t, fsCases(open))
}

func fsCases(open Open) (list []testCase) {
	for _, c := range []struct {
		name string
		test func(TB, vfs.FS, string)
	}{
		{"CreateIsExclusive", createIsExclusive},
		{"ReadBack", readBack},
		{"OpenIsForReading", openIsForReading},
		{"Link", link},
		{"Remove", remove},
		{"ReadDir", readDir},
		{"ReadDirOfMany", readDirMany},
		{"MkdirAll", mkdirAll},
		{"Missing", missing},
		{"Closed", closed},
		{"OpenFileGrows", openFileGrows},
		{"OneWinnerOfMany", oneWinnerOfMany},
		{"ModTime", modTime},
		{"Owner", owner},
		{"Lock", lock},
		{"CreateExclusive", createExclusive},
		{"CreateExclusiveIsWholeOrNothing", createExclusiveWhole},
		{"CreateExclusiveHasOneWinner", createExclusiveOneWinner},
	} {
		list = append(list, testCase{c.name, func(t *testing.T, tb TB) {
			fsys, dir := open(t)
			c.test(tb, fsys, dir)
		}})
	}
	return list
}

func write(t TB, fsys vfs.FS, name, text string) {
	t.Helper()
	require.NoError(t, vfs.WriteFile(fsys, name, []byte(text)))
}

func read(t TB, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name)
	require.NoError(t, err)
	return string(b)
}

func is(t TB, err, class error, name string) {
	t.Helper()
	require.ErrorIs(t, err, class)
	require.ErrorContains(t, err, name, "the error names the path")
}

func failures(errs []error) (list []error) {
	for _, err := range errs {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}
