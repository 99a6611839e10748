package statefile

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReport34: five bad bytes as a state are an error of the file, and cost no memory.
func TestReport34(t *testing.T) {
	hostileState[[]int64](t, []byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	hostileState[struct{ B []byte }](t, []byte{0x81, 0xa1, 'B', 0xc6, 0x7f, 0xff, 0xff, 0xff})
	hostileState[map[string]int64](t, []byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	hostileState[struct{ A, B int64 }](t, bytes.Repeat([]byte{0x91}, 100_000))
}

func hostileState[S any](t *testing.T, state []byte) {
	k := newKit[string, S](t)
	i := info(1, None)
	i.Kind, i.KeyCodec, i.StateCodec = Delta, "string", k.dec.state.ID()
	raw := append([]byte{0, 2, 'k', 1, 0, 0}, appendColumn(nil, []uint64{uint64(len(state))})...)
	var out bytes.Buffer
	var w writer
	require.NoError(t, w.begin(&out, i))
	require.NoError(t, w.frame(append(raw, state...), 1, 0))
	_, err := w.end()
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = k.dec.Load(&out, "f", want(Delta, 1), newMap[string, S](t))
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, ErrCorrupt)
	assert.ErrorContains(t, err, "state 0 of the block cannot be decoded")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

// TestReport33: a time comes back in UTC, whatever zone it was in, also inside other states.
func TestReport33(t *testing.T) {
	zone := time.FixedZone("somewhere", 8*3600)
	type visit struct{ First, Last time.Time }
	at := time.Date(2021, 6, 3, 0, 0, 0, 123456789, time.UTC)
	k := newKit[string, visit](t)
	m := newMap[string, visit](t)
	require.NoError(t, m.Put("k", visit{Last: at.In(zone)}, 1))
	require.NoError(t, m.Put("old", visit{Last: time.Date(1900, 1, 2, 3, 4, 5, 6, time.UTC)}, 1))
	file, _ := k.delta(info(1, S2), m)
	loaded := newMap[string, visit](t)
	k.load(file, want(Delta, 1), loaded)
	v, _, err := loaded.Get("k")
	require.NoError(t, err)
	assert.Equal(t, visit{Last: at}, v)
	assert.True(t, v.First.IsZero())
	v, _, err = loaded.Get("old")
	require.NoError(t, err)
	assert.Equal(t, time.Date(1900, 1, 2, 3, 4, 5, 6, time.UTC), v.Last)
}
