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
