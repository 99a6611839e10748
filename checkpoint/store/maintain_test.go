package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// beside runs maintenance beside the test, in a bubble, and ends it.
func (w *world) beside() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.maint.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(w.t, <-done)
	}
}

// A policy of batch times has a snapshot of exactly those versions, of every
// partition, though it is written later.
func TestAtCheckpointInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		w := begin(t, vfs.NewObjects(), 3, 1, withPolicy(store.AtCheckpointInterval(0, 4*time.Second)))
		w.upload = func(context.Context, int, uint64) error { <-gate; return nil }
		defer w.beside()()
		w.run(6) // a batch a second
		synctest.Wait()
		require.NotContains(t, w.names(2), "4.1.snapshot")
		require.Equal(t, 3, w.pins)
		close(gate)
		synctest.Wait()
		w.run(9)
		synctest.Wait()
		for p := range 3 {
			require.Contains(t, w.names(p), "4.1.snapshot")
			require.Contains(t, w.names(p), "8.1.snapshot")
			require.NotContains(t, w.names(p), "5.1.snapshot")
		}
		require.Zero(t, w.pins)
		require.EqualValues(t, 6, w.maint.Stats().Snapshots)
		w.checkKept(w.maint.Stats().Oldest)
	})
}

// One that was not begun in a whole interval gives way to the next, and what
// stays pinned at the end is released.
func TestLateTimedSnapshotsAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, vfs.NewObjects(), 2, 1, withPolicy(store.AtCheckpointInterval(0, 2*time.Second)))
		w.upload = func(ctx context.Context, _ int, _ uint64) error { <-ctx.Done(); return ctx.Err() }
		stop := w.beside()
		for range 9 {
			w.run(w.newest() + 1)
			synctest.Wait()
			require.LessOrEqual(t, w.pins, 3, "one that is written, one that waits for each")
		}
		stop()
		synctest.Wait()
		require.Zero(t, w.pins)
		require.Zero(t, w.maint.Stats().Snapshots)
	})
}

// One that fails is made up for by a newer version.
func TestFailedTimedSnapshot(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1, withPolicy(store.AtCheckpointInterval(0, 10*time.Second)))
	fails := 1
	w.upload = func(context.Context, int, uint64) error {
		if fails--; fails >= 0 {
			return errors.New("no space")
		}
		return nil
	}
	w.run(10)
	w.round()
	w.run(12)
	w.clock.Advance(time.Second)
	w.round()
	require.Contains(t, w.names(0), "12.1.snapshot")
	w.run(15)
	w.round()
	require.EqualValues(t, 1, w.maint.Stats().Snapshots)

	// Nor is it lost if the version cannot be pinned.
	w = begin(t, vfs.NewObjects(), 1, 1, withPolicy(store.AtCheckpointInterval(0, 10*time.Second)), withConfig(func(c *store.MaintainerConfig) {
		pin := c.Units[0].Pin
		fails := 1
		c.Units[0].Pin = func(part int) (store.Pinned, error) {
			if fails--; fails >= 0 {
				return store.Pinned{}, errors.New("released")
			}
			return pin(part)
		}
	}))
	w.run(10)
	require.EqualError(t, w.maint.Stats().Err, "released")
	w.round()
	require.Contains(t, w.names(0), "10.1.snapshot")
	require.NoError(t, w.maint.Stats().Err)
}

// A commit that is given up while it waits leaves the snapshots that were not
// begun to others.
func TestForcedAndGivenUp(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 3, 1, withPolicy(store.EveryVersions(2)))
	ctx, cancel := context.WithCancel(context.Background())
	w.upload = func(ctx context.Context, part int, _ uint64) error {
		cancel()
		return ctx.Err()
	}
	for range 4 {
		w.epoch(change{"a": set(1)}, change{"a": set(1)}, change{"a": set(1)})
	}
	require.ErrorIs(t, w.maint.BeforeCommit(ctx), context.Canceled)
	w.upload = nil
	w.clock.Advance(time.Minute)
	w.round()
	for p := range 3 {
		require.Contains(t, w.names(p), "4.1.snapshot")
	}
	require.Zero(t, w.pins)
}

// A failed snapshot is tried again after a wait that grows; the batch never
// hears of it.
func TestFailedSnapshotIsTriedAgain(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 2, 1, withPolicy(store.EveryVersions(5)))
	fails := 3
	tries := 0
	w.upload = func(_ context.Context, part int, _ uint64) error {
		if part == 0 {
			tries++
			if fails--; fails >= 0 {
				return errors.New("no space")
			}
		}
		return nil
	}
	w.run(5)
	w.round()
	require.Equal(t, 1, tries)
	require.Contains(t, w.names(1), "5.1.snapshot", "the other one is not held up")
	require.EqualError(t, w.maint.Stats().Err, "no space")
	w.round()
	require.Equal(t, 1, tries, "not before its time")
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		w.clock.Advance(wait - 1)
		w.round()
		require.Equal(t, i+1, tries)
		w.clock.Advance(1)
		w.round()
		require.Equal(t, i+2, tries)
	}
	require.NoError(t, w.maint.Stats().Err)
	require.EqualValues(t, 3, w.maint.Stats().Failed)
	require.Contains(t, w.names(0), "5.1.snapshot")
	require.Equal(t, store.NoticeSnapshotFailed, w.notices[0].Kind)
	require.Contains(t, w.notices[0].String(), "no space")
}

// Run wakes up by itself for a retry.
func TestRunRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, vfs.NewObjects(), 1, 1, withPolicy(store.EveryVersions(2)))
		fails := 1
		w.upload = func(context.Context, int, uint64) error {
			if fails--; fails >= 0 {
				return errors.New("no space")
			}
			return nil
		}
		defer w.beside()()
		w.run(2)
		synctest.Wait()
		require.Equal(t, []string{"1.1.delta", "2.1.delta"}, w.names(0))
		w.clock.Advance(time.Second)
		synctest.Wait()
		require.Contains(t, w.names(0), "2.1.snapshot")
	})
}

// Report 16: without a maintainer's goroutine, and when snapshots fail, the
// next commit writes what is forced, and goes on if that fails.
func TestForced(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 2, 1, withPolicy(store.EveryVersions(3)))
	fail := false
	w.upload = func(context.Context, int, uint64) error {
		if fail {
			return errors.New("no space")
		}
		return nil
	}
	all := func() {
		w.epoch(change{"a": set(int64(w.newest()))}, change{"b": set(int64(w.newest()))})
		require.LessOrEqual(t, w.maint.Stats().ChainMax, uint64(6))
	}
	for range 30 {
		all()
	}
	s := w.maint.Stats()
	require.Positive(t, s.Forced)
	require.Equal(t, s.Snapshots, s.Forced)
	require.Contains(t, w.names(0), "24.1.snapshot")
	fail = true
	for range 10 {
		w.epoch(change{"a": set(int64(w.newest()))}, change{"b": set(int64(w.newest()))})
	}
	require.EqualValues(t, 2, w.maint.Stats().Failed, "one try each until its time has come")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, w.maint.BeforeCommit(ctx), context.Canceled)
	require.Zero(t, w.pins)
}

// BySize: due when the deltas are longer than the snapshot, however few they
// are.
func TestBySize(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 2, 1, withPolicy(store.BySize(3000)))
	for n := range 12 {
		big := change{}
		for i := range 60 {
			big[fmt.Sprintf("a key of some length %d", i)] = set(int64(n*1000 + i))
		}
		w.epoch(big, change{"small": set(int64(n))})
		w.round()
	}
	require.Contains(t, w.names(0), "2.1.snapshot")
	for _, name := range w.names(1) {
		require.NotContains(t, name, "snapshot")
	}
	require.Less(t, int(w.maint.Stats().Snapshots), 12, "not at every version")
	w.checkKept(1)
}

// F never rises above what windows or replay need.
func TestFloorOfTheEngine(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 2, 1, withPolicy(store.EveryVersions(4)))
	w.limit = 9
	for w.newest() < 40 {
		w.run(w.newest() + 1)
		w.round()
	}
	require.EqualValues(t, 8, w.commit.Floor)
	w.checkKept(9)
	require.EqualValues(t, 8, w.maint.Floor(9))
	w.limit = 3 // lower than what is kept: it does not fall
	w.run(41)
	require.EqualValues(t, 8, w.commit.Floor)
	w.limit = math.MaxUint64
	for w.newest() < 44 {
		w.run(w.newest() + 1)
		w.round()
	}
	require.EqualValues(t, 36, w.commit.Floor, "the older of the two that are kept")
	require.True(t, gone(t, w.store, "commits/35"))
	require.True(t, gone(t, w.store, delta(0, 35)))
	require.False(t, gone(t, w.store, "commits/36"))
	w.checkKept(w.maint.Stats().Oldest)
}

// What an earlier run left behind: files below F, deltas of attempts that lost,
// temporary files, another layout. And what is not touched: snapshots, and
// whatever belongs to an epoch without a commit.
func TestSweep(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := dir(t, mem, 1)
	w := begin(t, s, 1, 1, withPolicy(store.EveryVersions(3)))
	for w.newest() < 13 {
		w.epoch(change{"always": set(int64(w.newest()))})
		w.round()
	}
	floor := w.commit.Floor
	require.Positive(t, floor)
	copyOf := read(t, s, delta(0, 13))
	junk := []string{
		delta(0, floor-1), snapshot(0, floor-1, 1), "state/9/r2/5/1.1.delta", // below F
		fmt.Sprintf("offsets/%d", floor-1), fmt.Sprintf("commits/%d", floor-1),
		"state/1/0/12.7.delta", "state/1/0/13.2.delta", // not named
	}
	kept := []string{
		delta(0, 14), "state/1/0/14.7.delta", "state/1/0/15.1.delta", // may be adopted
		"state/1/0/13.7.snapshot", fmt.Sprintf("state/9/5/%d.1.delta", floor), "offsets/14", "metadata/7", "owner/1",
	}
	for _, name := range append(append([]string{}, junk...), kept...) {
		replace(t, s, name, copyOf)
	}
	temps := []string{"state/1/0/13.7.delta.tmp.run7", fmt.Sprintf("state/1/0/%d.1.snapshot.tmp.run7", floor-1), fmt.Sprintf("commits/%d.tmp.run7", floor-1)}
	own := []string{"state/1/0/13.2.snapshot.tmp.run2", "state/1/0/14.7.delta.tmp.run7", "state/1/0/13.7.snapshot.tmp.run7", "commits/14.tmp.run7"}
	for _, name := range append(append([]string{}, temps...), own...) {
		require.NoError(t, vfs.WriteFile(mem, "/ckpt/"+name, []byte("half")))
	}

	again := begin(t, dir(t, mem, 2), 1, 2, withPolicy(store.EveryVersions(3)))
	again.want = w.want
	again.round()
	for _, name := range junk {
		require.True(t, gone(t, s, name), name)
	}
	for _, name := range kept {
		require.False(t, gone(t, s, name), name)
	}
	for _, name := range temps {
		_, err := mem.Stat("/ckpt/" + name)
		require.Error(t, err, name)
	}
	for _, name := range own {
		_, err := mem.Stat("/ckpt/" + name)
		require.NoError(t, err, name)
	}
	again.checkKept(w.maint.Stats().Oldest)
	require.NoError(t, s.Delete(ctx, "state/1/0/14.7.delta"))
	// When F has passed them, the strange files go too.
	for again.newest() < 30 {
		again.epoch(change{"always": set(int64(again.newest()))})
		again.round()
	}
	require.True(t, gone(t, s, fmt.Sprintf("state/9/5/%d.1.delta", floor)))
	require.True(t, gone(t, s, "state/1/0/13.7.snapshot"))
}

// Deleting that fails, and the listing at the start, are tried again and hold
// nothing else up.
func TestFailuresOfCleanUp(t *testing.T) {
	mem := vfs.NewObjects()
	var f vfs.Faults
	w := begin(t, vfs.WithStoreFaults(mem, &f), 1, 1, withPolicy(store.EveryVersions(2)))
	f.Fail(vfs.Rule{Kinds: vfs.KindDelete, K: 2})
	for w.newest() < 9 {
		w.epoch(change{"always": set(int64(w.newest()))})
		w.round()
	}
	require.Equal(t, 1, f.Hits())
	require.EqualValues(t, 1, w.maint.Stats().DeleteFailed)
	for n := uint64(1); n < w.commit.Floor; n++ {
		require.True(t, gone(t, mem, delta(0, n)))
		require.True(t, gone(t, mem, checkpoint.CommitName(n)))
	}
	kinds := map[store.NoticeKind]bool{}
	for _, n := range w.notices {
		kinds[n.Kind] = true
		require.NotEmpty(t, n.String())
	}
	require.True(t, kinds[store.NoticeDeleteFailed])
	require.True(t, kinds[store.NoticeSnapshot])

	f.Clear()
	again := begin(t, vfs.WithStoreFaults(mem, &f), 1, 2)
	f.Fail(vfs.Rule{Kinds: vfs.KindList, K: 1})
	again.round()
	require.ErrorIs(t, again.maint.Stats().Err, vfs.ErrInjected)
	require.Equal(t, store.NoticeSweepFailed, again.notices[0].Kind)
	require.Equal(t, 2, f.Hits())
	again.round()
	require.NoError(t, again.maint.Stats().Err)
}

// The process dies at the k-th call of commits, snapshots and clean-up, for
// every k, and what was not synced is lost: the next run finds the last version
// or the one before, whole, and all that was promised.
func TestCrashAtEveryCall(t *testing.T) {
	script := func(w *world) error {
		for w.newest() < 9 {
			if err := w.tryEpoch(counts(w.newest()+1, w.parts)...); err != nil {
				return err
			}
			if err := w.maint.Round(context.Background()); err != nil {
				return err
			}
		}
		return nil
	}
	policy := withPolicy(store.EveryVersions(2))
	var clean vfs.Faults
	w := begin(t, dir(t, vfs.WithFaults(vfs.NewMem(), &clean), 1), 2, 1, policy)
	require.NoError(t, script(w))
	calls := clean.Calls()
	require.Greater(t, calls, 200)
	step := 1
	if testing.Short() {
		step = 7
	}
	for k := 1; k <= calls; k += step {
		for _, after := range []bool{false, true} {
			mem := vfs.NewMem()
			var f vfs.Faults
			f.Fail(vfs.Rule{K: k, Dead: true, After: after})
			w, err := tryBegin(t, dir(t, vfs.WithFaults(mem, &f), 1), 2, 1, policy)
			if err != nil {
				continue // the kit's own first document
			}
			_ = script(w)
			require.Positive(t, f.Hits(), "call %d", k)
			kept, was := w.maint.Stats().Oldest, w.newest()

			after := mem.CrashClone(rand.New(rand.NewPCG(uint64(k), 5)), 50)
			again := begin(t, dir(t, after, 2), 2, 2, policy)
			require.GreaterOrEqual(t, again.newest(), was, "call %d: a committed epoch is gone", k)
			require.LessOrEqual(t, again.newest(), was+1)
			again.want = w.want
			again.checkKept(kept)
			again.round()
			for again.newest() < 12 {
				again.run(again.newest() + 1)
				again.round()
			}
			again.checkKept(max(kept, again.maint.Stats().Oldest))
		}
	}
}

func TestMaintainerConfigs(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	ok := store.MaintainerConfig{Store: w.store, Root: w.root, Clock: w.clock}
	for _, bad := range []func(c *store.MaintainerConfig){
		func(c *store.MaintainerConfig) { c.Clock = nil },
		func(c *store.MaintainerConfig) { c.Retain = -1 },
		func(c *store.MaintainerConfig) { c.Policy = store.Policy{Bytes: -1} },
		func(c *store.MaintainerConfig) { c.Units = []store.Unit{{Number: 1}} },
		func(c *store.MaintainerConfig) {
			c.Units = []store.Unit{{Number: 1, Pin: w.pin, Policy: store.Policy{Bytes: -1}}}
		},
		func(c *store.MaintainerConfig) {
			c.Units = []store.Unit{{Number: 1, Pin: w.pin}, {Number: 1, Pin: w.pin}}
		},
	} {
		c := ok
		bad(&c)
		_, err := store.NewMaintainer(c, nil, nil)
		require.Error(t, err)
	}
	m, err := store.NewMaintainer(ok, nil, nil)
	require.NoError(t, err)
	require.NoError(t, m.Round(context.Background()))
	require.Zero(t, m.Floor(math.MaxUint64))
}

func TestPolicies(t *testing.T) {
	p := store.EveryVersions(10).With(store.EveryVersions(5)).With(store.BySize(9)).With(store.BySize(7))
	require.Equal(t, store.Policy{Versions: 5, Bytes: 7}, p)
	require.True(t, store.Policy{}.IsZero())
	require.False(t, p.IsZero())
	at := store.AtCheckpointInterval(3, 10).With(store.AtCheckpointInterval(0, 7)).At
	var due []int64
	for i := int64(-9); i <= 30; i++ {
		if at(i-1, i) {
			due = append(due, i)
		}
	}
	require.Equal(t, []int64{-7, 0, 3, 7, 13, 14, 21, 23, 28}, due)
	require.False(t, at(14, 20))
	require.True(t, at(14, 21))
}

func TestNoticesSayWhat(t *testing.T) {
	for _, kind := range []store.NoticeKind{
		store.NoticeSnapshot, store.NoticeSnapshotForced, store.NoticeSnapshotRepaired, store.NoticeSnapshotFailed,
		store.NoticeSnapshotBad,
	} {
		n := store.Notice{Kind: kind, Partition: store.Partition{Operator: 3, Partition: 4}, Version: 5, Name: "name", Err: errors.New("why")}
		require.Contains(t, n.String(), "operator 3 partition 4 version 5")
	}
	for _, kind := range []store.NoticeKind{store.NoticeDeleteFailed, store.NoticeSweepFailed} {
		require.Contains(t, store.Notice{Kind: kind, Name: "name", Err: errors.New("why")}.String(), "why")
	}
}
