package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

type name string

// packs checks that what another writer of MessagePack makes of a value comes back, and
// that no part of it does, nor what has something behind it.
func packs[T any](t *testing.T, v T) {
	t.Helper()
	b, err := msgpack.Marshal(v)
	require.NoError(t, err)
	decode := Msgpack[T]().Decode
	got, err := decode(b)
	require.NoError(t, err, "%T % x", v, b)
	if at, ok := any(v).(time.Time); ok {
		require.True(t, at.Equal(any(got).(time.Time)))
	} else {
		require.Equal(t, v, got)
	}
	for n := range b {
		_, err = decode(b[:n])
		require.Error(t, err, "%T % x", v, b[:n]) // report 34
	}
	_, err = decode(append(b, 0))
	require.Error(t, err, "%T", v)
}

// TestMsgpackOfScalars: keys are mostly such, and their writers do not know package codec.
func TestMsgpackOfScalars(t *testing.T) { // report 30, report 34
	packs(t, "abc")
	packs(t, "")
	packs(t, name("a name"))
	packs(t, true)
	packs(t, 5)
	packs(t, -7)
	packs(t, int8(-100))
	packs(t, int16(300))
	packs(t, int32(70000))
	packs(t, int64(1<<40))
	packs(t, uint(5))
	packs(t, uint8(200))
	packs(t, uint16(300))
	packs(t, uint32(1<<31))
	packs(t, uint64(1<<63))
	packs(t, float32(1.5))
	packs(t, 2.25)
	packs(t, []byte("bytes"))
	packs(t, time.Unix(1700000000, 5).UTC())
	packs(t, order{"tea", 3})
	packs(t, map[string]int{"a": 1})
	packs(t, []string{"a"})

	for _, b := range [][]byte{{0x05}, {0xcc, 5}, {0xcd, 0, 5}, {0xd3, 0, 0, 0, 0, 0, 0, 0, 5}} {
		n, err := Msgpack[int]().Decode(b)
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	_, err := Msgpack[int8]().Decode([]byte{0xcd, 1, 0})
	require.Error(t, err, "256 in one byte")
	_, err = Msgpack[string]().Decode([]byte("abc"))
	require.Error(t, err, "no MessagePack")
	_, err = Values(Msgpack[int]())(Record{Value: []byte("\xa3abc")})
	require.ErrorAs(t, err, new(*DecodeError))
}

func FuzzMsgpack(f *testing.F) {
	f.Add([]byte("\xa3abc"))
	f.Add([]byte{0xd3, 0, 0, 0, 0, 0, 0, 0, 5})
	f.Add([]byte{0xc6, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Msgpack[string]().Decode(b); err == nil && len(s) >= max(1, len(b)) {
			t.Fatalf("%q of %q", s, b)
		}
		if p, err := Msgpack[[]byte]().Decode(b); err == nil && len(p) >= max(1, len(b)) {
			t.Fatalf("%q of %q", p, b)
		}
		_, _ = Msgpack[int32]().Decode(b)
		_, _ = Msgpack[time.Time]().Decode(b)
	})
}
