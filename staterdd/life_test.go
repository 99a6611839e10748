package staterdd

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// R2: a version is sealed when all its partitions have succeeded, and built upon only then.
func TestSealNeedsAllPartitions(t *testing.T) {
	f := start(t, countSpec().NumPartitions(4), Options{}, 0)
	next, stage, err := f.op.Advance(f.cur, nil, Batch{Epoch: 1, Time: at(1)})
	require.NoError(t, err)
	require.ErrorIs(t, next.Seal(), ErrIncomplete)
	for i := range 3 {
		require.NoError(t, stage.RunTask(&rdd.Task{Ctx: t.Context(), Partition: i}))
	}
	require.ErrorIs(t, next.Seal(), ErrIncomplete)
	_, _, err = f.op.Advance(next, nil, Batch{Time: at(2)})
	require.ErrorIs(t, err, ErrNotSealed)
	_, _, err = f.op.Advance(f.cur, nil, Batch{Time: at(2)})
	require.ErrorIs(t, err, ErrOverlap, "one version at a time")
	require.NoError(t, stage.RunTask(&rdd.Task{Ctx: t.Context(), Partition: 3}))
	_, err = rdd.Collect(t.Context(), next.Snapshots())
	require.ErrorIs(t, err, ErrNotSealed, "R8: only sealed versions are read")
	require.NoError(t, next.Seal())
	require.ErrorIs(t, next.Seal(), ErrSealed)
}

// R3: a sealed version is never computed again, and its outputs are kept: reading them twice
// calls no function.
func TestSealedIsFinal(t *testing.T) {
	var calls atomic.Int64
	spec := Function(func(k string, v rdd.Option[int], s *State[int]) int {
		calls.Add(1)
		s.Update(s.OrElse(0) + 1)
		return s.Get()
	}).NumPartitions(2)
	f := start(t, spec, Options{}, 0)
	f.batch(1, kv("a", 1), kv("b", 1), kv("a", 1))
	require.EqualValues(t, 3, calls.Load())
	first := mappedOf(t, f.cur)
	require.Equal(t, first, mappedOf(t, f.cur))
	snapshotOf(t, f.cur)
	require.EqualValues(t, 3, calls.Load())
	require.Error(t, f.cur.Stage().RunTask(&rdd.Task{Ctx: t.Context()}))
	require.Equal(t, map[string]int{"a": 2, "b": 1}, snapshotOf(t, f.cur))
}

// A task begins by discarding what an earlier attempt wrote: attempts that succeed or fail at any
// record leave the result as if there had been one.
func TestTasksRestart(t *testing.T) {
	failAt := -1
	n := 0
	spec := Function(func(k string, v rdd.Option[int], s *State[int]) int {
		if n == failAt {
			panic("attempt fails")
		}
		n++
		if s.IsTimingOut() {
			return -s.Get()
		}
		s.Update(s.OrElse(0) + v.OrElse(0))
		return s.Get()
	}).NumPartitions(1).Timeout(5)
	f := start(t, spec, Options{BlockSize: 2}, 0)
	f.batch(1, kv("a", 1), kv("old", 1))
	next, stage, err := f.op.Advance(f.cur, f.shuffle([]rdd.Pair[string, int]{kv("a", 1), kv("b", 2), kv("c", 3), kv("b", 4)}), Batch{Epoch: 2, Time: at(7)})
	require.NoError(t, err)
	require.NoError(t, rdd.Materialize(t.Context(), f.exec, stage.Deps()...))
	require.NoError(t, rdd.Materialize(t.Context(), execFunc(func(s *rdd.Stage) error {
		for failAt = 0; failAt < 7; failAt++ {
			n = 0
			err := s.RunTask(&rdd.Task{Ctx: t.Context()})
			require.Equal(t, failAt < 5, err != nil, "5 calls in all")
		}
		return nil
	}), stage))
	require.NoError(t, next.Seal())
	require.Equal(t, []int{2, 2, 3, 6, -1}, mappedOf(t, next))
	require.Equal(t, map[string]st[int]{"a": {2, 7}, "b": {6, 7}, "c": {3, 7}}, timesOf(t, next))
	require.Equal(t, map[string]st[int]{"a": {1, 1}, "old": {1, 1}}, timesOf(t, f.cur))
}

// execFunc runs a stage as a test wants it.
type execFunc func(s *rdd.Stage) error

func (f execFunc) RunStage(_ context.Context, s *rdd.Stage) error { return f(s) }

func (f execFunc) RunTasks(context.Context, string, int, func(*rdd.Task) error) error {
	panic("no action is expected")
}

// R4: an epoch given up takes every partition back, those that had succeeded too, and also a
// version that was sealed already; what is built again is the same, timeouts included.
func TestAbortTakesAllBack(t *testing.T) {
	for _, seal := range []bool{false, true} {
		f := start(t, countSpec().NumPartitions(4).Timeout(5), Options{}, 0)
		f.batch(1, kv("a", 1), kv("b", 1), kv("c", 1))
		before := timesOf(t, f.cur)
		data := []rdd.Pair[string, int]{kv("a", 1), kv("d", 1), kv("e", 1)}
		var outs [][]rdd.Pair[string, int]
		for range 3 {
			next, err := f.next(7, data...)
			require.NoError(t, err)
			require.NoError(t, next.Seal())
			outs = append(outs, mappedOf(t, next))
			require.NoError(t, next.Abort())
			require.NoError(t, next.Abort(), "again does nothing")
			_, err = rdd.Collect(t.Context(), next.Mapped())
			require.ErrorIs(t, err, rdd.ErrReleased)
			require.Error(t, next.Seal())
			require.Equal(t, before, timesOf(t, f.cur))
			if !seal { // one that only some partitions were computed of
				part, stage, err := f.op.Advance(f.cur, f.shuffle(data), Batch{Epoch: 2, Time: at(7)})
				require.NoError(t, err)
				require.NoError(t, rdd.Materialize(t.Context(), f.exec, stage.Deps()...))
				require.NoError(t, stage.RunTask(&rdd.Task{Ctx: t.Context(), Partition: 2}))
				require.NoError(t, part.Abort())
				require.Error(t, stage.RunTask(&rdd.Task{Ctx: t.Context(), Partition: 2}))
				require.Equal(t, before, timesOf(t, f.cur))
			}
		}
		outs = append(outs, f.batch(7, data...))
		for _, o := range outs {
			require.Equal(t, outs[0], o)
		}
		require.Len(t, outs[0], 5)
	}
}

// R5: what is released answers ErrReleased and never other data; Retain holds it.
func TestReleased(t *testing.T) {
	f := start(t, countSpec(), Options{Parallelism: 2}, 0)
	f.batch(1, kv("a", 1))
	old := f.cur
	require.NoError(t, old.Retain())
	view, done, err := rdd.Pin(old.Snapshots())
	require.NoError(t, err)
	f.batch(2, kv("a", 1))
	require.Equal(t, map[string]int{"a": 1}, snapshotOf(t, old))
	old.Release()
	got, err := rdd.Collect(t.Context(), view)
	require.NoError(t, err, "pinned")
	require.Equal(t, []rdd.Pair[string, int]{kv("a", 1)}, got)
	done()
	_, err = rdd.Collect(t.Context(), view)
	require.ErrorIs(t, err, rdd.ErrReleased)
	for _, use := range []func() error{
		func() error { _, err := rdd.Collect(t.Context(), old.Snapshots()); return err },
		func() error { _, err := rdd.Collect(t.Context(), old.Mapped()); return err },
		func() error { _, err := rdd.Collect(t.Context(), old.StateTimes()); return err },
		func() error { _, _, err := old.Get("a"); return err },
		old.Retain,
		func() error { _, _, err := f.op.Advance(old, nil, Batch{Time: at(9)}); return err },
	} {
		require.ErrorIs(t, use(), rdd.ErrReleased)
	}
	for _, rec := range old.Records() {
		require.ErrorIs(t, rec.StateMap.Err(), statemap.ErrReleased)
	}
	require.Equal(t, map[string]int{"a": 2}, snapshotOf(t, f.cur))
}

// R7: state and outputs have lives of their own.
func TestReleaseState(t *testing.T) {
	f := start(t, countSpec(), Options{}, 0)
	f.batch(1, kv("a", 1))
	old := f.cur
	require.NoError(t, old.Retain())
	f.batch(2, kv("a", 1))
	old.ReleaseState()
	_, err := rdd.Collect(t.Context(), old.Snapshots())
	require.ErrorIs(t, err, rdd.ErrReleased)
	require.Equal(t, []rdd.Pair[string, int]{kv("a", 1)}, mappedOf(t, old))
	old.ReleaseMapped()
	_, err = rdd.Collect(t.Context(), old.Mapped())
	require.ErrorIs(t, err, rdd.ErrReleased)
}

// R8: a function may read an older version of its own operator while its batch runs.
func TestFunctionReadsOwnOperator(t *testing.T) {
	var old *MapWithStateRDD[string, int, int]
	spec := Function(func(k string, v rdd.Option[int], s *State[int]) int {
		s.Update(s.OrElse(0) + 1)
		if old == nil {
			return 0
		}
		all, err := rdd.Collect(context.Background(), old.Snapshots().WithExecutor(rdd.Local(1, nil)))
		if err != nil {
			panic(err)
		}
		got, _, err := old.Get(k)
		if err != nil {
			panic(err)
		}
		return 10*len(all) + got
	}).NumPartitions(2).Timeout(time.Hour)
	f := start(t, spec, Options{}, 0)
	f.batch(1, kv("a", 1), kv("b", 1))
	require.NoError(t, f.cur.Retain())
	old = f.cur
	require.ElementsMatch(t, []int{21, 21, 20}, f.batch(2, kv("a", 1), kv("a", 1), kv("c", 1)))
}

// Readers of older versions on other goroutines while later batches run (for -race).
func TestConcurrentReaders(t *testing.T) {
	f := start(t, countSpec().NumPartitions(2).Timeout(3), Options{}, 0)
	var wg sync.WaitGroup
	var data []rdd.Pair[string, int]
	for i := range 300 {
		data = append(data, kv(string(rune('a'+i%26))+string(rune('a'+i%7)), 1))
	}
	for ns := int64(1); ns <= 20; ns++ {
		f.batch(ns, data[:ns*15]...)
		want := snapshotOf(t, f.cur)
		require.NoError(t, f.cur.Retain())
		old := f.cur
		wg.Go(func() {
			defer old.Release()
			for range 5 {
				got, err := rdd.Collect(context.Background(), old.Snapshots())
				if err != nil || len(got) != len(want) {
					t.Errorf("%d keys, want %d: %v", len(got), len(want), err)
				}
				for _, p := range got {
					if want[p.Key] != p.Value {
						t.Errorf("key %s: %d, want %d", p.Key, p.Value, want[p.Key])
					}
				}
			}
		})
	}
	wg.Wait()
}

// Advancing from a version that has a successor clones it; both go on by themselves.
func TestFork(t *testing.T) {
	f := start(t, countSpec().NumPartitions(2).Timeout(5), Options{}, 0)
	f.batch(1, kv("a", 1), kv("b", 1))
	old := f.cur
	require.NoError(t, old.Retain())
	f.batch(2, kv("a", 1))
	g := *f
	g.cur = old
	require.Equal(t, []rdd.Pair[string, int]{kv("b", 11)}, g.batch(3, kv("b", 10)))
	require.Equal(t, map[string]st[int]{"a": {1, 1}, "b": {11, 3}}, timesOf(t, g.cur))
	require.Equal(t, []rdd.Pair[string, int]{kv("b", -1)}, f.batch(7))
	require.Equal(t, []rdd.Pair[string, int]{kv("a", -1)}, g.batch(8))
	require.Equal(t, map[string]st[int]{"a": {2, 2}}, timesOf(t, f.cur))
	require.Equal(t, map[string]st[int]{"b": {11, 3}}, timesOf(t, g.cur))
}

// A cancelled run is not a fault of a record, and the attempt can be repeated.
func TestCancelled(t *testing.T) {
	f := start(t, countSpec(), Options{}, 0)
	next, stage, err := f.op.Advance(f.cur, f.shuffle([]rdd.Pair[string, int]{kv("a", 1)}), Batch{Epoch: 1, Time: at(1)})
	require.NoError(t, err)
	require.NoError(t, rdd.Materialize(t.Context(), f.exec, stage.Deps()...))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, rdd.Materialize(t.Context(), execFunc(func(s *rdd.Stage) error {
		err := s.RunTask(&rdd.Task{Ctx: ctx})
		require.ErrorIs(t, err, context.Canceled)
		var re *rdd.RecordError
		require.NotErrorAs(t, err, &re)
		return s.RunTask(&rdd.Task{Ctx: context.Background()})
	}), stage))
	require.NoError(t, next.Seal())
	require.Equal(t, map[string]int{"a": 1}, snapshotOf(t, next))
}

// R4: a sealed version whose successor has begun anywhere is not taken back at all.
func TestAbortWithASuccessorTakesNothingBack(t *testing.T) {
	f := start(t, countSpec().NumPartitions(4), Options{}, 0)
	data := []rdd.Pair[string, int]{kv("a", 1), kv("b", 1), kv("c", 1), kv("d", 1)}
	f.batch(1, data...)
	before := timesOf(t, f.cur)
	next, stage, err := f.op.Advance(f.cur, f.shuffle(data), Batch{Epoch: 2, Time: at(7)})
	require.NoError(t, err)
	require.NoError(t, rdd.Materialize(t.Context(), f.exec, stage.Deps()...))
	require.NoError(t, stage.RunTask(&rdd.Task{Ctx: t.Context(), Partition: 2}))
	require.ErrorIs(t, f.cur.Abort(), statemap.ErrNotNewest)
	require.NoError(t, next.Abort())
	require.Equal(t, before, timesOf(t, f.cur))
}
