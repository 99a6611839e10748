package statemap

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

type entries = map[int]Entry[int]

func at(s int, t int64) Entry[int] { return Entry[int]{State: s, Time: t} }

func newInts(t *testing.T, o Options[int]) *Map[int, int] {
	t.Helper()
	m, err := New[int, int](o)
	require.NoError(t, err)
	return m
}

func copyOf[K comparable, S any](t require.TestingT, m *Map[K, S]) *Map[K, S] {
	c, err := m.Copy()
	require.NoError(t, err)
	return c
}

func requireMap(t *testing.T, m *Map[int, int], want entries) {
	t.Helper()
	require.Equal(t, want, maps.Collect(m.All()))
	require.Equal(t, len(want), m.Len())
	for k, e := range want {
		s, tm, ok, err := m.Lookup(k)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, e, at(s, tm))
	}
}

func requireByTime(t *testing.T, m *Map[int, int], before int64, want entries) {
	t.Helper()
	require.Equal(t, want, maps.Collect(m.GetByTime(before)))
}

func requireAbsent(t *testing.T, m *Map[int, int], k int) {
	t.Helper()
	_, ok, err := m.Get(k)
	require.NoError(t, err)
	require.False(t, ok)
}

// SM1, E6
func TestEmptyMap(t *testing.T) {
	m := Empty[int, int]()
	require.ErrorIs(t, m.Put(1, 1, 1), ErrEmptyMap)
	requireAbsent(t, m, 1)
	requireByTime(t, m, 10000, entries{})
	requireMap(t, m, entries{})
	require.NoError(t, m.Remove(1))
	require.Same(t, m, copyOf(t, m))

	require.ErrorIs(t, m.Resolve(&Block[int, int]{}, nil, nil), ErrEmptyMap)
	require.ErrorIs(t, m.Apply(&Block[int, int]{}), ErrEmptyMap)
	require.ErrorIs(t, m.PutSlot(0, 1, 1), ErrEmptyMap)
	require.NoError(t, m.ExpireSlot(0))
	require.NoError(t, m.Compact())
	require.NoError(t, m.Err())
	require.NoError(t, m.Abort())
	m.Seal()
	m.Release()
	require.True(t, m.Sealed())
	require.Zero(t, m.DeltaChainLength())
	require.False(t, m.ShouldCompact())
	require.Zero(t, m.ApproxSize())
	require.Zero(t, m.DeltaLen())
	require.Zero(t, m.HeapBytes())
	require.Zero(t, m.Hash(1))
	require.Zero(t, m.Layout())
	require.Empty(t, m.DebugString())
	_, _, _, live := m.SlotAt(0)
	require.False(t, live)
	_, live = m.SlotTime(0)
	require.False(t, live)
	m.Inserted(func(uint32, int64) bool { t.Fatal("a slot of the empty map"); return false })
	m.AllSlots(func(uint32, int64) bool { t.Fatal("a slot of the empty map"); return false })
	d, err := m.Export()
	require.NoError(t, err)
	require.Equal(t, Dump[int, int]{}, d)
	seq, err := m.Delta()
	require.NoError(t, err)
	for range seq {
		t.Fatal("a change of the empty map")
	}
}

// SM2
func TestSingleMap(t *testing.T) {
	m := newInts(t, Options[int]{})
	require.NoError(t, m.Put(1, 100, 10))
	requireAbsent(t, m, 2)
	requireByTime(t, m, 11, entries{1: at(100, 10)})
	requireByTime(t, m, 10, entries{})
	requireByTime(t, m, 9, entries{})
	requireMap(t, m, entries{1: at(100, 10)})

	require.NoError(t, m.Put(2, 200, 20))
	requireByTime(t, m, 21, entries{1: at(100, 10), 2: at(200, 20)})
	requireByTime(t, m, 11, entries{1: at(100, 10)})
	requireByTime(t, m, 10, entries{})
	requireByTime(t, m, 9, entries{})
	requireMap(t, m, entries{1: at(100, 10), 2: at(200, 20)})

	require.NoError(t, m.Remove(1))
	requireAbsent(t, m, 1)
	requireMap(t, m, entries{2: at(200, 20)})
}

// SM3, E2, E5
func TestCopy(t *testing.T) {
	parent := newInts(t, Options[int]{})
	require.NoError(t, parent.Put(1, 100, 1))
	require.NoError(t, parent.Put(2, 200, 2))
	require.NoError(t, parent.Remove(1))
	parentIs := func() {
		t.Helper()
		requireMap(t, parent, entries{2: at(200, 2)})
		requireAbsent(t, parent, 1)
	}

	child := copyOf(t, parent)
	requireAbsent(t, child, 1)
	requireByTime(t, child, 10, entries{2: at(200, 2)})
	requireByTime(t, child, 2, entries{})
	requireMap(t, child, entries{2: at(200, 2)})

	require.NoError(t, child.Put(3, 300, 3))
	require.NoError(t, child.Put(4, 400, 4))
	requireByTime(t, child, 10, entries{2: at(200, 2), 3: at(300, 3), 4: at(400, 4)})
	requireByTime(t, child, 4, entries{2: at(200, 2), 3: at(300, 3)})
	parentIs()

	require.NoError(t, child.Remove(4))
	requireAbsent(t, child, 4)
	require.NoError(t, child.Remove(2))
	requireAbsent(t, child, 2)
	requireMap(t, child, entries{3: at(300, 3)})
	parentIs()

	for k := 1; k <= 4; k++ {
		require.NoError(t, child.Put(k, k*1000, int64(k*100)))
	}
	requireMap(t, child, entries{1: at(1000, 100), 2: at(2000, 200), 3: at(3000, 300), 4: at(4000, 400)})
	parentIs()

	require.NoError(t, child.Remove(2))
	grand := copyOf(t, child)
	requireMap(t, grand, entries{1: at(1000, 100), 3: at(3000, 300), 4: at(4000, 400)})
	requireAbsent(t, grand, 2)
	require.NoError(t, grand.Put(2, 20000, 200))
	requireMap(t, grand, entries{1: at(1000, 100), 2: at(20000, 200), 3: at(3000, 300), 4: at(4000, 400)})
	requireMap(t, child, entries{1: at(1000, 100), 3: at(3000, 300), 4: at(4000, 400)})
	parentIs()
}

// serializers of SM4 and SM7: what a dump becomes on the wire is not the map's
// concern, so any that handles plain structs will do.
func overGob[K comparable, S any](t *testing.T, d Dump[K, S]) (back Dump[K, S]) {
	var b bytes.Buffer
	require.NoError(t, gob.NewEncoder(&b).Encode(d))
	require.NoError(t, gob.NewDecoder(&b).Decode(&back))
	return back
}

func overJSON[K comparable, S any](t *testing.T, d Dump[K, S]) (back Dump[K, S]) {
	b, err := json.Marshal(d)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &back))
	return back
}

func roundTrip[K comparable, S any](t *testing.T, m *Map[K, S], over func(*testing.T, Dump[K, S]) Dump[K, S], o Options[K]) *Map[K, S] {
	t.Helper()
	d, err := m.Export()
	require.NoError(t, err)
	back, err := Import(o, over(t, d))
	require.NoError(t, err)
	require.Equal(t, maps.Collect(m.All()), maps.Collect(back.All()))
	require.Equal(t, m.Len(), back.Len())
	require.NoError(t, verify(back))
	var now int64
	for k, e := range m.All() {
		s, tm, ok, err := back.Lookup(k)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, e, Entry[S]{s, tm})
		now = max(now, tm)
	}
	for tm := range now + 2 {
		require.Equal(t, maps.Collect(m.GetByTime(tm)), maps.Collect(back.GetByTime(tm)))
	}
	return back
}

// SM4, E10, E12: own entries with tombstones survive, one flat base results.
func TestRoundTrip(t *testing.T) {
	for name, over := range map[string]func(*testing.T, Dump[int, int]) Dump[int, int]{"gob": overGob[int, int], "json": overJSON[int, int]} {
		t.Run(name, func(t *testing.T) {
			rt := func(m *Map[int, int]) *Map[int, int] {
				t.Helper()
				back := roundTrip(t, m, over, Options[int]{})
				want, err := m.Export()
				require.NoError(t, err)
				got, err := back.Export()
				require.NoError(t, err)
				require.Equal(t, want.Own, got.Own)
				require.ElementsMatch(t, want.Base, got.Base)
				require.Zero(t, back.DeltaChainLength())
				return back
			}
			rt(newInts(t, Options[int]{}))
			d, err := Empty[int, int]().Export()
			require.NoError(t, err)
			back, err := Import(Options[int]{}, over(t, d))
			require.NoError(t, err)
			requireMap(t, back, entries{})

			m1 := newInts(t, Options[int]{})
			require.NoError(t, m1.Put(1, 100, 1))
			require.NoError(t, m1.Put(2, 200, 2))
			rt(m1)
			m2 := copyOf(t, m1)
			require.False(t, m2.ShouldCompact())
			rt(m2)
			require.NoError(t, m2.Put(3, 300, 3))
			require.NoError(t, m2.Put(4, 400, 4))
			rt(m2)
			m3 := copyOf(t, m2)
			rt(m3)
			require.NoError(t, m3.Put(3, 600, 3))
			require.NoError(t, m3.Remove(2))
			back = rt(m3)
			requireMap(t, back, entries{1: at(100, 1), 3: at(600, 3), 4: at(400, 4)})
			own, err := back.Export()
			require.NoError(t, err)
			require.Equal(t, []DeltaEntry[int, int]{{Key: 3, State: 600, Time: 3}, {Key: 2, Time: 2, Removed: true}}, own.Own)
			rt(m2) // an older version still exports what it is
		})
	}
}

// E10: the end mark.
func TestImportChecksCount(t *testing.T) {
	_, err := Import(Options[int]{}, Dump[int, int]{Base: []DumpEntry[int, int]{{1, 1, 1}}, Count: 2})
	require.ErrorIs(t, err, ErrDumpCount)
	_, err = Import(Options[int]{}, Dump[int, int]{Base: []DumpEntry[int, int]{{1, 1, 1}, {1, 2, 1}}, Count: 2})
	require.ErrorIs(t, err, ErrDumpCount)
	_, err = Import(Options[int]{DeltaChainThreshold: -1}, Dump[int, int]{})
	require.ErrorIs(t, err, ErrThreshold)
}

// SM5, E7, E9: compaction is a call of its own here, not a side effect of
// serializing.
func TestCompaction(t *testing.T) {
	m := newInts(t, Options[int]{DeltaChainThreshold: 5, NoAutoDetach: true})
	require.NoError(t, m.Put(0, 7, 1))
	first := m
	for i := range 10 {
		if i > 0 {
			require.NoError(t, m.Put(i*7919, i, int64(i)))
		}
		m = copyOf(t, m)
	}
	want := maps.Collect(m.All())
	require.Equal(t, 10, first.DeltaChainLength())
	require.True(t, first.ShouldCompact())
	require.NoError(t, first.Compact())
	require.Zero(t, first.DeltaChainLength())
	require.False(t, first.ShouldCompact())
	requireMap(t, first, entries{0: at(7, 1)})
	requireMap(t, m, want)

	// The compacted version can be copied in its own table.
	fork := copyOf(t, first)
	require.NoError(t, fork.Put(1, 1, 1))
	requireMap(t, fork, entries{0: at(7, 1), 1: at(1, 1)})
	requireMap(t, m, want)
	require.Equal(t, 1, first.DeltaChainLength())

	d, err := m.Export()
	require.NoError(t, err)
	back, err := Import(Options[int]{DeltaChainThreshold: 5}, d)
	require.NoError(t, err)
	requireMap(t, back, want)
	require.False(t, back.ShouldCompact())
}

// SM6
func TestExhaustive(t *testing.T) {
	const sets, ops, keys = 3, 3, 512
	m := newInts(t, Options[int]{})
	ref := entries{}
	var old *Map[int, int]
	var oldRef entries
	now := int64(0)
	check := func(m *Map[int, int], ref entries) {
		t.Helper()
		requireMap(t, m, ref)
		for k := range keys {
			if _, ok := ref[k]; !ok {
				requireAbsent(t, m, k)
			}
		}
		for tm := range now + 2 {
			want := entries{}
			for k, e := range ref {
				if e.Time < tm {
					want[k] = e
				}
			}
			requireByTime(t, m, tm, want)
		}
	}
	for set := range sets {
		for op := range ops {
			bit := sets*ops - 1 - (set*ops + op)
			for k := range keys {
				if k>>bit&1 == 0 {
					require.NoError(t, m.Put(k, int(now)*1000+k, now))
					ref[k] = at(int(now)*1000+k, now)
				} else {
					require.NoError(t, m.Remove(k))
					delete(ref, k)
				}
			}
			check(m, ref)
			if old != nil {
				check(old, oldRef)
			}
			now++
		}
		old, oldRef = m, maps.Clone(ref)
		m = copyOf(t, m)
		check(m, ref)
	}
	require.NoError(t, verify(m))
}

// SM7: only gob keeps unusual keys apart from their text form; a whole record
// of (map, outputs) goes as one value.
func TestRoundTripOneSerializer(t *testing.T) {
	type key struct {
		Name string
		N    int
	}
	type state struct{ Seen []string }
	m, err := New[key, state](Options[key]{})
	require.NoError(t, err)
	require.NoError(t, m.Put(key{"a", 1}, state{[]string{"x", "y"}}, 1))
	require.NoError(t, m.Put(key{"b", 2}, state{[]string{"z"}}, 2))
	roundTrip(t, m, overGob[key, state], Options[key]{})

	type record struct {
		Map    Dump[key, state]
		Mapped []string
	}
	d, err := m.Export()
	require.NoError(t, err)
	in := record{d, []string{"out1", "out2"}}
	var b bytes.Buffer
	require.NoError(t, gob.NewEncoder(&b).Encode(in))
	var out record
	require.NoError(t, gob.NewDecoder(&b).Decode(&out))
	require.Equal(t, in.Mapped, out.Mapped)
	back, err := Import(Options[key]{}, out.Map)
	require.NoError(t, err)
	require.NotSame(t, m, back)
	require.Equal(t, maps.Collect(m.All()), maps.Collect(back.All()))
}
