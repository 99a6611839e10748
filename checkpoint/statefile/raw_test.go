package statefile

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/codec"
)

// TestRawWritesTheSameBytes: rows that were read from any file and written
// again are the same file.
func TestRawWritesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		key, err := codec.KeyFor[string]()
		require.NoError(rt, err)
		state, err := codec.For[int64]()
		require.NoError(rt, err)
		in := info(rapid.Int64Range(1, 100).Draw(rt, "version"), Compression(rapid.IntRange(0, 2).Draw(rt, "compression")))
		in.Kind = Kind(rapid.IntRange(1, 2).Draw(rt, "kind"))
		in.Deadlines = rapid.Bool().Draw(rt, "deadlines")
		in.Chain = Sum{1, 2}
		var want bytes.Buffer
		enc := NewEncoder(key, state)
		require.NoError(rt, enc.Begin(&want, in))
		for i := range rapid.IntRange(0, 3*blockRecords/2).Draw(rt, "rows") {
			k := word(i)
			switch {
			case in.Kind == Delta && i%5 == 3:
				require.NoError(rt, enc.Remove(k))
			case in.Deadlines && i%7 == 2:
				require.NoError(rt, enc.Put(k, 0, ^int64(i)))
			default:
				require.NoError(rt, enc.Put(k, int64(i)*int64(i), int64(i)*second))
			}
		}
		sum, err := enc.End()
		require.NoError(rt, err)

		var got bytes.Buffer
		var raw RawEncoder
		rd, err := NewReader(bytes.NewReader(want.Bytes()), "f", nil)
		require.NoError(rt, err)
		require.NoError(rt, raw.Begin(&got, rd.Info()))
		var f Frame
		var b Block
		for {
			err := rd.Next(&f)
			if err == io.EOF {
				break
			}
			require.NoError(rt, err)
			require.NoError(rt, b.Decode(&f))
			for i := range b.Len() {
				if b.Removed(i) {
					require.NoError(rt, raw.Remove(b.Key(i)))
					continue
				}
				s, _ := b.State(i)
				require.NoError(rt, raw.Put(b.Key(i), s, b.Time(i)))
			}
		}
		again, err := raw.End()
		require.NoError(rt, err)
		require.Equal(rt, sum, again)
		require.Equal(rt, want.Bytes(), got.Bytes())
	})
}

func TestRawMisuse(t *testing.T) {
	var raw RawEncoder
	require.Error(t, raw.Put(nil, nil, 0))
	_, err := raw.End()
	require.Error(t, err)
	bad := info(1, None)
	require.Error(t, raw.Begin(io.Discard, bad), "a kind is missing")
	bad.Kind = Snapshot
	require.NoError(t, raw.Begin(io.Discard, bad))
	require.ErrorContains(t, raw.Remove([]byte("k")), "only a delta")
	_, err = raw.End()
	require.Error(t, err, "a file that failed cannot be ended")
}
