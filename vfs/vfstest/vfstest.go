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
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"
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

func createIsExclusive(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	write(t, fsys, name, "first")
	_, err := fsys.Create(name)
	is(t, err, fs.ErrExist, name)
	is(t, vfs.WriteFile(fsys, name, []byte("x")), fs.ErrExist, name)
	_, err = fsys.Create(dir)
	is(t, err, fs.ErrExist, dir)
	require.Equal(t, "first", read(t, fsys, name))
}

func readBack(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f, err := fsys.Create(name)
	require.NoError(t, err)
	require.Equal(t, name, f.Name())
	for _, part := range []string{"hello ", "", "world"} {
		n, err := io.WriteString(f, part)
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.NoError(t, f.Sync())
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 11, info.Size)
	require.NoError(t, f.Close())
	require.NoError(t, fsys.SyncDir(dir))

	g, err := fsys.Open(name)
	require.NoError(t, err)
	defer g.Close()
	buf := make([]byte, 5)
	_, err = g.ReadAt(buf, 6)
	require.NoError(t, err)
	require.Equal(t, "world", string(buf))
	n, err := g.ReadAt(buf, 9)
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, io.EOF)
	n, err = g.ReadAt(buf, 11)
	require.Zero(t, n)
	require.ErrorIs(t, err, io.EOF)
	_, err = g.ReadAt(buf, -1)
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	all, err := io.ReadAll(g) // ReadAt has not moved the offset
	require.NoError(t, err)
	require.Equal(t, "hello world", string(all))
	n, err = g.Read(buf)
	require.Zero(t, n)
	require.ErrorIs(t, err, io.EOF)
}

func openIsForReading(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	write(t, fsys, name, "kept")
	f, err := fsys.Open(name)
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.Error(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "kept", read(t, fsys, name))
	_, err = fsys.Open(dir)
	is(t, err, fs.ErrInvalid, dir)
}

func link(t *testing.T, fsys vfs.FS, dir string) {
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

func remove(t *testing.T, fsys vfs.FS, dir string) {
	name, sub := filepath.Join(dir, "a"), filepath.Join(dir, "sub")
	write(t, fsys, name, "text")
	f, err := fsys.Open(name)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, fsys.Remove(name))
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

func readDir(t *testing.T, fsys vfs.FS, dir string) {
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

func mkdirAll(t *testing.T, fsys vfs.FS, dir string) {
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

func missing(t *testing.T, fsys vfs.FS, dir string) {
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

func closed(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	is(t, f.Close(), fs.ErrClosed, "a")
	is(t, f.Sync(), fs.ErrClosed, "a")
	_, err = f.Write([]byte("x"))
	is(t, err, fs.ErrClosed, "a")
	_, err = f.Read(make([]byte, 1))
	is(t, err, fs.ErrClosed, "a")
	_, err = f.ReadAt(make([]byte, 1), 0)
	is(t, err, fs.ErrClosed, "a")
	_, err = f.Stat()
	require.Error(t, err)
}

// A reader that stands at the end sees what is written afterwards.
func openFileGrows(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "log")
	w, err := fsys.Create(name)
	require.NoError(t, err)
	defer w.Close()
	r, err := fsys.Open(name)
	require.NoError(t, err)
	defer r.Close()
	for _, part := range []string{"one", "two"} {
		_, err = io.ReadFull(r, make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		_, err = io.WriteString(w, part)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, part, string(got))
	}
}

// Of many that create or link one name, exactly one succeeds.
func oneWinnerOfMany(t *testing.T, fsys vfs.FS, dir string) {
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

func failures(errs []error) (list []error) {
	for _, err := range errs {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

func modTime(t *testing.T, fsys vfs.FS, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, fsys, a, "1")
	write(t, fsys, b, "2")
	ia, err := fsys.Stat(a)
	require.NoError(t, err)
	ib, err := fsys.Stat(b)
	require.NoError(t, err)
	require.False(t, ia.ModTime.IsZero())
	require.Equal(t, "UTC", ia.ModTime.Location().String())
	require.False(t, ib.ModTime.Before(ia.ModTime), "later files are not older")
	require.Equal(t, "1", read(t, fsys, a))
	again, err := fsys.Stat(a)
	require.NoError(t, err)
	require.Equal(t, ia, again, "reading changes nothing")
	require.NoError(t, fsys.Link(a, filepath.Join(dir, "c")))
	ic, err := fsys.Stat(filepath.Join(dir, "c"))
	require.NoError(t, err)
	require.Equal(t, ia.ModTime, ic.ModTime, "a link is the same file")
}

func owner(t *testing.T, fsys vfs.FS, _ string) {
	host, err := fsys.Hostname()
	require.NoError(t, err)
	require.NotEmpty(t, host)
	require.Positive(t, fsys.PID())
	var pe *fs.PathError
	_, err = fsys.Stat("no such name anywhere")
	require.True(t, errors.As(err, &pe), "errors name operation and path")
}
