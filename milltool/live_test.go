package milltool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// liveRoot is a job that goes on committing, taking snapshots and deleting old versions. In version n every key has state n.
type liveRoot struct {
	*maker
	counts *opOf[string, int64]
	snaps  []uint64
	low    uint64
}

func newLiveRoot(t *testing.T, store vfs.Store) *liveRoot {
	l := &liveRoot{maker: newMaker(t, store), low: 1}
	l.start()
	l.counts = addOp[string, int64](l.maker, "counts", 2, false)
	l.metadata()
	for range 11 {
		l.next()
	}
	return l
}

// next is one epoch: its commit, a snapshot now and then, and the clean-up that follows from it.
func (l *liveRoot) next() {
	for k := range 20 {
		l.counts.put(fmt.Sprint("k", k), int64(l.epoch+1))
	}
	if len(l.snaps) > 1 {
		l.floor = l.snaps[len(l.snaps)-2]
	}
	l.commit(checkpoint.KindBatch)
	if l.epoch%5 == 0 {
		for part := range 2 {
			l.counts.snapshot(l.maker, part)
		}
		l.snaps = append(l.snaps, l.epoch)
	}
	ctx := context.Background()
	list, err := l.store.List(ctx, "state/")
	require.NoError(l.t, err)
	for _, o := range list {
		if n, ok := checkpoint.ParseStateName(o.Name); ok && n.Version < l.floor {
			require.NoError(l.t, l.store.Delete(ctx, o.Name))
		}
	}
	for ; l.low < l.floor; l.low++ {
		require.NoError(l.t, l.store.Delete(ctx, checkpoint.CommitName(l.low)))
		require.NoError(l.t, l.store.Delete(ctx, checkpoint.PlanName(l.low)))
	}
}

// TestLiveRoot: all reading commands on a root whose job goes on: they write nothing, take no lock, and print one version
// whole. // report 15
func TestLiveRoot(t *testing.T) {
	mem := vfs.NewMem()
	job, err := vfs.NewDir(mem, "ckpt", "job")
	require.NoError(t, err)
	l := newLiveRoot(t, job)
	lock, err := job.Lock(context.Background(), checkpoint.LockName, "host mill pid 41 run run-1 since 2023-11-14T22:13:19.5Z")
	require.NoError(t, err)
	defer lock.Close()

	log := vfs.NewLog("", vfs.KindWrites&^vfs.KindClose) // what was read is closed too
	env := Env{FS: vfs.WithLog(mem, log)}
	// At most so many epochs pass during a command that the five tries are enough.
	budget := make(chan struct{}, 20)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range budget {
			l.next()
		}
	})
	for i := range 60 {
		for range 15 {
			budget <- struct{}{}
		}
		out, errs, code := runEnv(t, env, "dump", "-json", "ckpt", "counts")
		require.Equal(t, ExitOK, code, errs)
		require.Equal(t, 20, strings.Count(out, "\n"))
		var first dumpRow
		for line := range strings.Lines(out) {
			var r dumpRow
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			if first.State == nil {
				first = r
			}
			require.Equal(t, first.State, r.State, "keys of two versions in one dump: %s", out)
		}
		out, errs, code = runEnv(t, env, "get", "-json", "ckpt", "counts", "k7")
		require.Equal(t, ExitOK, code, errs)
		var got getResult
		require.NoError(t, json.Unmarshal([]byte(out), &got))
		require.Equal(t, fmt.Sprint(got.Version), string(got.State))
		for _, args := range [][]string{{"verify", "ckpt"}, {"versions", "ckpt"}, {"inspect", "ckpt"}, {"history", "ckpt", "counts", "k3"}} {
			if i%4 == 0 {
				out, errs, code = runEnv(t, env, args...)
				require.Equal(t, ExitOK, code, "%v: %s%s", args, out, errs)
			}
		}
	}
	close(budget)
	wg.Wait()
	require.Zero(t, log.Count(vfs.KindWrites), "%s", log)
	require.Greater(t, l.floor, uint64(100))

	// What writes is kept out by the lock.
	_, errs, code := runEnv(t, Env{FS: mem}, "rescale", "ckpt", "counts=3")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, errs, "owned by another run: run run-1, process 41 on mill")
}

// TestForkOfALiveRoot: the fork is whole, whatever the job deletes meanwhile.
func TestForkOfALiveRoot(t *testing.T) {
	mem := vfs.NewMem()
	job, err := vfs.NewDir(mem, "ckpt", "job")
	require.NoError(t, err)
	l := newLiveRoot(t, job)
	var faults vfs.Faults
	calls := 0
	// An epoch passes at every fifth state file that is read.
	faults.Do(vfs.Rule{Kinds: vfs.KindOpen, Path: "*/*.delta", Forever: true}, func(vfs.Call) {
		if calls++; calls%5 == 0 {
			l.next()
		}
	})
	out, errs, code := runEnv(t, Env{FS: vfs.WithFaults(mem, &faults)}, "fork", "ckpt", "new")
	require.Greater(t, calls, 20)
	require.Equal(t, ExitOK, code, errs)
	require.NotEmpty(t, out)
	must(t, Env{FS: mem}, "verify new")
}

// TestForkBeginsAgain: twelve epochs and their clean-ups that pass at any file of the copying make it begin again from the
// newest version; the source is whole, and so nothing is said of damage. // report 15
func TestForkBeginsAgain(t *testing.T) {
	again := false
	for _, path := range []string{"*.snapshot", "*.delta", "commits/*", "offsets/*", "metadata/*", "owner/*", "1/0", "1/1", "state"} {
		for k := 1; k <= 5; k++ {
			mem := vfs.NewMem()
			job, err := vfs.NewDir(mem, "ckpt", "job")
			require.NoError(t, err)
			l := newLiveRoot(t, job)
			before := l.epoch
			var faults vfs.Faults
			seen := 0
			faults.Do(vfs.Rule{Kinds: vfs.KindOpen | vfs.KindStat | vfs.KindReadDir, Path: path, Forever: true}, func(c vfs.Call) {
				if !strings.HasPrefix(c.Path, "ckpt") {
					return
				}
				if seen++; seen == k {
					for range 12 {
						l.next()
					}
				}
			})
			env := Env{FS: vfs.WithFaults(mem, &faults)}
			out, errs, code := runEnv(t, env, "fork", "-json", "ckpt", "new")
			require.Equal(t, ExitOK, code, "%s, %d: %s%s", path, k, out, errs)
			require.Empty(t, errs)
			again = again || lines[forkResult](t, out)[0].Version > before
			require.Contains(t, must(t, Env{FS: mem}, "verify new"), "no damage")
		}
	}
	require.True(t, again)
}

// TestForkOfATooBusyRoot: a job that deletes what it has at every file that is read is said to do so, and the new folder
// can be used; a version that was asked for is no longer kept.
func TestForkOfATooBusyRoot(t *testing.T) {
	mem := vfs.NewMem()
	job, err := vfs.NewDir(mem, "ckpt", "job")
	require.NoError(t, err)
	l := newLiveRoot(t, job)
	var faults vfs.Faults
	faults.Do(vfs.Rule{Kinds: vfs.KindOpen, Path: "*.delta", Forever: true}, func(vfs.Call) {
		for range 12 {
			l.next()
		}
	})
	env := Env{FS: vfs.WithFaults(mem, &faults)}
	out, errs, code := runEnv(t, env, "fork", "ckpt", "new")
	require.Equal(t, ExitFailure, code, out)
	require.Contains(t, errs, "the job of ckpt deletes versions faster than they can be copied: 6 tries")
	require.NotContains(t, errs, "damage")
	require.NotContains(t, errs, "a file that a commit names is gone")
	out, errs, code = runEnv(t, env, "fork", "ckpt", "new", "-version", fmt.Sprint(l.epoch))
	require.Equal(t, ExitFailure, code, out)
	require.Contains(t, errs, "is not kept in ckpt: it keeps")
	must(t, Env{FS: mem}, "fork ckpt new") // the folder can be used
	must(t, Env{FS: mem}, "verify new")
}

// TestForkClears: what a try has written already goes before the next one, and the commits last.
func TestForkClears(t *testing.T) {
	mem := vfs.NewMem()
	store, err := vfs.NewDir(mem, "new", "tool")
	require.NoError(t, err)
	log := vfs.NewLog("", vfs.KindDelete)
	s := &staging{to: vfs.WithStoreLog(store, log)}
	ctx := context.Background()
	lock, err := store.Lock(ctx, checkpoint.LockName, "me")
	require.NoError(t, err)
	put := func(name string, size int64) {
		require.NoError(t, s.put(ctx, name, size, func(w io.Writer) error { _, err := io.WriteString(w, name); return err }))
	}
	put("commits/1", 9)
	list, err := store.List(ctx, "commits/")
	require.NoError(t, err)
	require.Empty(t, list, "held back")
	put("state/1/0/1.1.delta", stagingMost)
	for _, name := range []string{"offsets/1", "owner/1", "metadata/1"} {
		put(name, 9)
	}
	list, err = store.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, list, 6)
	require.NoError(t, s.clear(ctx))
	list, err = store.List(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []vfs.Object{{Name: checkpoint.LockName, Size: list[0].Size}}, list)
	require.Equal(t, "delete metadata/1\ndelete state/1/0/1.1.delta\ndelete owner/1\ndelete offsets/1\ndelete commits/1\n", log.String())
	require.NoError(t, lock.Close())
}

// TestCleanUpInMidRead: a clean-up that passes between the listing of a snapshot and its reading, and one between any two
// files, makes the reading start again, and is no damage.
func TestCleanUpInMidRead(t *testing.T) {
	for _, path := range []string{"*.snapshot", "*.delta", "commits/*", "metadata/*", "1/0", "1/1"} {
		mem := vfs.NewMem()
		job, err := vfs.NewDir(mem, "ckpt", "job")
		require.NoError(t, err)
		l := newLiveRoot(t, job)
		for k := 1; k <= 3; k++ {
			for _, args := range [][]string{{"history", "ckpt", "counts", "k7"}, {"get", "-json", "ckpt", "counts", "k7"}, {"dump", "ckpt", "counts"}, {"verify", "ckpt"}, {"versions", "ckpt"}, {"inspect", "ckpt"}} {
				var faults vfs.Faults
				faults.Do(vfs.Rule{Kinds: vfs.KindOpen | vfs.KindStat | vfs.KindReadDir, Path: path, K: k}, func(vfs.Call) {
					for range 12 {
						l.next()
					}
				})
				out, errs, code := runEnv(t, Env{FS: vfs.WithFaults(mem, &faults)}, args...)
				require.Equal(t, ExitOK, code, "%s, %v: %s%s", path, args, out, errs)
				require.NotContains(t, errs, "is bad")
			}
		}
	}
}

// TestVanishedSnapshotIsNoBadOne: a reader that has the commits already, and to which a clean-up takes the snapshot away just
// as it is to be read, starts again and is told of no damage.
func TestVanishedSnapshotIsNoBadOne(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	job, err := vfs.NewDir(mem, "ckpt", "job")
	require.NoError(t, err)
	l := newLiveRoot(t, job)
	var faults vfs.Faults
	root := checkpoint.OpenRoot(vfs.WithStoreFaults(job, &faults))
	newest, err := root.Newest(ctx)
	require.NoError(t, err)
	for n := newest.Floor; n <= newest.Epoch; n++ {
		_, err = root.Commit(ctx, n)
		require.NoError(t, err)
	}
	faults.Do(vfs.Rule{Kinds: vfs.KindStat, Path: "*.snapshot"}, func(vfs.Call) {
		for range 12 {
			l.next()
		}
	})
	rows := 0
	err = root.Read(ctx, func(newest *checkpoint.Commit) error {
		rows = 0
		return checkpoint.ReadRows(ctx, root, 1, 0, newest.Epoch, func(n checkpoint.Notice) { t.Error(n.Text) }, func(checkpoint.Row) error {
			rows++
			return nil
		})
	})
	require.NoError(t, err)
	require.Positive(t, rows)
	require.Equal(t, uint64(23), l.epoch)
}
