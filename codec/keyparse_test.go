package codec

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// parses holds that what a key prints as is read back as the key.
func parses[K comparable](t *testing.T, gen *rapid.Generator[K]) {
	t.Helper()
	c, err := KeyFor[K]()
	require.NoError(t, err)
	s := c.Schema()
	rapid.Check(t, func(rt *rapid.T) {
		b := c.Append(nil, gen.Draw(rt, "key"))
		text, err := s.AppendJSON(nil, b)
		require.NoError(rt, err)
		if s.types[0].kind == kindString {
			text = b // a whole string stands for itself
		}
		back, err := s.AppendKey([]byte("x"), string(text))
		require.NoError(rt, err, "%s", text)
		require.Equal(rt, "x"+string(b), string(back), "%s", text)
	})
}

func TestKeysAreReadAsTheyArePrinted(t *testing.T) {
	str := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	parses(t, str)
	parses(t, rapid.Int())
	parses(t, rapid.Int8())
	parses(t, rapid.Uint64())
	parses(t, rapid.Bool())
	parses(t, rapid.Float32())
	parses(t, rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64})))
	parses(t, rapid.Custom(func(rt *rapid.T) (d digest) {
		copy(d[:], rapid.SliceOfN(rapid.Byte(), len(d), len(d)).Draw(rt, "digest"))
		return d
	}))
	parses(t, rapid.Custom(func(rt *rapid.T) triple {
		return triple{str.Draw(rt, "0"), str.Draw(rt, "1"), str.Draw(rt, "2")}
	}))
	parses(t, rapid.Custom(func(rt *rapid.T) visit {
		return visit{user: str.Draw(rt, "user"), day: rapid.Int32().Draw(rt, "day"), vip: rapid.Bool().Draw(rt, "vip")}
	}))
	parses(t, rapid.Custom(func(rt *rapid.T) reading {
		return reading{at: [2]float64{rapid.Float64().Draw(rt, "x"), 0}, f: rapid.Float32().Draw(rt, "f")}
	}))
	parses(t, rapid.Just(emptyKey{}))
	parses(t, rapid.Just([3]emptyKey{}))
}

func TestTextsThatAreNoKey(t *testing.T) {
	for _, c := range []struct {
		s    Schema
		text string
		says string
	}{
		{keySchema[int8](t), "128", "128 is no int8"},
		{keySchema[uint16](t), "-1", "-1 is no uint16"},
		{keySchema[int](t), "1.5", "1.5 is no int64"},
		{keySchema[int](t), `"1"`, "want a number of type int64"},
		{keySchema[int](t), "", "not written as int64"},
		{keySchema[int](t), "1 2", "goes on after"},
		{keySchema[int](t), strings.Repeat("z", 1000), "…"},
		{keySchema[bool](t), "yes", "not written as bool"},
		{keySchema[bool](t), "1", "want true or false"},
		{keySchema[float64](t), `"NaN"`, "want a number of type float64"},
		{keySchema[float64](t), `NaN`, "not written as float64"},
		{keySchema[float32](t), "1e300", "no float32"},
		{keySchema[digest](t), "AQI=", "2 bytes where 5 are wanted"},
		{keySchema[digest](t), "*", "illegal base64"},
		{keySchema[digest](t), `"AQI="`, "2 bytes where 5"},
		{keySchema[triple](t), `["a","b"]`, "2 items where 3 are wanted"},
		{keySchema[triple](t), `{}`, "want an array"},
		{keySchema[triple](t), `["a","b",3]`, "item 2: want a string"},
		{keySchema[triple](t), `["a","b",{"base64":1}]`, "item 2: want a string"},
		{keySchema[visit](t), `{"user":"u","day":1}`, "field vip is missing"},
		{keySchema[visit](t), `{"user":"u","day":1,"vip":true,"more":1}`, `no field "more"`},
		{keySchema[visit](t), `[]`, "want an object"},
		{keySchema[visit](t), `{"user":"u","day":1e1,"vip":true}`, "field day: 1e1 is no int32"},
		{keySchema[visit](t), `{"user":"u","day":null,"vip":true}`, "field day: want a number"},
	} {
		out, err := c.s.AppendKey([]byte("x"), c.text)
		require.ErrorIs(t, err, ErrKeyText, c.text)
		require.ErrorContains(t, err, c.says)
		require.Less(t, len(err.Error()), 400)
		require.Equal(t, "x", string(out))
	}
	value, err := SchemaOf[int]()
	require.NoError(t, err)
	_, err = value.AppendKey(nil, "1")
	require.ErrorContains(t, err, "no schema of keys")
	_, err = Schema{}.AppendKey(nil, "1")
	require.ErrorContains(t, err, "no schema of keys")
}

// FuzzKeyText: a text is a key exactly if its bytes print, and those read back the same; never a panic.
func FuzzKeyText(f *testing.F) {
	schemas := []Schema{
		keySchema[string](f), keySchema[int](f), keySchema[uint8](f), keySchema[float32](f), keySchema[float64](f), keySchema[bool](f),
		keySchema[digest](f), keySchema[triple](f), keySchema[visit](f), keySchema[reading](f), keySchema[[3]emptyKey](f), keySchema[allInts](f),
	}
	for i, s := range []string{"a", "-1", "7", "1e9", `"+Inf"`, "true", "AQIDBAU=", `["a","b",{"base64":"/w=="}]`, `{"user":"u","day":1,"vip":true}`,
		`{"at":[1,-0],"f":"-Inf"}`, "[]", "{}"} {
		f.Add(uint8(i), s)
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		s := schemas[int(which)%len(schemas)]
		b, err := s.AppendKey(nil, text)
		if err != nil {
			require.ErrorIs(t, err, ErrKeyText)
			return
		}
		printed, err := s.AppendJSON(nil, b)
		require.NoError(t, err)
		if s.types[0].kind == kindString {
			printed = b
		}
		again, err := s.AppendKey(nil, string(printed))
		require.NoError(t, err, "%s", printed)
		require.Equal(t, b, again)
	})
}
