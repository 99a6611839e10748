package vfs_test

import (
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
	"github.com/statemill/statemill/vfs/vfstest"
)

func newDir(t testing.TB, fsys vfs.FS, root, tag string) *vfs.Dir {
	d, err := vfs.NewDir(fsys, root, tag)
	require.NoError(t, err)
	return d
}

func putString(s vfs.Store, name, text string) error {
	return s.PutIfAbsent(context.Background(), name, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func onDisk(t *testing.T) vfstest.Stores {
	root := t.TempDir() + "/root"
	return vfstest.Stores{A: newDir(t, vfs.Disk(), root, "1"), B: newDir(t, vfs.Disk(), root, "2")}
}

// inMem puts the store into a root that does not exist yet, two folders deep.
func inMem(root string, wrap func(vfs.FS) vfs.FS) vfstest.OpenStores {
	return func(t *testing.T) vfstest.Stores {
		m := vfs.NewMem()
		return vfstest.Stores{
			A:     newDir(t, wrap(m), root, "1"),
			B:     newDir(t, wrap(m), root, "2"),
			Crash: func() vfs.Store { return newDir(t, m.CrashClone(nil, 0), root, "3") },
		}
	}
}

func inObjects(*testing.T) vfstest.Stores {
	o := vfs.NewObjects()
	return vfstest.Stores{A: o, B: o, Crash: func() vfs.Store { return o.Clone() }}
}

func same(fsys vfs.FS) vfs.FS { return fsys }

func TestStores(t *testing.T) {
	t.Run("disk", func(t *testing.T) { vfstest.RunStore(t, onDisk) })
	t.Run("mem", func(t *testing.T) { vfstest.RunStore(t, inMem("/var/root", same)) })
	t.Run("mem relative", func(t *testing.T) { vfstest.RunStore(t, inMem("root", same)) })
	t.Run("mem here", func(t *testing.T) { vfstest.RunStore(t, inMem(".", same)) })
	t.Run("objects", func(t *testing.T) { vfstest.RunStore(t, inObjects) })
	t.Run("hooks", func(t *testing.T) {
		vfstest.RunStore(t, func(*testing.T) vfstest.Stores {
			o := vfs.NewObjects()
			s := vfs.WithStoreLog(vfs.WithStoreFaults(o, &vfs.Faults{}), vfs.NewLog("", vfs.KindAll))
			return vfstest.Stores{A: s, B: s, Crash: func() vfs.Store { return o.Clone() }}
		})
	})
}

func TestDirTags(t *testing.T) {
	for _, tag := range []string{"", "a.b", "a/b", "ä"} {
		_, err := vfs.NewDir(vfs.NewMem(), "r", tag)
		require.ErrorIs(t, err, fs.ErrInvalid, tag)
	}
	newDir(t, vfs.NewMem(), "r", "aZ0-_")
}

// What a dead run left is told with its tag, can be deleted, and is not taken
// for an object.
func TestLeftovers(t *testing.T) {
	m := vfs.NewMem()
	var faults vfs.Faults
	faults.Fail(vfs.Rule{Kinds: vfs.KindLink, Path: "7", Dead: true})
	require.ErrorIs(t, putString(newDir(t, vfs.WithFaults(m, &faults), "r", "t1"), "commits/7", "x"), vfs.ErrInjected)
	next := newDir(t, m, "r", "t2")
	require.NoError(t, putString(next, "commits/6", "y"))
	ctx := context.Background()
	left, err := next.Leftovers(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []vfs.Leftover{{Name: "commits/7.tmp.t1", Target: "commits/7", Tag: "t1"}}, left)
	list, err := next.List(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []vfs.Object{{Name: "commits/6", Size: 1}}, list)
	require.NoError(t, next.Delete(ctx, left[0].Name))
	left, err = next.Leftovers(ctx, "")
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, putString(newDir(t, m, "r", "t1"), "commits/7", "x"))
}

// Two puts of one name in one store use two temporary names.
func TestPutsOfOneNameSideBySide(t *testing.T) {
	d := newDir(t, vfs.NewMem(), "r", "t1")
	err := d.PutIfAbsent(context.Background(), "a", func(w io.Writer) error {
		_, err := io.WriteString(w, "outer")
		require.NoError(t, putString(d, "a", "inner"))
		return err
	})
	require.ErrorIs(t, err, fs.ErrExist)
	b, err := d.Get(context.Background(), "a")
	require.NoError(t, err)
	require.Equal(t, "inner", string(b))
}

// A root in a folder that may not be opened is good, if it was there.
func TestRootInForeignFolder(t *testing.T) {
	m := vfs.NewMem()
	denied := func() vfs.FS {
		var faults vfs.Faults
		faults.Fail(vfs.Rule{Kinds: vfs.KindSyncDir, Path: "home", Forever: true, Err: fs.ErrPermission})
		return vfs.WithFaults(m, &faults)
	}
	require.ErrorIs(t, putString(newDir(t, denied(), "/home/root", "t1"), "a", "x"), fs.ErrPermission)
	require.NoError(t, putString(newDir(t, denied(), "/home/root", "t2"), "a", "x"))
}

// Every call of a put fails once, in every way; another try ends well.
func TestStoreFaultsAtEveryCall(t *testing.T) {
	for name, open := range map[string]func(vfs.Injector) (vfs.Store, vfs.Store){
		"mem": func(in vfs.Injector) (vfs.Store, vfs.Store) {
			m := vfs.NewMem()
			return newDir(t, vfs.WithFaults(m, in), "/r", "t1"), newDir(t, m, "/r", "t2")
		},
		"objects": func(in vfs.Injector) (vfs.Store, vfs.Store) {
			o := vfs.NewObjects()
			return vfs.WithStoreFaults(o, in), o
		},
	} {
		for _, after := range []bool{false, true} {
			hits := 0
			for k := 1; ; k++ {
				var faults vfs.Faults
				faults.Fail(vfs.Rule{K: k, After: after})
				faulty, plain := open(&faults)
				err := putString(faulty, "s/a", "mine")
				if faults.Hits() == 0 {
					break
				}
				hits++
				require.NotErrorIs(t, err, fs.ErrExist, "%s %d: a fault does not mean taken", name, k)
				b, gerr := plain.Get(context.Background(), "s/a")
				if gerr == nil {
					require.Equal(t, "mine", string(b))
				} else {
					require.Error(t, err)
				}
				if err != nil {
					// CE13: a name that is taken may be taken by oneself.
					if err = putString(faulty, "s/a", "mine"); err != nil {
						require.ErrorIs(t, err, fs.ErrExist)
					}
				}
				b, err = faulty.Get(context.Background(), "s/a")
				require.NoError(t, err)
				require.Equal(t, "mine", string(b))
			}
			require.Greater(t, hits, 1, name)
		}
	}
}

// Report 13: a put that breaks after any number of bytes is nowhere.
func TestStoreCutAtEveryByte(t *testing.T) {
	const text = "0123456789"
	for n := range len(text) + 1 {
		o, m := vfs.NewObjects(), vfs.NewMem()
		var faults vfs.Faults
		faults.Cut(n, vfs.Rule{Path: "a"})
		faults.Cut(n, vfs.Rule{Path: "a.tmp.t1", Dead: true})
		for _, s := range []vfs.Store{vfs.WithStoreFaults(o, &faults), newDir(t, vfs.WithFaults(m, &faults), "r", "t1")} {
			err := putString(s, "s/a", text)
			if n == len(text) {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, vfs.ErrInjected)
		}
		if n == len(text) {
			continue
		}
		for _, s := range []vfs.Store{o, newDir(t, m, "r", "t2"), newDir(t, m.CrashClone(rand.New(rand.NewPCG(1, uint64(n))), 50), "r", "t2")} {
			_, err := s.Stat(context.Background(), "s/a")
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		b, err := vfs.ReadFile(m, "r/s/a.tmp.t1")
		require.NoError(t, err)
		require.Equal(t, text[:n], string(b))
	}
}

// Report 13: the process dies at any call of a row of puts and the machine goes
// down: what was answered is there whole, the rest whole or not at all, and the
// next run finishes the row.
func TestDirCrashAtEveryCall(t *testing.T) {
	row := []string{"owner/1", "offsets/1", "state/counts/0/1.1.delta", "state/counts/1/1.1.delta", "commits/1", "offsets/2", "commits/2"}
	ctx := context.Background()
	for k := 1; ; k++ {
		m := vfs.NewMem()
		var faults vfs.Faults
		faults.Fail(vfs.Rule{K: k, Dead: true})
		first := newDir(t, vfs.WithFaults(m, &faults), "/var/root", "t1")
		answered := 0
		for _, name := range row {
			if putString(first, name, "content of "+name) != nil {
				break
			}
			answered++
		}
		for seed := range uint64(4) {
			after := newDir(t, m.CrashClone(rand.New(rand.NewPCG(seed, uint64(k))), 30*int(seed)), "/var/root", "t2")
			for i, name := range row {
				b, err := after.Get(ctx, name)
				if err != nil {
					require.ErrorIs(t, err, fs.ErrNotExist)
					require.GreaterOrEqual(t, i, answered, "call %d: %s was answered and is lost", k, name)
					require.NoError(t, putString(after, name, "content of "+name))
					continue
				}
				require.LessOrEqual(t, i, answered, "%s was never begun", name)
				require.Equal(t, "content of "+name, string(b))
				require.ErrorIs(t, putString(after, name, "other"), fs.ErrExist)
			}
			list, err := after.List(ctx, "")
			require.NoError(t, err)
			require.Len(t, list, len(row))
			left, err := after.Leftovers(ctx, "")
			require.NoError(t, err)
			for _, l := range left {
				require.Equal(t, "t1", l.Tag)
				require.NoError(t, after.Delete(ctx, l.Name))
			}
		}
		if faults.Hits() == 0 {
			require.Greater(t, k, 7*len(row))
			break
		}
	}
}
