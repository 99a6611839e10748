package statemap

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/invariants"
)

// The collector does not look into tables of plain types.
func TestPointerFree(t *testing.T) {
	require.False(t, hasPointers(reflect.TypeFor[slot[keyRef, int64]]()))
	require.False(t, hasPointers(reflect.TypeFor[slot[[2]int32, [3]float64]]()))
	require.False(t, hasPointers(reflect.TypeFor[undoRec[int64]]()))
	require.True(t, hasPointers(reflect.TypeFor[slot[keyRef, string]]()))
	require.True(t, hasPointers(reflect.TypeFor[slot[struct{ a [2]string }, int64]]()))
	require.IsType(t, &handle[string, keyRef, int64]{}, newStrings[int64](t, Options[string]{}).h)
	type name string
	m, err := New[name, int64](Options[name]{})
	require.NoError(t, err)
	require.IsType(t, &handle[name, keyRef, int64]{}, m.h)
}

// Keys do not pin the buffers that they were cut from.
func TestKeysArePrivate(t *testing.T) {
	type key struct {
		n int
		s [2]string
	}
	m, err := New[key, int](Options[key]{})
	require.NoError(t, err)
	buf := string(make([]byte, 1<<10))
	require.NoError(t, m.Put(key{1, [2]string{buf[:5], buf[7:9]}}, 1, 1))
	sl := tableOf[key, key, int](m).at(0)
	require.NotSame(t, ptr(buf), ptr(sl.key.s[0]))
	require.NotSame(t, ptr(buf[7:]), ptr(sl.key.s[1]))
}

func ptr(s string) *byte { return &[]byte(s)[:1:1][0] }

func heapNow() int64 {
	var ms runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&ms)
	return int64(ms.HeapAlloc)
}

type wide [3]int64

func cycle(t *testing.T, m *Map[string, wide], from, to int, remove bool) *Map[string, wide] {
	t.Helper()
	for i := from; i < to; i++ {
		k := fmt.Sprintf("user-%011d", i)
		if remove {
			require.NoError(t, m.Remove(k))
		} else {
			require.NoError(t, m.Put(k, wide{int64(i)}, int64(i)))
		}
	}
	c := copyOf(t, m)
	m.Release()
	return c
}

// report 17: memory follows the live keys, over ten cycles.
func TestMemoryFollowsLiveKeys(t *testing.T) {
	many, few := 200_000, 2_000
	if invariants.Enabled { // the race detector is slow
		many, few = many/5, few/5
	}
	start := heapNow()
	small := cycle(t, newStrings[wide](t, Options[string]{}), 0, few, false)
	need := heapNow() - start
	runtime.KeepAlive(small)
	small = nil

	start = heapNow()
	m := newStrings[wide](t, Options[string]{})
	var first int64
	for i := range 10 {
		m = cycle(t, m, 0, many, false)
		m = cycle(t, m, few, many, true)
		m = cycle(t, m, 0, few, false) // one more batch, after which nobody needs the removed keys
		m = cycle(t, m, 0, 0, false)
		require.Equal(t, few, m.Len())
		heap := heapNow() - start
		require.LessOrEqual(t, heap, 2*need+256<<10, "cycle %d: %d live keys alone need %d", i, few, need)
		require.LessOrEqual(t, m.HeapBytes(), heap+heap/4)
		if i == 0 {
			first = heap
		}
		require.LessOrEqual(t, heap, first+first/4+64<<10, "cycle %d", i)
	}
	runtime.KeepAlive(m)
}

// Keys that come and go reuse slots and key bytes: the table neither grows nor
// has to be made anew.
func TestChurnReusesMemory(t *testing.T) {
	m := newStrings[wide](t, Options[string]{})
	const live, step = 10_000, 1_000
	m = cycle(t, m, 0, live, false)
	layout := m.Layout()
	var after5 int64
	for i := range 100 {
		m = cycle(t, m, live+i*step, live+(i+1)*step, false)
		m = cycle(t, m, i*step, (i+1)*step, true)
		require.Equal(t, live, m.Len())
		if i == 5 {
			after5 = m.HeapBytes()
		}
	}
	require.Equal(t, layout, m.Layout())
	require.LessOrEqual(t, m.HeapBytes(), after5+after5/10)
	require.NoError(t, verify(m))
}

// Design 15: at rest at most 80 bytes a key of 16 bytes with an int64, no undo
// kept from the load. HeapBytes tells what the heap says.
func TestHeapPerKey(t *testing.T) {
	for _, n := range []int{60_000, 100_000, 131_000} {
		start := heapNow()
		m := newStrings[int64](t, Options[string]{})
		for i := range n {
			require.NoError(t, m.Put(fmt.Sprintf("user-%011d", i), int64(i), 1))
		}
		m.Seal()
		c := copyOf(t, m)
		m.Release()
		heap := heapNow() - start
		require.LessOrEqual(t, heap, int64(80*n), "%d keys", n)
		require.InDelta(t, heap, c.HeapBytes(), float64(heap)/10)
		t.Logf("%d keys: %.1f bytes a key", n, float64(heap)/float64(n))
		runtime.KeepAlive(c)
	}
}

// 60 pinned versions of which each changes 1 % cost at most ⌈60/20⌉ more tables.
func TestPinnedVersions(t *testing.T) {
	const keys, versions = 20_000, 60
	m := newStrings[int64](t, Options[string]{})
	for i := range keys {
		require.NoError(t, m.Put(fmt.Sprintf("user-%011d", i), 0, 0))
	}
	one := m.HeapBytes()
	var pinned []*Map[string, int64]
	for v := 1; v <= versions; v++ {
		pinned = append(pinned, m)
		m = copyOf(t, m)
		for i := range keys / 100 {
			require.NoError(t, m.Put(fmt.Sprintf("user-%011d", (v*7919+i)%keys), int64(v), int64(v)))
		}
	}
	require.NoError(t, verify(m))
	tables := map[any]int64{}
	for v, h := range append(pinned, m) {
		require.Less(t, h.DeltaChainLength(), DefaultDeltaChainThreshold+1)
		tables[tableOf[string, keyRef, int64](h)] = h.HeapBytes()
		var sum, want int64
		for _, e := range h.All() {
			sum += e.State
		}
		newest := map[int]int64{}
		for u := 1; u <= v; u++ {
			for i := range keys / 100 {
				newest[(u*7919+i)%keys] = int64(u)
			}
		}
		for _, s := range newest {
			want += s
		}
		require.Equal(t, want, sum, "version %d", v)
	}
	var total int64
	for _, b := range tables {
		total += b
	}
	require.LessOrEqual(t, len(tables), 1+versions/DefaultDeltaChainThreshold)
	require.LessOrEqual(t, total, 5*one)
	for _, h := range pinned {
		h.Release()
	}
	require.NoError(t, verify(m))
}
