package codec

import (
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func unhex(t require.TestingT, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// FuzzPrint: the printer takes exactly the bytes that the codec takes, and what
// it writes is JSON.
func FuzzPrint(f *testing.F) {
	for _, b := range hostile() {
		f.Add(b)
	}
	c, err := For[order]()
	require.NoError(f, err)
	good, err := c.Append(nil, order{Tags: []string{"a"}, Counts: map[string]int{"b": 2, "a": -1}, Kids: []tree{{}}})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte{0x82, 0xa1, 'B', 0xa1, 'x', 0xa1, 'A', 0x01})
	f.Add([]byte{0x92, 0xc7, 12, 0xff, 0, 0, 0, 1, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xd6, 0xff, 1, 2, 3, 4})
	fuzzAll(f, printTarget[v1Added](f), printTarget[v1Aliased](f), printTarget[tree](f), printTarget[[]string](f), printTarget[[]time.Time](f),
		printTarget[map[string]map[int8][]float32](f), printTarget[point](f), printTarget[map[uint16]*float64](f), printTarget[struct {
			B []byte
			D digest
			P *v1
		}](f), printTarget[[2]bool](f),
		printTarget[int](f), printTarget[int8](f), printTarget[uint32](f), printTarget[float32](f), printTarget[bool](f), printTarget[string](f),
		printTarget[[]byte](f), printTarget[time.Time](f), printKeyTarget[visit](f), printKeyTarget[triple](f), printKeyTarget[allInts](f),
		printKeyTarget[float64](f), printKeyTarget[string](f))
}

func printTarget[T any](f *testing.F) target {
	c, err := For[T]()
	require.NoError(f, err)
	s := schemaOf[T](f)
	return func(t *testing.T, src []byte) {
		_, err := c.Decode(src)
		printsIf(t, s, src, err == nil)
	}
}

func printKeyTarget[K comparable](f *testing.F) target {
	c, err := KeyFor[K]()
	require.NoError(f, err)
	s := c.Schema()
	return func(t *testing.T, src []byte) {
		_, err := c.Decode(src)
		printsIf(t, s, src, err == nil)
	}
}

func printsIf(t *testing.T, s Schema, src []byte, decodes bool) {
	out, err := s.AppendJSON(nil, src)
	require.Equal(t, decodes, err == nil, "%s: %v", s, err)
	if err != nil {
		require.ErrorIs(t, err, ErrCorrupt)
		return
	}
	require.True(t, json.Valid(out), "%s", out)
	// ×50 for a time of six bytes, more only for field names.
	require.LessOrEqual(t, len(out), 64+100*len(src))
}

// FuzzSchema: a schema from a damaged file is refused or is one that any bytes
// may be printed by.
func FuzzSchema(f *testing.F) {
	for _, s := range []Schema{schemaOf[order](f), schemaOf[point](f), schemaOf[grove](f), keySchema[visit](f), schemaOf[int](f)} {
		b, err := json.Marshal(s)
		require.NoError(f, err)
		f.Add(b, []byte{0x91, 0xc0})
	}
	f.Add([]byte(`{"codec":"key","types":[{"kind":"array","len":1000000000000,"elem":1},{"kind":"tuple"}]}`), []byte{})
	f.Fuzz(func(t *testing.T, text, src []byte) {
		var s Schema
		if err := s.UnmarshalJSON(text); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		b, err := json.Marshal(s)
		require.NoError(t, err)
		var back Schema
		require.NoError(t, json.Unmarshal(b, &back))
		require.True(t, s.Equal(back), "%s", b)
		require.Equal(t, s.Fingerprint(), back.Fingerprint())
		require.Empty(t, Compare(s, back))
		if out, err := s.AppendJSON(nil, src); err == nil {
			require.True(t, json.Valid(out), "%s", out)
		}
	})
}
