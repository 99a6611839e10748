package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// vfs.CreateExclusive on this file system, and locks.

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func createExclusive(t TB, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "7")
	write(t, fsys, filepath.Join(dir, "7.tmp"), "left by an earlier try")
	require.NoError(t, vfs.CreateExclusive(fsys, dir, "7", "7.tmp", text("mine")))
	require.Equal(t, "mine", read(t, fsys, name))
	is(t, vfs.CreateExclusive(fsys, dir, "7", "7.tmp", text("other")), fs.ErrExist, name)
	require.Equal(t, "mine", read(t, fsys, name))
	list, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 1, "temporary names are gone")
}

// While it is written and after a failed try the name is not there.
func createExclusiveWhole(t TB, fsys vfs.FS, dir string) {
	name, errFull := filepath.Join(dir, "7"), errors.New("full")
	absent := func() {
		_, err := fsys.Stat(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Open(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	err := vfs.CreateExclusive(fsys, dir, "7", "7.tmp", func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		require.NoError(t, err)
		absent()
		return errFull
	})
	is(t, err, errFull, name)
	absent()
	require.NoError(t, vfs.CreateExclusive(fsys, dir, "7", "7.tmp", text("whole")))
	require.Equal(t, "whole", read(t, fsys, name))
}

func createExclusiveOneWinner(t TB, fsys vfs.FS, dir string) {
	const many = 8
	errs := make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			id := strconv.Itoa(i)
			errs[i] = vfs.CreateExclusive(fsys, dir, "7", "7.tmp"+id, text(strings.Repeat(id, 1000)))
		})
	}
	wg.Wait()
	requireOneWinner(t, errs, func(i int) {
		require.Equal(t, strings.Repeat(strconv.Itoa(i), 1000), read(t, fsys, filepath.Join(dir, "7")))
	})
}

func requireOneWinner(t TB, errs []error, check func(winner int)) {
	t.Helper()
	require.Len(t, failures(errs), len(errs)-1, "one winner")
	for i, err := range errs {
		if err == nil {
			check(i)
		} else {
			require.ErrorIs(t, err, fs.ErrExist)
		}
	}
}

func lock(t TB, fsys vfs.FS, dir string) {
	requireLock(t, filepath.Join(dir, "lock"), fsys.Lock, fsys.Lock)
	_, err := fsys.Lock(filepath.Join(dir, "no", "lock"), "me")
	is(t, err, fs.ErrNotExist, "no")
	_, err = fsys.Lock(dir, "me")
	require.Error(t, err)
}

type take = func(name, holder string) (io.Closer, error)

// requireLock checks that two takers exclude one another, if there are locks.
func requireLock(t TB, name string, a, b take) {
	t.Helper()
	held, err := a(name, "host h, pid 1")
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	require.NoError(t, err)
	for range 2 {
		_, err = b(name, "host h, pid 2")
		is(t, err, vfs.ErrLocked, name)
		var locked *vfs.LockedError
		require.ErrorAs(t, err, &locked)
		require.Equal(t, "host h, pid 1", locked.Holder)
		require.ErrorContains(t, err, "host h, pid 1")
	}
	require.NoError(t, held.Close())
	again, err := b(name, "pid 2")
	require.NoError(t, err, "closing releases")
	is(t, held.Close(), fs.ErrClosed, "lock")
	_, err = a(name, "pid 1")
	require.ErrorIs(t, err, vfs.ErrLocked, "a second close releases nobody else's lock")
	require.NoError(t, again.Close())
}
