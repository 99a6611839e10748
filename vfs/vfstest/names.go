package vfstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// How names come and go.

func createIsExclusive(t TB, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	write(t, fsys, name, "first")
	_, err := fsys.Create(name)
	is(t, err, fs.ErrExist, name)
	is(t, vfs.WriteFile(fsys, name, []byte("x")), fs.ErrExist, name)
	_, err = fsys.Create(dir)
	is(t, err, fs.ErrExist, dir)
	require.Equal(t, "first", read(t, fsys, name))
}

func link(t TB, fsys vfs.FS, dir string) {
	a, b, taken := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "taken")
	write(t, fsys, a, "text")
	write(t, fsys, taken, "mine")
	require.NoError(t, fsys.Link(a, b))
	require.Equal(t, "text", read(t, fsys, b))
	is(t, fsys.Link(a, taken), fs.ErrExist, taken)
	is(t, fsys.Link(a, b), fs.ErrExist, b)
	is(t, fsys.Link(a, dir), fs.ErrExist, dir)
	require.Equal(t, "mine", read(t, fsys, taken))
	is(t, fsys.Link(filepath.Join(dir, "no"), filepath.Join(dir, "c")), fs.ErrNotExist, "no")
	is(t, fsys.Link(a, filepath.Join(dir, "no", "c")), fs.ErrNotExist, "no")
	require.Error(t, fsys.Link(dir, filepath.Join(dir, "d")))
	require.NoError(t, fsys.Remove(a)) // the temporary name goes, the file stays
	require.Equal(t, "text", read(t, fsys, b))
}

func remove(t TB, fsys vfs.FS, dir string) {
	name, sub := filepath.Join(dir, "a"), filepath.Join(dir, "sub")
	write(t, fsys, name, "text")
	write(t, fsys, name+"b", "another")
	f, err := fsys.Open(name)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, fsys.Remove(name))
	require.Equal(t, "another", read(t, fsys, name+"b"), "of one name alone")
	is(t, fsys.Remove(name), fs.ErrNotExist, name)
	_, err = fsys.Stat(name)
	is(t, err, fs.ErrNotExist, name)
	all, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "text", string(all), "an open file outlives its name")
	write(t, fsys, name, "again")

	require.NoError(t, fsys.MkdirAll(sub))
	write(t, fsys, filepath.Join(sub, "x"), "")
	require.Error(t, fsys.Remove(sub))
	require.NoError(t, fsys.Remove(filepath.Join(sub, "x")))
	require.NoError(t, fsys.Remove(sub))
}

func readDir(t TB, fsys vfs.FS, dir string) {
	list, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list)
	for _, name := range []string{"b", "a", "c10", "c9", ".hidden"} {
		write(t, fsys, filepath.Join(dir, name), name)
	}
	require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "sub", "deep")))
	list, err = fsys.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
		stat, err := fsys.Stat(filepath.Join(dir, i.Name))
		require.NoError(t, err)
		require.Equal(t, stat, i)
		require.Equal(t, i.Name == "sub", i.Dir)
		if i.Dir {
			require.Zero(t, i.Size)
		} else {
			require.EqualValues(t, len(i.Name), i.Size)
		}
	}
	require.Equal(t, []string{".hidden", "a", "b", "c10", "c9", "sub"}, names, "sorted, not recursive")
	_, err = fsys.ReadDir(filepath.Join(dir, "a"))
	require.Error(t, err)
}

// manyNames is more than a page of the services and systems that list in pages.
const manyNames = 1003

func readDirMany(t TB, fsys vfs.FS, dir string) {
	want := make([]string, manyNames)
	for i := range want {
		want[i] = fmt.Sprintf("%04d", i)
		f, err := fsys.Create(filepath.Join(dir, want[i]))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	names := func() (names []string) {
		list, err := fsys.ReadDir(dir)
		require.NoError(t, err)
		for _, i := range list {
			names = append(names, i.Name)
		}
		return names
	}
	require.Equal(t, want, names())
	require.NoError(t, fsys.Remove(filepath.Join(dir, want[manyNames-1])))
	require.Equal(t, want[:manyNames-1], names())
}

func mkdirAll(t TB, fsys vfs.FS, dir string) {
	deep := filepath.Join(dir, "x", "y", "z")
	require.NoError(t, fsys.MkdirAll(deep))
	require.NoError(t, fsys.MkdirAll(deep))
	require.NoError(t, fsys.SyncDir(filepath.Join(dir, "x")))
	write(t, fsys, filepath.Join(deep, "f"), "1")
	require.Error(t, fsys.MkdirAll(filepath.Join(deep, "f")))
	require.Error(t, fsys.MkdirAll(filepath.Join(deep, "f", "g")))
	_, err := fsys.Create(filepath.Join(deep, "f", "g"))
	require.Error(t, err)
}

func missing(t TB, fsys vfs.FS, dir string) {
	no := filepath.Join(dir, "no")
	_, err := fsys.Open(no)
	is(t, err, fs.ErrNotExist, no)
	_, err = fsys.ReadDir(no)
	is(t, err, fs.ErrNotExist, no)
	_, err = fsys.Stat(no)
	is(t, err, fs.ErrNotExist, no)
	_, err = fsys.Create(filepath.Join(no, "a"))
	is(t, err, fs.ErrNotExist, no)
	is(t, fsys.SyncDir(no), fs.ErrNotExist, no)
	is(t, fsys.Remove(no), fs.ErrNotExist, no)
}

// Of many that create or link one name, exactly one succeeds.
func oneWinnerOfMany(t TB, fsys vfs.FS, dir string) {
	const many = 8
	created, linked := make([]error, many), make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		tmp := filepath.Join(dir, "tmp"+strconv.Itoa(i))
		write(t, fsys, tmp, strconv.Itoa(i))
		wg.Go(func() {
			created[i] = vfs.WriteFile(fsys, filepath.Join(dir, "created"), nil)
			linked[i] = fsys.Link(tmp, filepath.Join(dir, "linked"))
		})
	}
	wg.Wait()
	winners := 0
	for i := range many {
		if linked[i] == nil {
			require.Equal(t, strconv.Itoa(i), read(t, fsys, filepath.Join(dir, "linked")))
			winners++
		} else {
			require.ErrorIs(t, linked[i], fs.ErrExist)
		}
	}
	require.Equal(t, 1, winners)
	require.Len(t, failures(created), many-1)
	for _, err := range failures(created) {
		require.ErrorIs(t, err, fs.ErrExist)
	}
}

func owner(t TB, fsys vfs.FS, _ string) {
	host, err := fsys.Hostname()
	require.NoError(t, err)
	require.NotEmpty(t, host)
	require.Positive(t, fsys.PID())
	var pe *fs.PathError
	_, err = fsys.Stat("no such name anywhere")
	require.True(t, errors.As(err, &pe), "errors name operation and path")
}
