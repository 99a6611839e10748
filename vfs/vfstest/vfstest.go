// Package vfstest is the acceptance suite for file systems: what Statemill
// relies on, and nothing that only some file systems do.
//
//	func TestMine(t *testing.T) {
//		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return mine.New(), "/work" })
//	}
//
// It checks behaviour while the machine is up. What survives a crash is tested
// by the stores that use the file system.
package vfstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// Run checks a file system. open is called for each test and returns the file
// system and an existing, empty directory to work in; it may register clean-up
// on t.
func Run(t *testing.T, open func(t *testing.T) (vfs.FS, string)) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, vfs.FS, string)
	}{
		{"CreateIsExclusive", createIsExclusive},
		{"ReadBack", readBack},
		{"OpenIsForReading", openIsForReading},
		{"Link", link},
		{"Remove", remove},
		{"ReadDir", readDir},
		{"MkdirAll", mkdirAll},
		{"Missing", missing},
		{"Closed", closed},
		{"OpenFileGrows", openFileGrows},
		{"OneWinnerOfMany", oneWinnerOfMany},
		{"ModTime", modTime},
		{"Owner", owner},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, dir := open(t)
			c.test(t, fsys, dir)
		})
	}
}

func write(t *testing.T, fsys vfs.FS, name, text string) {
	t.Helper()
	require.NoError(t, vfs.WriteFile(fsys, name, []byte(text)))
}

func read(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name)
	require.NoError(t, err)
	return string(b)
}

func is(t *testing.T, err, class error, name string) {
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
