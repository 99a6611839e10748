package rdd_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// R1: kept rows are computed once, however often and from how many consumers they are read.
func TestKeptIsComputedOnce(t *testing.T) {
	var calls atomic.Int64
	kept := rdd.Keep(rdd.Map(rdd.Parallelize(numbers(1000), 3), func(v int) int { calls.Add(1); return v }))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := rdd.Collect(context.Background(), rdd.Map(kept, func(v int) int { return v }))
			if err != nil || len(got) != 1000 || got[999] != 999 {
				t.Errorf("got %d records, %v", len(got), err)
			}
		})
	}
	wg.Wait()
	n, err := rdd.Count(t.Context(), kept)
	require.NoError(t, err)
	require.EqualValues(t, 1000, n)
	require.EqualValues(t, 1000, calls.Load())
}

// R5 for kept rows: released means ErrReleased for every use, and what is retained stays.
func TestReleasedKeptRows(t *testing.T) {
	pools := &rdd.Pools{}
	exec := rdd.Local(2, pools)
	kept := rdd.Keep(rdd.Parallelize(numbers(1000), 3).WithExecutor(exec))
	child := rdd.Map(kept, func(v int) int { return v + 1 })
	require.Equal(t, numbers(1000), collect(t, kept))

	require.NoError(t, child.Retain())
	kept.Deps()[0].Release()
	kept.Deps()[0].Release()
	require.Equal(t, numbers(1000), collect(t, kept), "retained")
	child.Release()

	for range 2 {
		other := rdd.Keep(rdd.Map(rdd.Parallelize(numbers(1000), 3).WithExecutor(exec), func(int) int { return -1 }))
		collect(t, other) // takes the blocks that were given back
		isReleased(t, kept)
		isReleased(t, child)
		other.Release()
		kept.Release() // too many are harmless
	}
	require.ErrorIs(t, child.Retain(), rdd.ErrReleased)
}

func isReleased[T any](t *testing.T, r *rdd.RDD[T]) {
	t.Helper()
	_, err := rdd.Collect(t.Context(), r)
	require.ErrorIs(t, err, rdd.ErrReleased)
	_, err = rdd.Take(t.Context(), r, 1)
	require.ErrorIs(t, err, rdd.ErrReleased)
	_, err = rdd.Count(t.Context(), r)
	require.ErrorIs(t, err, rdd.ErrReleased)
	require.ErrorIs(t, r.Compute(&rdd.Task{Ctx: t.Context()}, func(T) error { return nil }), rdd.ErrReleased)
	_, err = rdd.Collect(t.Context(), rdd.Keep(r))
	require.ErrorIs(t, err, rdd.ErrReleased)
	_, _, err = rdd.Pin(r)
	require.ErrorIs(t, err, rdd.ErrReleased)
}

// A reader that is on its way keeps the blocks out of the pool: never other data.
func TestReleaseUnderAReader(t *testing.T) {
	pools := &rdd.Pools{}
	exec := rdd.Local(1, pools)
	kept := rdd.Keep(rdd.Parallelize(numbers(1000), 1).WithExecutor(exec))
	require.NoError(t, kept.Materialize(t.Context()))
	var got []int
	err := kept.Compute(&rdd.Task{Ctx: t.Context()}, func(v int) error {
		if len(got) == 10 {
			kept.Release()
			collect(t, rdd.Keep(rdd.Map(rdd.Parallelize(numbers(1000), 1).WithExecutor(exec), func(int) int { return -1 })))
		}
		got = append(got, v)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, numbers(1000), got)
	isReleased(t, kept)
}

// R5: a dataset given to user code is valid until the function returns.
func TestPinnedView(t *testing.T) {
	kept := rdd.Keep(rdd.Parallelize(numbers(10), 2))
	for name, r := range map[string]*rdd.RDD[int]{
		"kept": kept, "computed": rdd.Map(rdd.Parallelize(numbers(10), 2), func(v int) int { return v }),
	} {
		t.Run(name, func(t *testing.T) {
			view, done, err := rdd.Pin(r)
			require.NoError(t, err)
			child := rdd.Filter(view, func(v int) bool { return v > 4 })
			require.Equal(t, numbers(10), collect(t, view))
			require.Equal(t, numbers(10)[5:], collect(t, child))
			require.NoError(t, child.Retain())
			done()
			done()
			require.Equal(t, numbers(10), collect(t, view), "retained")
			child.Release()
			isReleased(t, view)
			isReleased(t, child)
			require.ErrorIs(t, view.Retain(), rdd.ErrReleased)
			require.ErrorContains(t, view.Retain(), "Retain it to keep it longer")
			require.Equal(t, numbers(10), collect(t, r), "the dataset itself goes on")
		})
	}

	view, done, err := rdd.Pin(kept)
	require.NoError(t, err)
	require.NoError(t, view.Retain())
	done()
	kept.Deps()[0].Release()
	require.Equal(t, numbers(10), collect(t, view), "the view holds the rows")
	view.Release()
	isReleased(t, kept)
}

func TestPinTakesAllOrNothing(t *testing.T) {
	a, b := rdd.Keep(rdd.Parallelize(numbers(2), 1)), rdd.Keep(rdd.Parallelize(numbers(2), 1))
	u := rdd.Union(a, b)
	require.Equal(t, []int{0, 1, 0, 1}, collect(t, u))
	b.Release()
	_, _, err := rdd.Pin(u)
	require.ErrorIs(t, err, rdd.ErrReleased)
	require.ErrorIs(t, u.Retain(), rdd.ErrReleased)
	a.Release() // would only drop a holder if one had been left behind
	isReleased(t, a)
}

func TestReleasedShuffle(t *testing.T) {
	s := rdd.Shuffle(rdd.Parallelize([]kv{{Key: "a", Value: 1}}, 1), partitioner.Hash[string](1))
	task := &rdd.Task{Ctx: t.Context()}
	require.ErrorContains(t, s.Read(task, 0, nil), "read before its stage is complete")
	require.Nil(t, s.Blocks(0))
	require.Equal(t, []kv{{Key: "a", Value: 1}}, collect(t, s.RDD()))
	require.Len(t, s.Blocks(0), 1)
	require.NoError(t, s.Retain())
	s.Stage().Release()
	require.Len(t, s.Blocks(0), 1)
	s.Release()
	require.ErrorIs(t, s.Read(task, 0, nil), rdd.ErrReleased)
	require.Nil(t, s.Blocks(0))
	isReleased(t, s.RDD())
	require.ErrorIs(t, s.Retain(), rdd.ErrReleased)
	require.NoError(t, s.Err())
	require.Equal(t, 1, s.NumPartitions())
	require.True(t, s.Partitioner().Equal(partitioner.Hash[string](1)))
}

func TestLife(t *testing.T) {
	freed := 0
	l := rdd.NewLife("x", func() { freed++ })
	require.NoError(t, l.Retain())
	l.Close()
	require.NoError(t, l.Enter())
	l.Release()
	require.ErrorIs(t, l.Err(), rdd.ErrReleased)
	require.True(t, errors.Is(l.Enter(), rdd.ErrReleased))
	require.Zero(t, freed, "somebody reads")
	l.Leave()
	require.Equal(t, 1, freed)
	l.Release()
	l.Close()
	require.Equal(t, 1, freed)
}

// A chain of batches, each of which reads the one before, keeps no earlier batch alive.
func TestLineageDoesNotGrow(t *testing.T) {
	freed := make(chan struct{})
	last := func() *rdd.RDD[int] {
		first := &[1 << 16]int{}
		runtime.AddCleanup(first, func(c chan struct{}) { close(c) }, freed)
		return rdd.Keep(rdd.Map(rdd.Parallelize([]int{1}, 1), func(v int) int { return v + first[0] }))
	}()
	for range 5 {
		require.NoError(t, last.Materialize(t.Context()))
		before := last
		last = rdd.Keep(rdd.Map(before, func(v int) int { return v + 1 }))
		require.Equal(t, rdd.StagePending, last.Deps()[0].State())
	}
	require.Equal(t, []int{6}, collect(t, last))
	gone := false
	for i := 0; i < 1000 && !gone; i++ {
		runtime.GC()
		runtime.Gosched() // the clean-up runs on its own goroutine
		select {
		case <-freed:
			gone = true
		default:
		}
	}
	require.True(t, gone, "the first batch's function is still referenced")
	runtime.KeepAlive(last)
}
