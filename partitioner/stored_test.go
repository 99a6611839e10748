package partitioner

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/codec"
)

// TestStoredPlacesAsThePartitioner: what places bytes offline agrees with what places keys in a job.
func TestStoredPlacesAsThePartitioner(t *testing.T) {
	type pair struct {
		A string
		B int32
	}
	key, err := codec.KeyFor[pair]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(rt, "n")
		k := pair{rapid.String().Draw(rt, "a"), rapid.Int32().Draw(rt, "b")}
		h := Hash[pair](n)
		place, ok := Stored(h.String())
		require.True(rt, ok)
		require.Equal(rt, h.Partition(k), place(key.Append(nil, k), n))
		m := Murmur2(n)
		place, ok = Stored(m.String())
		require.True(rt, ok)
		require.Equal(rt, m.Partition(k.A), place([]byte(k.A), n))
	})
	place, ok := Stored("hash")
	require.True(t, ok)
	require.Zero(t, place([]byte("k"), 0))
	place, ok = Stored("murmur2")
	require.True(t, ok)
	require.Zero(t, place([]byte("k"), 0))
	_, ok = Stored(Func("mine", 4, func(string) int { return 0 }).String())
	require.False(t, ok)
}
