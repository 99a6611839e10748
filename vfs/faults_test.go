package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
	"github.com/statemill/statemill/vfs/vfstest"
)

func TestHooksChangeNothing(t *testing.T) {
	wrap := func(fsys vfs.FS) vfs.FS {
		return vfs.WithLog(vfs.WithFaults(fsys, &vfs.Faults{}), vfs.NewLog("/w", vfs.KindAll))
	}
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewMem()
		require.NoError(t, m.MkdirAll("/w"))
		return wrap(m), "/w"
	})
	vfstest.RunCrash(t, crasher(wrap))
}

func create(fsys vfs.FS, name, text string) error {
	return vfs.CreateExclusive(fsys, "w", name, name+".tmp", func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func newW(t *testing.T) *vfs.Mem {
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("w"))
	require.NoError(t, m.SyncDir("."))
	return m
}

// A process that dies at call k, and a machine that crashes there: the name
// stands for all or nothing, and the next run can go on.
func TestCreateExclusiveDiesAtEveryCall(t *testing.T) {
	for k := 1; ; k++ {
		m := newW(t)
		var faults vfs.Faults
		faults.Fail(vfs.Rule{K: k, Dead: true})
		err := create(vfs.WithFaults(m, &faults), "7", "whole")
		if faults.Hits() == 0 {
			require.Equal(t, 8, k, "seven calls")
			require.NoError(t, err)
			break
		}
		if err == nil {
			require.Equal(t, 7, k, "only the removal of the temporary name may fail unseen")
		}
		for seed := range uint64(5) {
			for _, after := range []vfs.FS{m, m.CrashClone(rand.New(rand.NewPCG(seed, 0)), 50)} {
				b, gerr := vfs.ReadFile(after, "w/7")
				if gerr == nil {
					require.Equal(t, "whole", string(b))
				} else {
					require.Error(t, err, "success was told and the file is lost")
				}
			}
		}
		if err = create(m, "7", "whole"); err != nil {
			require.ErrorIs(t, err, fs.ErrExist)
		}
		b, err := vfs.ReadFile(m.CrashClone(nil, 0), "w/7")
		require.NoError(t, err)
		require.Equal(t, "whole", string(b))
	}
}

func TestNoLinks(t *testing.T) {
	for _, cause := range []error{fs.ErrPermission, errors.ErrUnsupported} {
		m := newW(t)
		var faults vfs.Faults
		faults.Fail(vfs.Rule{Kinds: vfs.KindLink, Err: cause})
		err := create(vfs.WithFaults(m, &faults), "7", "x")
		require.ErrorIs(t, err, vfs.ErrNoLinks)
		require.ErrorIs(t, err, cause)
		require.Empty(t, names(t, m, "w"))
	}
	var faults vfs.Faults
	faults.Fail(vfs.Rule{Kinds: vfs.KindCreate, Err: fs.ErrExist, Forever: true})
	faults.Fail(vfs.Rule{Kinds: vfs.KindRemove, Err: fs.ErrExist})
	err := create(vfs.WithFaults(newW(t), &faults), "7", "x")
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrExist, "only the name itself can be taken")
}

func TestRules(t *testing.T) {
	errA, errB := errors.New("a"), errors.New("b")
	m := newW(t)
	var f vfs.Faults
	fsys := vfs.WithFaults(m, &f)
	stat := func(name string) error { _, err := fsys.Stat(name); return err }
	require.NoError(t, vfs.WriteFile(m, "w/1", []byte("text")))

	f.Fail(vfs.Rule{Kinds: vfs.KindStat | vfs.KindOpen, Path: "w/*", K: 2, Err: errA})
	require.NoError(t, stat("w"), "another path")
	require.NoError(t, fsys.SyncDir("w"), "another kind")
	require.NoError(t, stat("w/1"))
	_, err := fsys.Open("w/1")
	require.ErrorIs(t, err, errA)
	require.NoError(t, stat("w/1"))

	f.Clear()
	f.Fail(vfs.Rule{Path: "2", Forever: true})
	require.ErrorIs(t, fsys.Link("w/1", "w/2"), vfs.ErrInjected, "either name of a link")
	require.ErrorIs(t, stat("w/2"), vfs.ErrInjected)
	f.Clear()
	require.ErrorIs(t, stat("w/2"), fs.ErrNotExist)

	f.Fail(vfs.Rule{Kinds: vfs.KindLink, After: true, Err: errB})
	require.ErrorIs(t, fsys.Link("w/1", "w/2"), errB, "the answer is lost")
	require.NoError(t, stat("w/2"))

	f.Fail(vfs.Rule{Kinds: vfs.KindRemove, Dead: true})
	require.ErrorIs(t, fsys.Remove("w/2"), vfs.ErrInjected)
	require.ErrorIs(t, stat("w/1"), vfs.ErrInjected, "dead")
	f.Clear()
	require.NoError(t, stat("w/2"))
	require.Equal(t, 5, f.Hits(), "each failed call counts, but those of the dead")
	require.Equal(t, 13, f.Calls())

	f.Fail(vfs.Rule{Path: "["})
	require.NoError(t, stat("w/1"), "a bad pattern matches nothing")
	f.Fail(vfs.Rule{Path: "a/b/c/d"})
	require.NoError(t, stat("w/1"))
}

func TestLostAnswersCloseWhatWasOpened(t *testing.T) {
	m := newW(t)
	var f vfs.Faults
	fsys := vfs.WithFaults(m, &f)
	f.Fail(vfs.Rule{Kinds: vfs.KindCreate, After: true})
	_, err := fsys.Create("w/1")
	require.ErrorIs(t, err, vfs.ErrInjected)
	require.Equal(t, []string{"1"}, names(t, m, "w"))

	f.Fail(vfs.Rule{Kinds: vfs.KindLock, After: true})
	_, err = fsys.Lock("w/lock", "me")
	require.ErrorIs(t, err, vfs.ErrInjected)
	held, err := fsys.Lock("w/lock", "me")
	require.NoError(t, err)
	f.Fail(vfs.Rule{Kinds: vfs.KindUnlock})
	require.ErrorIs(t, held.Close(), vfs.ErrInjected)
	held, err = fsys.Lock("w/lock", "me")
	require.NoError(t, err, "a dead holder holds nothing")
	require.NoError(t, held.Close())

	file, err := fsys.Open("w/1")
	require.NoError(t, err)
	f.Fail(vfs.Rule{Kinds: vfs.KindClose})
	require.ErrorIs(t, file.Close(), vfs.ErrInjected)
	require.ErrorIs(t, file.Close(), fs.ErrClosed)
}

// A cut counts bytes over writes, and lets the file have what got through.
func TestCut(t *testing.T) {
	m := newW(t)
	var f vfs.Faults
	f.Cut(5, vfs.Rule{Path: "w/a"})
	file, err := vfs.WithFaults(m, &f).Create("w/a")
	require.NoError(t, err)
	for _, want := range []int{3, 2, 0} {
		n, err := file.Write([]byte("xyz"))
		require.Equal(t, want, n)
		if want < 3 {
			require.ErrorIs(t, err, vfs.ErrInjected)
		}
	}
	i, err := file.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 5, i.Size)
	require.NoError(t, vfs.WriteFile(vfs.WithFaults(m, &f), "w/b", []byte("0123456789")), "another file")
}

// Report 14: a writer frozen before each call, while another takes the
// name, changes nothing when it thaws.
func TestZombieAtEveryCall(t *testing.T) {
	for k := 1; k <= 7; k++ {
		synctest.Test(t, func(t *testing.T) {
			m := newW(t)
			var f vfs.Faults
			frozen := f.Freeze(vfs.Rule{K: k})
			var old error
			done := make(chan struct{})
			go func() {
				defer close(done)
				old = create(vfs.WithFaults(m, &f), "7", "zombie")
			}()
			<-frozen.Reached()
			synctest.Wait()
			err := vfs.CreateExclusive(m, "w", "7", "7.tmp2", func(w io.Writer) error {
				_, err := io.WriteString(w, "newer")
				return err
			})
			frozen.Thaw()
			frozen.Thaw()
			<-done
			want := "newer"
			if err != nil {
				require.ErrorIs(t, err, fs.ErrExist)
				require.NoError(t, old)
				want = "zombie"
			} else {
				require.ErrorIs(t, old, fs.ErrExist)
			}
			require.Equal(t, k > 5, want == "zombie", "the link decides")
			b, err := vfs.ReadFile(m.CrashClone(nil, 0), "w/7")
			require.NoError(t, err)
			require.Equal(t, want, string(b))
		})
	}
}

// All goroutines of a frozen writer stand still, and Thaw may come first.
func TestFreezeStopsAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newW(t)
		var f vfs.Faults
		fsys := vfs.WithFaults(m, &f)
		z := f.Freeze(vfs.Rule{Kinds: vfs.KindMkdirAll})
		var made atomic.Int32
		for _, call := range []func() error{
			func() error { return fsys.MkdirAll("w/a") },
			func() error { _, err := fsys.Stat("w"); return err },
		} {
			go func() {
				<-z.Reached()
				if call() == nil {
					made.Add(1)
				}
			}()
		}
		go func() { _ = fsys.MkdirAll("w/b") }()
		synctest.Wait()
		require.Zero(t, made.Load())
		require.Empty(t, names(t, m, "w"))
		z.Thaw()
		synctest.Wait()
		require.EqualValues(t, 2, made.Load())
		require.Equal(t, []string{"a", "b"}, names(t, m, "w"))

		f.Freeze(vfs.Rule{Kinds: vfs.KindStat}).Thaw()
		_, err := fsys.Stat("w")
		require.NoError(t, err)
	})
}

// A sink that fails together with the files of its writer; two writers by name.
func TestInjectAndAs(t *testing.T) {
	var f vfs.Faults
	f.Fail(vfs.Rule{Kinds: vfs.KindOther, Path: "begin", Dead: true})
	m := newW(t)
	calls := 0
	sink := func(name string) error {
		return vfs.Inject(&f, vfs.Call{Kind: vfs.KindOther, Path: name}, func() error { calls++; return nil })
	}
	require.NoError(t, sink("fence"))
	require.ErrorIs(t, sink("begin"), vfs.ErrInjected)
	require.Equal(t, 1, calls)
	require.ErrorIs(t, vfs.WithFaults(m, &f).SyncDir("w"), vfs.ErrInjected)

	b := vfs.As(m, "b", 7)
	host, err := b.Hostname()
	require.NoError(t, err)
	require.Equal(t, "b", host)
	require.Equal(t, 7, b.PID())
	require.NoError(t, create(b, "7", "x"))
	require.Equal(t, []string{"7"}, names(t, m, "w"))
}

// A name that is taken but cannot be made sure is not told as taken: the caller
// would build on a file that a crash may take away.
func TestTakenAndNotSynced(t *testing.T) {
	m := newW(t)
	require.NoError(t, create(m, "7", "x"))
	var f vfs.Faults
	f.Fail(vfs.Rule{Kinds: vfs.KindSyncDir, Err: fs.ErrExist})
	err := create(vfs.WithFaults(m, &f), "7", "y")
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrExist)
	require.Equal(t, 1, f.Hits())
	require.ErrorIs(t, create(vfs.WithFaults(m, &f), "7", "y"), fs.ErrExist)
}

// Report 14 on an object store: a put that was frozen on its way replaces
// nothing.
func TestZombiePut(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.KindPut, vfs.KindWrite} {
		synctest.Test(t, func(t *testing.T) {
			o := vfs.NewObjects()
			var f vfs.Faults
			frozen := f.Freeze(vfs.Rule{Kinds: kind, Path: "commits/*"})
			old := make(chan error)
			go func() { old <- putString(vfs.WithStoreFaults(o, &f), "commits/7", "zombie") }()
			<-frozen.Reached()
			require.NoError(t, putString(o, "commits/7", "newer"))
			require.NoError(t, putString(o, "commits/8", "newer"))
			frozen.Thaw()
			require.ErrorIs(t, <-old, fs.ErrExist)
			b, err := o.Get(t.Context(), "commits/7")
			require.NoError(t, err)
			require.Equal(t, "newer", string(b))
		})
	}
}
