package statemap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func sortedKeys[S any](m *Map[string, S], compare func(a, b string) int) []string {
	var keys []string
	for k := range m.Sorted(compare) {
		keys = append(keys, k)
	}
	return keys
}

// What it costs to know the order again: nothing while no key comes or goes; else only the keys
// that came are sorted. (Looks at the number of comparisons, not at the clock.)
func TestSortedAgain(t *testing.T) {
	const n = 10_000
	calls := 0
	compare := func(a, b string) int { calls++; return strings.Compare(a, b) }
	cost := func(m *Map[string, int]) int {
		calls = 0
		require.Equal(t, slices.Sorted(maps.Keys(maps.Collect(m.All()))), sortedKeys(m, compare))
		return calls
	}
	m := newStrings[int](t, Options[string]{})
	key := func(i int) string { return fmt.Sprintf("k%05d", i*7919%n) }
	for i := range n {
		require.NoError(t, m.Put(key(i), i, 0))
	}
	require.Greater(t, cost(m), n)
	require.Zero(t, cost(m))

	next := copyOf(t, m)
	for i := range n / 2 {
		require.NoError(t, next.Put(key(i), -i, 1))
	}
	require.NoError(t, next.Remove(key(0)))
	require.Zero(t, cost(next), "states have changed, keys have not come")
	require.Zero(t, cost(m))

	m.Release()
	m = next
	next = copyOf(t, m) // frees the slot of the key that went
	for i := range 10 {
		require.NoError(t, next.Put(fmt.Sprintf("new%d", i), i, 2))
	}
	require.Less(t, cost(next), n+n/4, "a walk over the old order, and ten keys")
	require.Zero(t, cost(m), "the order of one version is good for another")

	m.Release()
	m = next
	next = copyOf(t, m)
	require.NoError(t, next.Put("k00000a", 1, 3))
	require.NoError(t, next.Put("k00000b", 1, 3))
	require.Less(t, cost(next), 100, "no slot has been freed: two keys are looked for")
	before := next.HeapBytes()
	require.NoError(t, next.Abort())
	require.Equal(t, cost(m) > 0, true, "slots are freed")
	require.GreaterOrEqual(t, before, int64(4*n))
}

// A writer frees slots and gives them to other keys in the middle of the making of an order.
func TestSortedWhileSlotsChange(t *testing.T) {
	m := newStrings[int](t, Options[string]{})
	put := func(m *Map[string, int], keys ...string) {
		for _, k := range keys {
			require.NoError(t, m.Put(k, 1, 1))
		}
	}
	for i := range 10 {
		put(m, fmt.Sprintf("b%d", i))
	}
	for i := range 100 {
		put(m, fmt.Sprintf("a%03d", i), fmt.Sprintf("c%03d", i))
	}
	sortedKeys(m, strings.Compare) // the b's in the middle

	second := copyOf(t, m) // of this one the keys are asked for
	for i := range 10 {
		require.NoError(t, second.Remove(fmt.Sprintf("b%d", i)))
	}
	put(second, "c050a", "c050b")
	second.Seal()
	m.Release() // the next Copy frees the slots of the b's

	third := second
	changed := false
	compare := func(a, b string) int {
		if !changed { // the first call is for the two new keys
			changed = true
			third = copyOf(t, second)
			for i := range 10 {
				put(third, fmt.Sprintf("z%d", i))
			}
		}
		return strings.Compare(a, b)
	}
	got := sortedKeys(second, compare)
	require.True(t, changed)
	require.True(t, slices.IsSorted(got))
	require.Len(t, got, 202, "those of the version")
	require.True(t, slices.IsSorted(sortedKeys(third, strings.Compare)))
	require.Len(t, sortedKeys(third, strings.Compare), 212)
	require.NoError(t, verify(third))
}

// Readers want all keys in order, of versions that the writer left behind, which gives the slots
// of their keys to others.
func TestSortedReadersAndWriter(t *testing.T) {
	defer goleak.VerifyNone(t)
	const keys, versions = 2000, 50
	var wg sync.WaitGroup
	m := newStrings[int](t, Options[string]{DeltaChainThreshold: 4, Background: func(f func()) { wg.Go(f) }})
	name := func(i int) string { return fmt.Sprintf("%06d", i*7919%999_983) }
	for i := range keys {
		require.NoError(t, m.Put(name(i), i, 0))
	}
	for v := range versions {
		old := m
		m = copyOf(t, old)
		wg.Go(func() {
			defer old.Release()
			for range 2 {
				sum, n, last := 0, 0, ""
				for k, e := range old.Sorted(cmp.Compare[string]) {
					if k <= last {
						t.Errorf("version %d: %s after %s", v, k, last)
						return
					}
					sum, n, last = sum+e.State, n+1, k
				}
				if want := keys * (2*v*100 + keys - 1) / 2; n != keys || sum != want {
					t.Errorf("version %d has %d keys of sum %d, want %d", v, n, sum, want)
				}
			}
		})
		for i := range 100 { // the oldest keys go, others come
			require.NoError(t, m.Remove(name(v*100+i)))
			require.NoError(t, m.Put(name(keys+v*100+i), keys+v*100+i, 0))
		}
	}
	wg.Wait()
	require.NoError(t, verify(m))
}
