package vfs_test

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
	"github.com/statemill/statemill/vfs/vfstest"
)

func crasher(wrap func(vfs.FS) vfs.FS) vfstest.OpenCrasher {
	return func(t *testing.T) vfstest.Crasher {
		m := vfs.NewMem()
		require.NoError(t, m.MkdirAll("/w"))
		require.NoError(t, m.SyncDir("/"))
		return vfstest.Crasher{
			FS: wrap(m), Dir: "/w",
			Crash: func(rng *rand.Rand, percent int) vfs.FS { return wrap(m.CrashClone(rng, percent)) },
		}
	}
}

func TestMemCrash(t *testing.T) { vfstest.RunCrash(t, crasher(same)) }

// What was not synced is lost: the name, the bytes, the removal, the folder.
func TestCrashLosesWhatWasNotSynced(t *testing.T) {
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("/w"))
	require.NoError(t, m.SyncDir("/"))
	require.NoError(t, vfs.WriteFile(m, "/w/kept", []byte("kept")))
	require.NoError(t, vfs.WriteFile(m, "/w/removed", []byte("removed")))
	f, err := m.Create("/w/half")
	require.NoError(t, err)
	_, err = f.Write([]byte("synced"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	_, err = f.Write([]byte(" and not"))
	require.NoError(t, err)
	require.NoError(t, m.SyncDir("/w"))
	require.NoError(t, m.Remove("/w/removed"))
	require.NoError(t, vfs.WriteFile(m, "/w/new", []byte("new")))
	require.NoError(t, m.MkdirAll("/w/dir"))
	require.NoError(t, vfs.WriteFile(m, "/w/dir/a", []byte("a")))
	require.NoError(t, m.SyncDir("/w/dir"))

	after := m.CrashClone(nil, 0)
	require.Equal(t, []string{"half", "kept", "removed"}, names(t, after, "/w"))
	b, err := vfs.ReadFile(after, "/w/half")
	require.NoError(t, err)
	require.Equal(t, "synced", string(b))
	require.Equal(t, names(t, after, "/w"), names(t, after.CrashClone(nil, 0), "/w"), "what is there is durable")

	whole := m.CrashClone(nil, 100)
	require.Equal(t, []string{"dir", "half", "kept", "new"}, names(t, whole, "/w"))
	b, err = vfs.ReadFile(whole, "/w/half")
	require.NoError(t, err)
	require.Equal(t, "synced and not", string(b))

	// The original and its open files go on.
	require.Equal(t, []string{"dir", "half", "kept", "new"}, names(t, m, "/w"))
	_, err = f.Write([]byte("!"))
	require.NoError(t, err)
	b, err = vfs.ReadFile(whole, "/w/half")
	require.NoError(t, err)
	require.Equal(t, "synced and not", string(b))
}

func names(t *testing.T, fsys vfs.FS, dir string) (list []string) {
	infos, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	for _, i := range infos {
		list = append(list, i.Name)
	}
	return list
}

// Between all and nothing every outcome comes up: cut at some byte, length
// without bytes, a name without its file's bytes, one link of two; and one seed
// gives one outcome.
func TestCrashKeepsParts(t *testing.T) {
	m := vfs.NewMem()
	require.NoError(t, vfs.WriteFile(m, "a", nil))
	require.NoError(t, m.SyncDir("."))
	f, err := m.Create("b")
	require.NoError(t, err)
	_, err = f.Write([]byte(strings.Repeat("x", 100)))
	require.NoError(t, err)
	require.NoError(t, m.Link("b", "c"))
	require.NoError(t, m.Remove("a"))
	require.NoError(t, vfs.WriteFile(m, "a", []byte("again")))
	seen := map[string]bool{}
	for seed := range uint64(300) {
		after := m.CrashClone(rand.New(rand.NewPCG(seed, 1)), 50)
		again := m.CrashClone(rand.New(rand.NewPCG(seed, 1)), 50)
		require.Equal(t, names(t, after, "."), names(t, again, "."))
		got := strings.Join(names(t, after, "."), "")
		seen["names "+got] = true
		if strings.Contains(got, "bc") {
			b, err := vfs.ReadFile(after, "b")
			require.NoError(t, err)
			c, err := vfs.ReadFile(after, "c")
			require.NoError(t, err)
			require.Equal(t, b, c, "one file under two names")
			b2, err := vfs.ReadFile(again, "b")
			require.NoError(t, err)
			require.Equal(t, b, b2)
			switch x := strings.Trim(string(b), "\x00"); {
			case len(b) == 0:
				seen["empty"] = true
			case len(b) == 100 && len(x) == 100:
				seen["all"] = true
			case len(b) == 100:
				seen["zeros"] = true
			default:
				seen["cut"] = true
			}
		}
		if i, err := after.Stat("a"); err == nil {
			seen["a "+string(rune('0'+i.Size))] = true
		}
	}
	for _, want := range []string{"names ", "names a", "names ab", "names abc", "names ac", "names b", "names c", "names bc", "empty", "zeros", "cut", "a 0", "a 5"} {
		require.True(t, seen[want], "%q never came up: %v", want, seen)
	}
}

// A folder that was removed and made again does not get its old files back.
func TestCrashOfFolderMadeAgain(t *testing.T) {
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("d"))
	require.NoError(t, vfs.WriteFile(m, "d/old", nil))
	require.NoError(t, m.SyncDir("d"))
	require.NoError(t, m.SyncDir("."))
	require.NoError(t, m.Remove("d/old"))
	require.NoError(t, m.Remove("d"))
	require.Equal(t, []string{"old"}, names(t, m.CrashClone(nil, 0), "d"))
	require.NoError(t, m.MkdirAll("d"))
	require.NoError(t, m.SyncDir("."))
	require.Empty(t, names(t, m.CrashClone(nil, 0), "d"))
}

func TestMemPathsThroughFiles(t *testing.T) {
	m := vfs.NewMem()
	require.NoError(t, vfs.WriteFile(m, "f", nil))
	for _, err := range []error{
		m.Link("f", "f/x"), m.Link("f/x", "y"), m.Remove("f/x"), m.Remove("."), m.MkdirAll("f/x"), m.SyncDir("f"),
	} {
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	_, err := m.Lock("f/x", "")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = m.Lock(".", "")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = m.Create("")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The process that held a lock is gone after a crash.
func TestLocksEndWithACrash(t *testing.T) {
	m := vfs.NewMem()
	held, err := m.Lock("lock", "first")
	require.NoError(t, err)
	again, err := m.CrashClone(nil, 0).Lock("lock", "second")
	require.NoError(t, err)
	require.NoError(t, held.Close())
	require.NoError(t, again.Close())
	require.EqualError(t, &vfs.LockedError{Path: "lock"}, "lock lock: locked by another holder")
}
