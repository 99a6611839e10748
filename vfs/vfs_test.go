package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
	"github.com/statemill/statemill/vfs/vfstest"
)

func TestDisk(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.Disk(), t.TempDir() })
}

func TestMem(t *testing.T) {
	for _, dir := range []string{"/w", "rel/dir", "."} {
		t.Run(dir, func(t *testing.T) {
			vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
				m := vfs.NewMem()
				require.NoError(t, m.MkdirAll(dir))
				return m, dir
			})
		})
	}
	require.NoError(t, vfs.NewMem().MkdirAll("/"))
	list, err := vfs.NewMem().ReadDir("/")
	require.NoError(t, err)
	require.Empty(t, list)
}

// Tests of watched directories decide what time files bear.
func TestMemTimes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("x", 3600))
	m := vfs.NewMem(vfs.WithNow(func() time.Time { return now }), vfs.WithOwner("h", 42))
	require.NoError(t, vfs.WriteFile(m, "a", []byte("x")))
	info, err := m.Stat("a")
	require.NoError(t, err)
	require.Equal(t, vfs.Info{Name: "a", Size: 1, ModTime: now.UTC()}, info)
	now = now.Add(time.Hour)
	require.NoError(t, vfs.WriteFile(m, "b", nil))
	require.NoError(t, m.SetModTime("a", now.Add(time.Hour)))
	list, err := m.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Hour).UTC(), list[0].ModTime)
	require.Equal(t, now.UTC(), list[1].ModTime)
	require.ErrorIs(t, m.SetModTime("no", now), fs.ErrNotExist)
	host, err := m.Hostname()
	require.NoError(t, err)
	require.Equal(t, "h", host)
	require.Equal(t, 42, m.PID())
}

// Without a clock every run gives the same times, and later changes later ones.
func TestMemTimesByDefault(t *testing.T) {
	stamps := func() (list []time.Time) {
		m := vfs.NewMem()
		for _, name := range []string{"c", "a", "b"} {
			require.NoError(t, vfs.WriteFile(m, name, []byte(name)))
			i, err := m.Stat(name)
			require.NoError(t, err)
			list = append(list, i.ModTime)
		}
		return list
	}
	one := stamps()
	require.Equal(t, one, stamps())
	require.True(t, one[0].Before(one[1]) && one[1].Before(one[2]))
}

// Writing to the handle of Create goes on where its reads stopped, as on disk.
func TestCreateHandleReadsAndWrites(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{filepath.Join(t.TempDir(), "f"): vfs.Disk(), "f": vfs.NewMem()} {
		f, err := fsys.Create(name)
		require.NoError(t, err)
		_, err = f.Write([]byte("abc"))
		require.NoError(t, err)
		b := make([]byte, 3)
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		require.Equal(t, "abc", string(b))
		require.NoError(t, f.Close())
	}
}

func TestDiskListsWhatLinksPointTo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, vfs.WriteFile(vfs.Disk(), filepath.Join(dir, "a"), []byte("12345")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "s")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "dangling")))
	list, err := vfs.Disk().ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "s", list[1].Name)
	require.EqualValues(t, 5, list[1].Size)
}

// failing breaks one call of a file.
type failing struct {
	vfs.FS
	call string
}

var errDisk = errors.New("disk full")

func (f failing) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return failingFile{file, f.call}, err
}

func (f failing) Open(name string) (vfs.File, error) {
	file, err := f.FS.Open(name)
	return failingFile{file, f.call}, err
}

type failingFile struct {
	vfs.File
	call string
}

func (f failingFile) on(call string, n int) (int, error) {
	if f.call == call {
		return 0, errDisk
	}
	return n, nil
}

func (f failingFile) Write(p []byte) (int, error) { return f.on("write", len(p)) }
func (f failingFile) Read([]byte) (int, error)    { return f.on("read", 0) }

func (f failingFile) Sync() error {
	_, err := f.on("sync", 0)
	return err
}

func (f failingFile) Close() error {
	_, err := f.on("close", 0)
	return errors.Join(f.File.Close(), err)
}

func TestHelpersReportEveryFault(t *testing.T) {
	for _, call := range []string{"write", "sync", "close"} {
		err := vfs.WriteFile(failing{vfs.NewMem(), call}, "a", []byte("x"))
		require.ErrorIs(t, err, errDisk, call)
	}
	m := vfs.NewMem()
	require.NoError(t, vfs.WriteFile(m, "a", []byte("x")))
	_, err := vfs.ReadFile(failing{m, "read"}, "a")
	require.ErrorIs(t, err, errDisk)
	require.ErrorContains(t, err, "read a")
}
