package statemap

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func newStrings[S any](t require.TestingT, o Options[string]) *Map[string, S] {
	m, err := New[string, S](o)
	require.NoError(t, err)
	return m
}

func TestOptions(t *testing.T) {
	_, err := New[int, int](Options[int]{DeltaChainThreshold: -1}) // E7
	require.ErrorIs(t, err, ErrThreshold)
	_, err = New[int, int](Options[int]{InitialCapacity: -1})
	require.ErrorIs(t, err, ErrCapacity)
	m := newInts(t, Options[int]{NoAutoDetach: true})
	for range DefaultDeltaChainThreshold - 1 {
		copyOf(t, copyOfNewest(t, m))
	}
	require.False(t, m.ShouldCompact())
}

// copyOfNewest follows the chain from m to the newest version of its table.
func copyOfNewest[K comparable, S any](t *testing.T, m *Map[K, S]) *Map[K, S] {
	t.Helper()
	h := m.h.(*handle[K, K, S])
	tab := h.t.Load()
	return &Map[K, S]{h: tab.handles[len(tab.handles)-1]}
}

// fingerprint is all that decides what the table does next.
func fingerprint[K comparable, SK, S any](tab *table[K, SK, S]) []any {
	return []any{
		tab.n, slices.Clone(tab.free), slices.Clone(tab.pending), tab.cur, tab.index.count(), len(tab.versions),
		tab.arena.used, tab.arena.total, tab.arena.off, len(tab.arena.pages), slices.Clone(tab.arena.free), len(tab.arena.big),
	}
}

// Abort takes back counters, index, arena use and free lists too, so a repeated
// version does exactly what the first did.
func TestAbortRestoresEverything(t *testing.T) {
	m := newStrings[int64](t, Options[string]{})
	key := func(i int) string { return fmt.Sprintf("%0*d", 1+i%40, i) }
	for i := range 500 {
		require.NoError(t, m.Put(key(i), int64(i), 1))
	}
	next := copyOf(t, m)
	m.Release()
	for i := range 100 {
		require.NoError(t, next.Remove(key(i*3)))
	}
	prev := copyOf(t, next) // the removed slots are free from here on
	next.Release()
	m = copyOf(t, prev)
	tab := tableOf[string, keyRef, int64](m)
	require.Len(t, tab.free, 100)

	want := maps.Collect(prev.All())
	attempt := func() (slots []uint32) {
		for i := range 300 {
			require.NoError(t, m.Put(key(1000+i), int64(i), 5))
			require.NoError(t, m.Remove(key(i)))
			require.NoError(t, m.Put(key(i+1), 7, 5))
		}
		require.NoError(t, m.Put(string(make([]byte, maxSmallKey+1)), 1, 1))
		m.Inserted(func(n uint32, _ int64) bool { slots = append(slots, n); return true })
		return slots
	}
	before := fingerprint(tab)
	first := attempt()
	require.Greater(t, len(first), 300)
	require.NoError(t, m.Abort())
	m = copyOf(t, prev)
	require.Equal(t, before, fingerprint(tab))
	require.NoError(t, verify(m))
	require.Equal(t, want, maps.Collect(m.All()))
	require.Equal(t, len(want), m.Len())
	require.Equal(t, first, attempt(), "the repeated version uses the same slots")
	require.Equal(t, prev.Layout(), m.Layout())
}

// A sealed newest version can be aborted; one with a live successor cannot.
func TestAbortOrder(t *testing.T) {
	a := newInts(t, Options[int]{})
	require.NoError(t, a.Put(1, 1, 1))
	b := copyOf(t, a)
	require.NoError(t, b.Put(1, 2, 2))
	c := copyOf(t, b)
	require.ErrorIs(t, b.Abort(), ErrNotNewest)
	require.NoError(t, c.Abort())
	require.NoError(t, b.Abort()) // sealed
	d := copyOf(t, a)
	requireMap(t, d, entries{1: at(1, 1)})
	d.Release()
	e := copyOf(t, a) // d was given up, so this is no fork
	require.Equal(t, 1, a.DeltaChainLength())
	require.Equal(t, a.Layout(), e.Layout())
	require.NoError(t, e.Abort())
	require.NoError(t, a.Abort())
	require.ErrorIs(t, a.Err(), ErrReleased)
}

// A copy of a version that is not the newest is a fork in a table of its own.
func TestFork(t *testing.T) {
	a := newInts(t, Options[int]{})
	require.NoError(t, a.Put(1, 1, 1))
	b := copyOf(t, a)
	require.NoError(t, b.Put(1, 2, 2))
	fork := copyOf(t, a)
	require.NotEqual(t, a.Layout(), fork.Layout())
	requireMap(t, fork, entries{1: at(1, 1)})
	require.NoError(t, fork.Put(2, 2, 2))
	requireMap(t, b, entries{1: at(2, 2)})
	requireMap(t, a, entries{1: at(1, 1)})
	require.Zero(t, fork.DeltaChainLength())
	require.Equal(t, 1, fork.DeltaLen())
}

// Delta is there while the version is the newest, or pinned by an older handle.
func TestDeltaLifetime(t *testing.T) {
	a := newInts(t, Options[int]{})
	require.NoError(t, a.Put(1, 1, 1))
	b := copyOf(t, a)
	_, err := a.Delta()
	require.ErrorIs(t, err, ErrDeltaGone)
	require.NoError(t, b.Put(2, 2, 2))
	c := copyOf(t, b)
	seq, err := b.Delta() // a pins it
	require.NoError(t, err)
	require.Equal(t, []DeltaEntry[int, int]{{Key: 2, State: 2, Time: 2}}, slices.Collect(seq))
	a.Release()
	_, err = b.Delta()
	require.ErrorIs(t, err, ErrDeltaGone)
	require.Zero(t, b.DeltaLen())
	requireMap(t, c, entries{1: at(1, 1), 2: at(2, 2)})
	require.NoError(t, b.Err())
	require.Empty(t, slices.Collect(seq)) // got while the delta was there, used too late
	require.ErrorIs(t, b.Err(), ErrDeltaGone)
}

// An iterator over a delta keeps the list while it runs.
func TestDeltaIteratorPinsList(t *testing.T) {
	a := newInts(t, Options[int]{})
	b := copyOf(t, a)
	a.Release()
	for i := range 3 * scanLen {
		require.NoError(t, b.Put(i, i, 1))
	}
	seq, err := b.Delta()
	require.NoError(t, err)
	n := 0
	for e := range seq {
		if n == 0 {
			copyOf(t, b)
			b.Release()
		}
		require.Equal(t, n, e.Key)
		n++
	}
	require.Equal(t, 3*scanLen, n)
	require.ErrorIs(t, b.Err(), ErrReleased)
	require.Nil(t, tableOf[int, int, int](b))
}

// The pin of an iterator goes with the loop, however it ends.
func TestIteratorPins(t *testing.T) {
	m := newInts(t, Options[int]{})
	for i := range 1000 {
		require.NoError(t, m.Put(i, i, 1))
	}
	h := m.h.(*handle[int, int, int])
	for range m.All() {
		require.Equal(t, 1, h.pins)
		break
	}
	require.Zero(t, h.pins)
	require.Panics(t, func() {
		for range m.All() {
			panic("consumer")
		}
	})
	require.Zero(t, h.pins)
	m.AllSlots(func(uint32, int64) bool { return false })
	require.Zero(t, h.pins)
	n := 0
	for range m.All() {
		if n == 0 {
			require.NoError(t, m.Abort())
		}
		n++
	}
	require.Equal(t, scanLen, n, "abort ends an iterator at its next batch")
	require.ErrorIs(t, m.Err(), ErrReleased)
}

// Writing while iterating over the open version is allowed.
func TestWriteWhileIterating(t *testing.T) {
	m := newInts(t, Options[int]{})
	for i := range 2000 {
		require.NoError(t, m.Put(i, i, int64(i)))
	}
	n := 0
	for k := range m.GetByTime(1000) { // C5
		require.NoError(t, m.Remove(k))
		n++
	}
	require.Equal(t, 1000, n)
	require.Equal(t, 1000, m.Len())
}

// Removing an absent key leaves nothing; a key that came and went in one
// version is not in its delta. report 3
func TestReadsAndRemovesLeaveNothing(t *testing.T) {
	m := newInts(t, Options[int]{})
	require.NoError(t, m.Put(1, 1, 1))
	m = copyOf(t, m)
	size, heap := m.ApproxSize(), m.HeapBytes()
	require.NoError(t, m.Remove(2))
	requireAbsent(t, m, 3)
	var b Block[int, int]
	keys := []int{4, 5, 1, 4}
	require.NoError(t, m.Resolve(&b, []uint64{m.Hash(4), m.Hash(5), m.Hash(1), m.Hash(4)}, keys))
	b.Delete(1)
	b.Touch(3, 9)
	require.NoError(t, m.Apply(&b))
	require.Empty(t, b.Inserted())
	_, has := b.Slot(0)
	require.False(t, has)
	require.Equal(t, size, m.ApproxSize())
	require.Equal(t, heap, m.HeapBytes())
	require.Zero(t, m.DeltaLen())

	require.NoError(t, m.Put(6, 6, 6))
	require.NoError(t, m.Remove(6))
	seq, err := m.Delta()
	require.NoError(t, err)
	require.Empty(t, slices.Collect(seq))
}

func TestDebugString(t *testing.T) {
	m := newStrings[int](t, Options[string]{})
	require.NoError(t, m.Put("a", 1, 10))
	require.Equal(t, "a: 1 @ 10\n", m.DebugString())
	m2 := copyOf(t, m)
	require.NoError(t, m2.Put("b", 2, 20))
	m3 := copyOf(t, m2)
	require.NoError(t, m3.Remove("a"))
	require.NoError(t, m3.Put("b", 3, 30))
	// E11
	require.Equal(t, "a: 1 @ 10\n+--- b: 2 @ 20\n    +--- a: removed @ 10\n    +--- b: 3 @ 30\n", m3.DebugString())
}

// Used-up version numbers begin a new table.
func TestVersionNumbersRunOut(t *testing.T) {
	m := newInts(t, Options[int]{})
	tab := tableOf[int, int, int](m)
	tab.cur, tab.first = maxVersion, maxVersion
	m.h.(*handle[int, int, int]).v = maxVersion
	require.NoError(t, m.Put(1, 1, 1))
	c := copyOf(t, m)
	require.NotEqual(t, m.Layout(), c.Layout())
	require.NoError(t, c.Put(1, 2, 2))
	requireMap(t, c, entries{1: at(2, 2)})
	requireMap(t, m, entries{1: at(1, 1)})
	require.NoError(t, c.Abort())
	requireMap(t, copyOf(t, m), entries{1: at(1, 1)})
}

func TestFull(t *testing.T) {
	m := newInts(t, Options[int]{})
	tableOf[int, int, int](m).limit = 3
	put := func(keys ...int) error {
		var b Block[int, int]
		h := make([]uint64, len(keys))
		for i, k := range keys {
			h[i] = m.Hash(k)
		}
		require.NoError(t, m.Resolve(&b, h, keys))
		for i := range keys {
			b.Set(i, keys[i], 1)
		}
		return m.Apply(&b)
	}
	require.NoError(t, put(1, 2))
	require.ErrorIs(t, put(3, 4), ErrFull)
	requireMap(t, m, entries{1: at(1, 1), 2: at(2, 1)})
	require.NoError(t, put(1, 2, 3))
	require.NoError(t, put(1, 2, 3))
	require.ErrorIs(t, m.Put(4, 4, 1), ErrFull)
	require.NoError(t, m.Put(1, 5, 1))
}
