package statemap

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlockErrors(t *testing.T) {
	m := newInts(t, Options[int]{})
	var b Block[int, int]
	require.ErrorIs(t, m.Apply(&b), ErrBlock)
	require.ErrorIs(t, m.Resolve(&b, make([]uint64, 65), make([]int, 65)), ErrBlock)
	require.ErrorIs(t, m.Resolve(&b, make([]uint64, 1), make([]int, 2)), ErrBlock)
	require.ErrorIs(t, m.Apply(&b), ErrBlock)

	hashes, keys := []uint64{m.Hash(1)}, []int{1}
	require.NoError(t, m.Resolve(&b, hashes, keys))
	b.Set(0, 1, 1)
	require.NoError(t, m.Put(1, 2, 2))
	require.ErrorIs(t, m.Apply(&b), ErrBlock, "another write came between")
	requireMap(t, m, entries{1: at(2, 2)})

	other := newInts(t, Options[int]{})
	require.NoError(t, m.Resolve(&b, hashes, keys))
	require.ErrorIs(t, other.Apply(&b), ErrBlock)
	b.Set(0, 3, 3)
	require.NoError(t, m.Apply(&b))
	requireMap(t, m, entries{1: at(3, 3)})

	require.NoError(t, m.Resolve(&b, nil, nil))
	require.NoError(t, m.Apply(&b))

	// Sealed or released between Resolve and Apply.
	require.NoError(t, m.Resolve(&b, hashes, keys))
	b.Set(0, 4, 4)
	m.Seal()
	require.ErrorIs(t, m.Apply(&b), ErrSealed)
	requireMap(t, m, entries{1: at(3, 3)})
}

func TestNaN(t *testing.T) {
	m, err := New[float64, int](Options[float64]{})
	require.NoError(t, err)
	nan := math.NaN()
	require.ErrorIs(t, m.Put(nan, 1, 1), ErrNaN)
	require.NoError(t, m.Remove(nan))
	var b Block[float64, int]
	require.ErrorIs(t, m.Resolve(&b, []uint64{1}, []float64{nan}), ErrNaN)
	require.NoError(t, m.Put(math.Copysign(0, -1), 1, 1))
	_, ok, err := m.Get(0)
	require.NoError(t, err)
	require.True(t, ok)
}

// first must stay true until the version has a state of its own: touching the
// time leaves the state shared with older versions.
func TestFirstAfterTouch(t *testing.T) {
	m := newStrings[map[string]int](t, Options[string]{})
	require.NoError(t, m.Put("k", map[string]int{"n": 1}, 1))
	prev := m
	m = copyOf(t, prev)
	var b Block[string, map[string]int]
	hashes, keys := []uint64{m.Hash("k")}, []string{"k"}
	for range 2 {
		require.NoError(t, m.Resolve(&b, hashes, keys))
		_, exists, first := b.Load(0)
		require.True(t, exists && first)
		b.Touch(0, 2)
		_, _, first = b.Load(0)
		require.True(t, first)
		require.NoError(t, m.Apply(&b))
	}
	require.NoError(t, m.Resolve(&b, hashes, keys))
	own := map[string]int{"n": 2}
	b.Set(0, own, 3)
	require.NoError(t, m.Apply(&b))
	require.NoError(t, m.Resolve(&b, hashes, keys))
	s, _, first := b.Load(0)
	require.False(t, first)
	s["n"] = 3 // in place: only this version sees it
	b.Touch(0, 4)
	require.NoError(t, m.Apply(&b))
	require.NoError(t, m.Resolve(&b, hashes, keys))
	_, _, first = b.Load(0)
	require.False(t, first)
	got, _, _, err := prev.Lookup("k")
	require.NoError(t, err)
	require.Equal(t, map[string]int{"n": 1}, got)
	for i := range b.state {
		if i > 0 {
			require.Nil(t, b.state[i], "the block keeps no states alive")
		}
	}
}

// R8: no lock is held between Resolve and Apply, and Apply takes it.
func TestUserCodeRunsWithoutLock(t *testing.T) {
	prev := newInts(t, Options[int]{})
	require.NoError(t, prev.Put(1, 1, 1))
	m := copyOf(t, prev)
	tab := tableOf[int, int, int](m)
	locked := false
	tab.hook = func() { // called within Apply
		if tab.mu.TryRLock() {
			tab.mu.RUnlock()
		} else {
			locked = true
		}
	}
	var b Block[int, int]
	require.NoError(t, m.Resolve(&b, []uint64{m.Hash(1)}, []int{1}))
	require.True(t, tab.mu.TryLock(), "no lock is held while user code runs")
	tab.mu.Unlock()
	requireMap(t, prev, entries{1: at(1, 1)}) // user code reads an older version of its own operator
	b.Set(0, 2, 2)
	requireMap(t, m, entries{1: at(1, 1)}) // kept aside
	require.NoError(t, m.Apply(&b))
	require.True(t, locked, "Apply writes under the lock")
	requireMap(t, m, entries{1: at(2, 2)})
	requireMap(t, prev, entries{1: at(1, 1)})
	tab.hook = nil
}

// Nothing is allocated per block once the lists have their size.
func TestBlocksDoNotAllocate(t *testing.T) {
	m := newStrings[int64](t, Options[string]{})
	keys := manyKeys(BlockSize, func(i int) string { return string(rune('a'+i%26)) + string(rune('A'+i)) })
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = m.Hash(k)
		require.NoError(t, m.Put(k, 1, 1))
	}
	m = copyOf(t, m)
	var b Block[string, int64]
	step := func() {
		_ = m.Resolve(&b, hashes, keys)
		for i := range keys {
			s, _, _ := b.Load(i)
			b.Set(i, s+1, 2)
		}
		_ = m.Apply(&b)
	}
	step()
	require.Zero(t, testing.AllocsPerRun(100, step))
}
