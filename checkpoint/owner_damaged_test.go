package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only the number of an owner file counts: a damaged one is told, and stops nobody.
func TestDamagedOwner(t *testing.T) {
	forStores(t, func(t *testing.T, m medium) {
		j := newJob(m, nil, counts("counts", 2))
		require.NoError(t, j.run(t.Context(), 3))
		require.NoError(t, j.close())
		store := m.open("damage", nil)
		require.NoError(t, store.Delete(t.Context(), OwnerName(1)))
		putBytes(t, store, OwnerName(1), []byte("no document"))
		j = namedJob("later", m, nil, counts("counts", 2))
		require.NoError(t, j.run(t.Context(), 5))
		require.Equal(t, uint64(2), j.s.Term(), "terms have no holes and are not used twice")
		require.NoError(t, j.close())
		want, _ := reference(t, 5, counts("counts", 2))
		require.Equal(t, want, state0(t, m))
	})
}

// P2: a term is one more than the greatest that was ever used, if owners are gone
// too: the names of state files have it, and an old run looks for the next one.
func TestOwnersAreGone(t *testing.T) {
	for kind := range roots {
		w := &world{m: roots[kind](), b: &board{}}
		require.NoError(t, runJob(t.Context(), w.job(nil), 2)) // term 1
		w = w.die(t, 4, "commits/4", nil)                      // term 2 planned epoch 4
		for _, name := range list(t, w.m, "owner/") {
			require.NoError(t, w.m.open("x", nil).Delete(t.Context(), name))
		}
		j := w.job(nil)
		require.NoError(t, j.run(t.Context(), 5), kind)
		require.EqualValues(t, 3, j.s.Term(), kind)
		require.NoError(t, j.close())
		want, _ := reference(t, 5)
		require.Equal(t, want, state0(t, w.m), kind)
	}
}
