package vfstest

import (
	"io"
	"io/fs"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// What an open file does.

func readBack(t TB, fsys vfs.FS, dir string) {
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

func openIsForReading(t TB, fsys vfs.FS, dir string) {
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

func closed(t TB, fsys vfs.FS, dir string) {
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
func openFileGrows(t TB, fsys vfs.FS, dir string) {
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

func modTime(t TB, fsys vfs.FS, dir string) {
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
