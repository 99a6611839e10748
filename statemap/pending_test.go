package statemap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A key is removed, put again, moved to a table of its own with that version, and
// the version is taken back there: its slot is freed like any other.
func TestRemovedKeyOfADetachedTable(t *testing.T) {
	v1, err := New[string, int](Options[string]{NoAutoDetach: true})
	require.NoError(t, err)
	require.NoError(t, v1.Put("a", 1, 1))
	require.NoError(t, v1.Put("b", 1, 1))
	next := func(m *Map[string, int]) *Map[string, int] {
		c, err := m.Copy()
		require.NoError(t, err)
		return c
	}
	v2 := next(v1)
	require.NoError(t, v2.Remove("a"))
	v3 := next(v2)
	v1.Release() // so that nobody reads through the removal
	require.NoError(t, v3.Put("a", 3, 3))
	v4 := next(v3)
	require.NoError(t, v4.Abort())
	v3.h.(interface{ detach(withOlder bool) }).detach(true)
	require.NoError(t, v3.Abort())
	require.NoError(t, verify(v2))
	again := next(v2)
	require.NoError(t, verify(again))
	require.NoError(t, again.Put("c", 4, 4))
	after := next(again)
	require.NoError(t, verify(after))
	require.Equal(t, 2, after.Len())
}
