package codec

import (
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

func printed[T any](t require.TestingT, v T) string {
	c, err := For[T]()
	require.NoError(t, err)
	b, err := c.Append(nil, v)
	require.NoError(t, err)
	out, err := schemaOf[T](t).AppendJSON([]byte("> "), b)
	require.NoError(t, err)
	require.Equal(t, "> ", string(out[:2]))
	require.True(t, json.Valid(out[2:]), "%s", out)
	return string(out[2:])
}

func printedKey[K comparable](t require.TestingT, k K) string {
	c, err := KeyFor[K]()
	require.NoError(t, err)
	out, err := c.Schema().AppendJSON(nil, c.Append(nil, k))
	require.NoError(t, err)
	require.True(t, json.Valid(out), "%s", out)
	return string(out)
}

// Section 12 of the design: offline tools know no Go type.
func TestPrintValues(t *testing.T) {
	at := time.Date(2021, 6, 3, 1, 2, 3, 4, time.FixedZone("east", 8*3600)) // report 33
	require.Equal(t, `{"ID":7,"Name":"x","At":"2021-06-03T01:02:03.000000004Z","When":"2021-06-03T01:02:03.000000004Z","Price":"-Inf","Ratio":0.5,`+
		`"Paid":true,"Raw":"","Sum":"AQIDBAU=","Tags":["a",""],"Counts":{"a":-1099511627776,"b":2},"Byday":{"-1":{"p":null,"q":[1,65535]},"5":{}},`+
		`"Seen":[{"key":["a","",""],"value":{}},{"key":["b","",""],"value":{}}],"Next":{"ID":0,"Name":"inner","At":"0001-01-01T00:00:00Z",`+
		`"When":null,"Price":0,"Ratio":0,"Paid":false,"Raw":null,"Sum":"AAAAAAA=","Tags":null,"Counts":null,"Byday":null,"Seen":null,"Next":null,`+
		`"Big":"0","Host":"","Wait":0,"Kids":null,"Short":0,"Long":0},"Big":"1152921504606846976","Host":"AAAAAAAAAAAAAAAAAAAAAQ==",`+
		`"Wait":3600000000000,"Kids":[{"Kids":[]},{"Kids":null}],"Short":-128,"Long":18446744073709551615,"n":"n"}`, printed(t, someOrder()))
	require.Equal(t, `-65`, printed(t, -65))
	require.Equal(t, `[-128,-32768,-2147483648]`, "["+printed(t, int8(-128))+","+printed(t, int16(-32768))+","+printed(t, int32(math.MinInt32))+"]")
	require.Equal(t, `[255,65535,4294967295]`, "["+printed(t, uint8(255))+","+printed(t, uint16(65535))+","+printed(t, uint32(math.MaxUint32))+"]")
	require.Equal(t, `18446744073709551615`, printed(t, uint64(math.MaxUint64)))
	require.Equal(t, `["NaN","+Inf",-0,1e+21,1e-07,0.1,100000]`, printed(t, []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), 1e21, 1e-7, .1, 1e5}))
	require.Equal(t, `0.1`, printed(t, float32(.1)))
	require.Equal(t, `1.5`, printed(t, 1.5))
	require.Equal(t, `true`, printed(t, true))
	require.Equal(t, `"\"\\\n\t\u001b\u0000é"`, printed(t, "\"\\\n\t\x1b\x00é"))
	require.Equal(t, `{"base64":"/w=="}`, printed(t, "\xff"))
	require.Equal(t, `"AQI="`, printed(t, []byte{1, 2}))
	require.Equal(t, `null`, printed(t, []byte(nil)))
	require.Equal(t, `"2021-06-02T17:02:03.000000004Z"`, printed(t, at))
	require.Equal(t, `{"X":1,"Y":2}`, printed(t, point{X: 1, Y: 2}))
	require.Equal(t, `{"-10":0,"-9":0,"0":0,"9":0,"10":0,"300":0}`, printed(t, map[int]int{-9: 0, 10: 0, 9: 0, -10: 0, 0: 0, 300: 0}))
	require.Equal(t, `[{"key":"a","value":1},{"key":{"base64":"/w=="},"value":2}]`, printed(t, map[string]int{"a": 1, "\xff": 2}))
	require.Equal(t, `{"2021-06-02T17:02:03.000000004Z":true}`, printed(t, map[time.Time]bool{at: true}))
	require.Equal(t, `{"false":0,"true":1}`, printed(t, map[bool]int{true: 1, false: 0}))
	require.Equal(t, `{"AQIDBA==":1}`, printed(t, map[netip.Addr]int{netip.MustParseAddr("1.2.3.4"): 1}))
	require.Equal(t, `[[1,2],[3,4]]`, printed(t, [2][2]int{{1, 2}, {3, 4}}))
}

func TestPrintKeys(t *testing.T) {
	require.Equal(t, `"a\u0000b"`, printedKey(t, "a\x00b"))
	require.Equal(t, `-5`, printedKey(t, -5))
	require.Equal(t, `[-1,-1,-1]`, "["+printedKey(t, int8(-1))+","+printedKey(t, int16(-1))+","+printedKey(t, int32(-1))+"]")
	require.Equal(t, `[1,1,1,1]`, "["+printedKey(t, uint8(1))+","+printedKey(t, uint16(1))+","+printedKey(t, uint32(1))+","+printedKey(t, uint(1))+"]")
	require.Equal(t, `[-1.5,-1.5,true]`, "["+printedKey(t, -1.5)+","+printedKey(t, float32(-1.5))+","+printedKey(t, true)+"]")
	require.Equal(t, `"AQIDBAU="`, printedKey(t, digest{1, 2, 3, 4, 5}))
	require.Equal(t, `["a","","c"]`, printedKey(t, triple{"a", "", "c"}))
	type inner struct {
		_ int
		s string
		N [2]int8 `msgpack:"n"`
	}
	require.Equal(t, `{"In":{"s":"x\u0000","n":[1,-1]},"Z":2}`, printedKey(t, struct {
		In inner
		Z  uint16
	}{inner{s: "x\x00", N: [2]int8{1, -1}}, 2}))
	require.Equal(t, `{}`, printedKey(t, struct{ A, B [1 << 40]struct{} }{}))
	require.Equal(t, `[]`, printedKey(t, [0]int{}))
}

// Values of types that encode themselves are shown as the MessagePack they are.
func TestPrintOwnEncodings(t *testing.T) {
	require.Equal(t, `5`, printed(t, selfMade{5}))
	require.Equal(t, `["in"]`, printed(t, []boxed{{"in"}}))
	s := schemaOf[selfMade](t)
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, `null`}, {true, `true`}, {-3, `-3`}, {uint64(math.MaxUint64), `18446744073709551615`}, {int64(math.MinInt64), `-9223372036854775808`},
		{1.5, `1.5`}, {float32(0.1), `0.1`}, {"a", `"a"`}, {[]byte{1}, `"AQ=="`}, {[]any{1, "x"}, `[1,"x"]`},
		{map[string]any{"b": 1}, `{"b":1}`}, {map[any]any{int8(1): "x"}, `{"1":"x"}`}, {time.Unix(1, 0), `"1970-01-01T00:00:01Z"`},
		{msgpack.RawMessage{0xd4, 5, 9}, `{"ext":5,"base64":"CQ=="}`}, {msgpack.RawMessage{0xc7, 2, 0xfe, 9, 9}, `{"ext":-2,"base64":"CQk="}`},
		{msgpack.RawMessage{0x82, 1, 2, 1, 3}, `[{"key":1,"value":2},{"key":1,"value":3}]`},
		{msgpack.RawMessage{0x82, 0x90, 2, 1, 3}, `[{"key":1,"value":3},{"key":[],"value":2}]`},
		{msgpack.RawMessage{0xdc, 0, 1, 0xdf, 0, 0, 0, 0}, `[{}]`},
	} {
		b, err := msgpack.Marshal(c.value)
		require.NoError(t, err)
		out, err := s.AppendJSON(nil, b)
		require.NoError(t, err)
		require.Equal(t, c.want, string(out))
		require.True(t, json.Valid(out))
	}
}

// Fields come in the order of the type, whatever the order of the bytes; of a
// field that comes twice the last one counts, as in the decoder; an old name
// is shown as the new one.
func TestPrintFieldOrder(t *testing.T) {
	s := schemaOf[struct {
		A int `msgpack:",alias:Old"`
		B string
		C *int
	}](t)
	for src, want := range map[string]string{
		"82a142a178a14101":         `{"A":1,"B":"x"}`,
		"83a14101a142a178a14102":   `{"A":2,"B":"x"}`,
		"81a34f6c6405":             `{"A":5}`,
		"82d90141cd0100da000143c0": `{"A":256,"C":null}`,
		"80":                       `{}`,
	} {
		out, err := s.AppendJSON(nil, unhex(t, src))
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}

func TestPrintUnknownCodec(t *testing.T) {
	out, err := Schema{codec: "mine", types: userRows()}.AppendJSON(nil, []byte{1, 2})
	require.NoError(t, err)
	require.Equal(t, `"AQI="`, string(out))
	_, err = Schema{}.AppendJSON(nil, nil)
	require.ErrorContains(t, err, "describes nothing")
}

// report 34
func TestPrintHostileBytes(t *testing.T) {
	schemas := []Schema{schemaOf[[]int](t), schemaOf[order](t), schemaOf[tree](t), schemaOf[grove](t), schemaOf[map[string]int](t),
		schemaOf[selfMade](t), schemaOf[int](t), schemaOf[bool](t), schemaOf[float64](t), keySchema[visit](t), keySchema[[4]int](t)}
	deep := append(bytes.Repeat([]byte{0x91}, 8_000_000), 0xc0)
	for _, src := range append(hostile(), deep) {
		for _, s := range schemas {
			before := allocated()
			dst := []byte("kept")
			out, err := s.AppendJSON(dst, src)
			require.ErrorIs(t, err, ErrCorrupt, "%s: % x", s, src[:min(len(src), 8)])
			require.Equal(t, "kept", string(out))
			require.Less(t, allocated()-before, uint64(16<<20), "bytes allocated")
		}
	}
	for _, src := range []string{"c0", "a161", "02", "d6ff"} {
		_, err := schemaOf[time.Time](t).AppendJSON(nil, unhex(t, src))
		require.ErrorIs(t, err, ErrCorrupt)
	}
	c, err := For[order]()
	require.NoError(t, err)
	good, err := c.Append(nil, someOrder())
	require.NoError(t, err)
	for i := range good {
		_, err := schemaOf[order](t).AppendJSON(nil, good[:i])
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

// What prints as numbers, texts and bools is what encoding/json makes of the
// decoded value.
func TestPrintAgreesWithJSON(t *testing.T) {
	type all struct {
		I int
		U uint64
		S string
		B []byte
		M map[string]int16
		P *bool
		L []struct{ X int8 }
		T time.Time
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := all{
			I: rapid.Int().Draw(rt, "i"), U: rapid.Uint64().Draw(rt, "u"), S: rapid.String().Draw(rt, "s"),
			B: rapid.SliceOf(rapid.Byte()).Draw(rt, "b"), M: rapid.MapOf(rapid.String(), rapid.Int16()).Draw(rt, "m"),
			P: rapid.Ptr(rapid.Bool(), true).Draw(rt, "p"), T: time.Unix(rapid.Int64Range(-1e9, 1e11).Draw(rt, "t"), 5).UTC(),
			L: rapid.SliceOf(rapid.Map(rapid.Int8(), func(x int8) struct{ X int8 } { return struct{ X int8 }{x} })).Draw(rt, "l"),
		}
		want, err := json.Marshal(v)
		require.NoError(rt, err)
		require.JSONEq(rt, string(want), printed(rt, v))
		require.JSONEq(rt, jsonOf(rt, v.S), printedKey(rt, v.S))
		require.JSONEq(rt, jsonOf(rt, []int64{int64(v.I), -1}), printedKey(rt, [2]int64{int64(v.I), -1}))
	})
}

func jsonOf(t require.TestingT, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
