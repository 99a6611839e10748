package dstream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// onStore makes a kit whose job uses a store of its own, as another process would.
func onStore(t *testing.T, store vfs.Store, opts ...dstream.ContextOption) (*milltest.Kit, *milltest.In[string]) {
	t.Helper()
	kit := milltest.New(t, time.Second, counts(counter().NumPartitions(2)), append(opts, dstream.WithCheckpointStore(store))...)
	return kit, milltest.Input[string](kit, "words")
}

// Report 14: on a disk the second run is refused, by name; it changes nothing.
func TestReport14SecondRunIsRefused(t *testing.T) {
	disk := vfs.NewMem()
	store := func(tag string) vfs.Store {
		s, err := vfs.NewDir(disk, "checkpoint", tag)
		require.NoError(t, err)
		return s
	}
	a, in := onStore(t, store("a"))
	in.Batch("a").Batch("a")
	a.Tick(1)
	before := files(t, disk)
	b, _ := onStore(t, store("b"))
	err := b.Start()
	require.ErrorIs(t, err, checkpoint.ErrOwned)
	var owned *checkpoint.OwnedError
	require.True(t, errors.As(err, &owned))
	require.NotEmpty(t, owned.Host)
	require.NotZero(t, owned.PID)
	require.Equal(t, before, files(t, disk))
	a.Tick(1)
	require.Equal(t, map[string]int{"a": 2}, stateNow(a))

	// By force, and the first run ends before its next commit.
	c, in2 := onStore(t, store("c"), dstream.WithTakeover(dstream.TakeoverForce))
	in2.Batch("a").Batch("a").Batch("a")
	c.StartAt(a.Now())
	c.Tick(1)
	require.Equal(t, map[string]int{"a": 3}, stateNow(c))
	in.Batch("a")
	a.Tick(1)
	require.ErrorIs(t, a.Err(), checkpoint.ErrNotOwner)
}

// Report 14, CE7: of two runs on an object store the newer one goes on; the frozen
// one wakes up, finds out, and has changed nothing.
func TestReport14ZombieOnAnObjectStore(t *testing.T) {
	objects := vfs.NewObjects()
	var f vfs.Faults
	a, inA := onStore(t, vfs.WithStoreFaults(objects, &f))
	inA.Batch("a", "b").Batch("a").Batch("a")
	a.Tick(1)
	z := f.Freeze(vfs.Rule{Path: "commits/2", Kinds: vfs.KindPut})
	a.Advance(1)
	<-z.Reached()

	b, inB := onStore(t, objects)
	inB.Batch("a", "b").Batch("a").Batch("a")
	b.StartAt(a.Now())
	b.Tick(2)
	require.NoError(t, b.Err())
	want, err := objects.Get(t.Context(), "commits/2")
	require.NoError(t, err)
	z.Thaw()
	a.Await()
	require.ErrorIs(t, a.Err(), checkpoint.ErrNotOwner)
	got, err := objects.Get(t.Context(), "commits/2")
	require.NoError(t, err)
	require.Equal(t, want, got)
	b.Tick(1)
	require.NoError(t, b.Err())
	require.Equal(t, map[string]int{"a": 3, "b": 1}, stateNow(b))
}

// D7: a run that finds in mid-run that an older one has planned the epoch after
// all begins anew, in place, and redoes what the older one has planned.
func TestOlderPlanInMidRun(t *testing.T) {
	objects := vfs.NewObjects()
	var f vfs.Faults
	a, inA := onStore(t, vfs.WithStoreFaults(objects, &f))
	inA.Batch("a", "b").Batch("a", "c")
	a.Tick(1)
	z := f.Freeze(vfs.Rule{Path: "offsets/2", Kinds: vfs.KindPut})
	a.Advance(1)
	<-z.Reached()

	var mu sync.Mutex
	var redone []uint64
	b, inB := onStore(t, objects, dstream.WithListener(dstream.Listener{BatchRedone: func(b dstream.Batch) {
		mu.Lock()
		defer mu.Unlock()
		redone = append(redone, b.Epoch)
	}}))
	inB.Batch("a", "b").Batch("a", "c").Batch("a")
	b.StartAt(a.Now())
	require.NoError(t, b.Start())
	z.Thaw()
	a.Await()
	require.ErrorIs(t, a.Err(), checkpoint.ErrNotOwner)
	b.Tick(2)
	require.NoError(t, b.Err())
	require.Equal(t, map[string]int{"a": 3, "b": 1, "c": 1}, stateNow(b))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []uint64{2}, redone)
	p := b.Progress()
	require.True(t, p[0].Redo)
	require.Equal(t, uint64(3), p[0].Checkpoint.Term, "the run has taken the next term")
}

// Report 37: a stop finishes and commits the running batch; the next run repeats
// nothing. Too late, the batch is dropped whole and redone under its number.
func TestReport37Stops(t *testing.T) {
	kit, in := durableKit(t, counts(counter().NumPartitions(2)))
	in.Batch("a").Batch("a").Batch("a")
	kit.Tick(1)
	gate := kit.BlockOutput("out")
	kit.Advance(1)
	gate.Entered()
	stopped := make(chan error)
	go func() { stopped <- kit.Context().Stop(context.Background()) }()
	gate.Release()
	require.NoError(t, <-stopped)
	require.Equal(t, uint64(2), kit.Epoch())
	require.Equal(t, map[string]int{"a": 2}, stateNow(kit))
	kit.Restart()

	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 3}, stateNow(kit))
	require.False(t, kit.Progress()[2].Redo)
	in.Batch("a")
	gate = kit.BlockOutput("out")
	kit.Advance(1)
	gate.Entered()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	err := kit.Context().Stop(gone)
	var late *dstream.StopTimeoutError
	require.True(t, errors.As(err, &late))
	require.False(t, late.Committed)
	require.Error(t, kit.Err())
	require.Equal(t, map[string]int{"a": 3}, stateNow2(t, kit))
	gate.Release()
	kit.Restart()
	require.NoError(t, kit.Start())
	kit.Await()
	require.Equal(t, map[string]int{"a": 4}, stateNow(kit))
	last := kit.Progress()[len(kit.Progress())-1]
	require.True(t, last.Redo)
	require.Equal(t, uint64(4), last.Batch.Epoch)
}

// stateNow2 is stateNow of a run whose error was looked at.
func stateNow2(t *testing.T, kit *milltest.Kit) map[string]int {
	t.Helper()
	require.Error(t, kit.Err())
	return stateNow(kit)
}

// An abort that comes while the commit is being written cannot unsay it: the error
// says what became of it, as far as can be known.
func TestAbortDuringCommit(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds vfs.Kind
		after bool // the commit is there already
	}{{"before", vfs.KindLink, false}, {"after", vfs.KindRemove, true}} {
		t.Run(c.name, func(t *testing.T) {
			var f vfs.Faults
			kit, in := durableKit(t, counts(counter().NumPartitions(2)))
			kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
			in.Batch("a").Batch("a")
			kit.Tick(1)
			var once sync.Once
			f.Do(vfs.Rule{Path: "commits/*", Kinds: c.kinds, Forever: true}, func(vfs.Call) {
				once.Do(func() {
					gone, cancel := context.WithCancel(context.Background())
					cancel()
					go func() { _ = kit.Context().Stop(gone) }()
					for kit.Context().ReadyErr() == nil && !dstream.Aborted(kit.Context()) {
					}
				})
			})
			kit.Advance(1)
			kit.Await()
			err := kit.Err()
			var late *dstream.StopTimeoutError
			require.True(t, errors.As(err, &late), "%v", err)
			require.False(t, late.Committing, "by the end of the run it is known")
			newest, rerr := checkpoint.OpenRoot(kit.CheckpointStore("reader")).Newest(t.Context())
			require.NoError(t, rerr)
			require.Equal(t, newest.Epoch == 2, late.Committed)
			if c.after {
				require.True(t, late.Committed)
			}
			require.Equal(t, kit.Epoch(), newest.Epoch)
			kit.Restart()
			kit.Tick(1)
			require.Equal(t, map[string]int{"a": 2}, stateNow(kit))
		})
	}
}

// Report 19: while state is loaded the context is not ready, and says how far it is.
func TestReport19LoadingIsSeen(t *testing.T) {
	var mu sync.Mutex
	var last map[int]dstream.StateLoading
	var notReady error
	var kit *milltest.Kit
	listener := dstream.WithListener(dstream.Listener{StateLoading: func(p dstream.StateLoading) {
		mu.Lock()
		defer mu.Unlock()
		last[p.Partition] = p
		if notReady == nil {
			notReady = kit.Context().ReadyErr()
		}
	}})
	kit, in := durableKit(t, counts(counter().NumPartitions(3)), listener)
	for range 5 {
		in.Batch("a", "b", "c", "d", "e")
	}
	kit.Tick(5)
	require.NoError(t, kit.Context().ReadyErr())
	require.True(t, kit.Context().Ready())
	kit.Restart()
	last = map[int]dstream.StateLoading{}
	kit.Tick(1)
	mu.Lock()
	defer mu.Unlock()
	require.ErrorIs(t, notReady, dstream.ErrNotReady)
	require.ErrorContains(t, notReady, `"counts"`)
	keys := int64(0)
	for part := range 3 {
		p := last[part]
		require.True(t, p.Done)
		require.Equal(t, p.FilesTotal, p.Files)
		require.Equal(t, p.BytesTotal, p.Bytes)
		keys += p.Keys
	}
	require.Equal(t, int64(5), keys)
	require.NoError(t, kit.Stop())
	require.ErrorIs(t, kit.Context().ReadyErr(), dstream.ErrNotReady)
}
