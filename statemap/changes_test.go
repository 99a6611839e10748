package statemap

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Changes gives each key's state before and after: applied to a sum over the states of the version
// before, it makes that of the version, also after aborts and a move to a smaller table.
func TestChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m, err := New[string, int](Options[string]{})
	require.NoError(t, err)
	for i := range 5000 {
		require.NoError(t, m.Put(fmt.Sprint(i), i, 1))
	}
	sumOf := func(m *Map[string, int]) (sum int) {
		for _, e := range m.All() {
			sum += e.State
		}
		return sum
	}
	apply := func(m *Map[string, int], sum int) int {
		seen := map[string]bool{}
		require.NoError(t, m.Changes(func(c *Change[string, int]) bool {
			require.False(t, seen[c.Key])
			seen[c.Key] = true
			require.True(t, c.Was || c.Is)
			sum += c.After - c.Before
			return true
		}))
		return sum
	}
	sum := apply(m, 0)
	require.Equal(t, sumOf(m), sum, "a first version's changes are all keys")
	for round := range 60 {
		next, err := m.Copy()
		require.NoError(t, err)
		for range 300 {
			k := fmt.Sprint(rng.IntN(6000))
			require.NoError(t, next.Put(k, rng.IntN(1000), int64(round)))
			if rng.IntN(2) == 0 {
				require.NoError(t, next.Remove(k))
			}
		}
		if round == 40 { // the next version begins in a smaller table
			for i := range 6000 {
				if i%10 > 0 {
					require.NoError(t, next.Remove(fmt.Sprint(i)))
				}
			}
		}
		next.Seal()
		n := 0
		require.NoError(t, next.Changes(func(*Change[string, int]) bool { n++; return false }))
		require.Equal(t, 1, n, "it stops when told")
		got := apply(next, sum)
		require.Equal(t, sumOf(next), got, "round %d", round)
		if round%5 == 4 {
			require.NoError(t, next.Abort())
			continue
		}
		m.Release()
		m, sum = next, got
	}
	m.Release()
	require.ErrorIs(t, m.Changes(func(*Change[string, int]) bool { return true }), ErrReleased)
}
