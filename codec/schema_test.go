package codec

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type (
	linked   struct{ Next *linked }
	linkedA  struct{ Next *linkedB }
	linkedB  struct{ Next *linkedA }
	grove    []grove
	renamedT struct{ Trees []renamedT }
	renameV  struct {
		V int64 `msgpack:"Kids"`
	}
)

func schemaOf[T any](t require.TestingT) Schema {
	s, err := SchemaOf[T]()
	require.NoError(t, err)
	return s
}

func keySchema[K comparable](t require.TestingT) Schema {
	k, err := KeyFor[K]()
	require.NoError(t, err)
	return k.Schema()
}

// Fingerprints are stored for ever: a change here makes every root that exists
// refuse its own types.
func TestFingerprintsNeverChange(t *testing.T) {
	for _, c := range []struct {
		schema Schema
		want   string
	}{
		{schemaOf[int](t), "62c76ef8e662a39a94488d73f639cee8"},
		{schemaOf[uint32](t), "5f0a38907f97695fad1bc2b17122d602"},
		{schemaOf[float64](t), "efaf8e0eb70cc4e8c6eff51fd213e66c"},
		{schemaOf[bool](t), "a21678a5b2e2645897af02caebf35780"},
		{schemaOf[string](t), "38ec42d1dfd06d8b0bf74a109d37219b"},
		{schemaOf[[]byte](t), "9e8d6d2d77a17130284c31fed46932ca"},
		{schemaOf[time.Time](t), "e6127addceba406c9e1fd241ebdc057d"},
		{schemaOf[[]string](t), "1397835ad724207100096cecf096adb2"},
		{schemaOf[map[string][2]int](t), "a325f655685311d1f1c01a7422c5d273"},
		{schemaOf[order](t), "78160875b628112b29d5f94712f777c0"},
		{schemaOf[point](t), "f14a164c4af0994bbf95d361622bf675"},
		{schemaOf[linked](t), "fe4641e99f1ec174c14a8354e6e436ca"},
		{schemaOf[selfMade](t), "15f071b0ff30281f1f280a55960aadb0"},
		{keySchema[string](t), "e275790a895385d4ba7c936805fad7b6"},
		{keySchema[int8](t), "0f8707201c8cb764f5fe7f1441504b81"},
		{keySchema[visit](t), "aa51d480479d57404118979246384c63"},
		{Schema{codec: "mine", types: []typeRow{{kind: kindUser, key: -1, elem: -1}}}, "76a363f640e2929dd5bd82097c3f6fcd"},
	} {
		require.Equal(t, c.want, c.schema.Fingerprint(), "%s", c.schema)
	}
}

// report 9
func TestFingerprintIgnoresNames(t *testing.T) {
	type mine struct {
		A int
		B []string
	}
	type tags []string
	same := func(a, b Schema) {
		t.Helper()
		require.Equal(t, a.Fingerprint(), b.Fingerprint())
		require.Empty(t, Compare(a, b))
		require.Empty(t, Compare(b, a))
	}
	same(schemaOf[mine](t), schemaOf[struct {
		A int64
		B tags
	}](t))
	same(schemaOf[mine](t), schemaOf[struct { // moved
		B tags `msgpack:",omitempty"`
		A int64
	}](t))
	same(schemaOf[mine](t), schemaOf[struct {
		A1 int      `msgpack:"A,alias:Old"`
		B2 []string `msgpack:"B"`
	}](t))
	same(schemaOf[cents](t), schemaOf[int64](t))
	same(schemaOf[uint](t), schemaOf[uintptr](t))
	same(schemaOf[linked](t), schemaOf[linkedA](t)) // unrolled
	require.True(t, schemaOf[linked](t).Equal(schemaOf[linkedB](t)))
	same(keySchema[[5]byte](t), keySchema[digest](t))
	same(schemaOf[struct{ base }](t), schemaOf[struct{ ID int64 }](t))
}

func TestFingerprintsTellApart(t *testing.T) {
	all := []Schema{
		schemaOf[int](t), schemaOf[uint](t), schemaOf[int32](t), schemaOf[string](t), schemaOf[[]byte](t), schemaOf[time.Time](t),
		schemaOf[[]int](t), schemaOf[[3]int](t), schemaOf[[4]int](t), schemaOf[map[string]int](t), schemaOf[map[int]string](t),
		schemaOf[*int](t), schemaOf[[4]byte](t), schemaOf[struct{ A int }](t), schemaOf[struct{ B int }](t), schemaOf[struct{ A, B int }](t),
		schemaOf[point](t), schemaOf[struct{ X, Y int }](t), schemaOf[selfMade](t), schemaOf[big.Int](t), schemaOf[netip.Addr](t),
		schemaOf[tree](t), schemaOf[grove](t), schemaOf[renamedT](t), schemaOf[renameV](t), schemaOf[linked](t), schemaOf[[]linked](t),
		schemaOf[struct{ A, B []int }](t), schemaOf[struct {
			A []int
			B []string
		}](t),
		keySchema[int](t), keySchema[string](t), keySchema[[4]byte](t), keySchema[struct{ A, B int }](t), keySchema[struct{ B, A int }](t),
		{codec: "mine", types: []typeRow{{kind: kindUser, key: -1, elem: -1}}}, {},
	}
	seen := map[string]Schema{}
	for i, s := range all {
		require.NotContains(t, seen, s.Fingerprint(), "%s and %s", s, seen[s.Fingerprint()])
		seen[s.Fingerprint()] = s
		for j, o := range all {
			require.Equal(t, i == j, len(Compare(s, o)) == 0, "%s and %s", s, o)
		}
	}
}

func TestSchemaJSON(t *testing.T) {
	b, err := json.Marshal(schemaOf[struct {
		A    int `msgpack:",alias:a"`
		Kids []tree
		M    map[string]*[2]int
	}](t))
	require.NoError(t, err)
	require.Equal(t, `{"codec":"msgpack","types":[`+
		`{"kind":"struct","fields":[{"name":"A","type":1,"aliases":["a"]},{"name":"Kids","type":2},{"name":"M","type":3}]},`+
		`{"kind":"int64"},{"kind":"slice","elem":4},{"kind":"map","key":5,"elem":6},{"kind":"struct","fields":[{"name":"Kids","type":2}]},`+
		`{"kind":"string"},{"kind":"pointer","elem":7},{"kind":"array","len":2,"elem":1}]}`, string(b))
	user := Schema{codec: "mine", types: []typeRow{{kind: kindUser, key: -1, elem: -1}}}
	for _, s := range []Schema{schemaOf[order](t), schemaOf[point](t), keySchema[visit](t), schemaOf[grove](t), schemaOf[int](t), {}, user} {
		b, err := json.Marshal(struct{ S Schema }{s})
		require.NoError(t, err)
		require.NotContains(t, string(b), "statemill") // report 9
		var back struct{ S Schema }
		require.NoError(t, json.Unmarshal(b, &back))
		require.True(t, s.Equal(back.S), "%s", b)
		require.Equal(t, s.Fingerprint(), back.S.Fingerprint())
	}
}

func TestSchemaJSONRefuses(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`{"codec":"msgpack","types":[]}`, "0 types"},
		{`{"codec":"","types":[{"kind":"int64"}]}`, `codec ""`},
		{`{"codec":"msgpack","types":[{"kind":"int64"}],"x":1}`, "unknown field"},
		{`[]`, "cannot unmarshal"},
		{`{"codec":"msgpack","types":[{"kind":"complex"}]}`, `kind "complex" is not known`},
		{`{"codec":"msgpack","types":[{"kind":"int64","len":1}]}`, "do not go with"},
		{`{"codec":"msgpack","types":[{"kind":"array","len":-1,"elem":0}]}`, "do not go with"},
		{`{"codec":"msgpack","types":[{"kind":"slice"}]}`, "do not go with"},
		{`{"codec":"msgpack","types":[{"kind":"slice","elem":1}]}`, "type 1 of 1"},
		{`{"codec":"msgpack","types":[{"kind":"slice","elem":-1}]}`, "do not go with"},
		{`{"codec":"msgpack","types":[{"kind":"struct","fields":[{"name":"A","type":-7}]}]}`, "type -7 of 1"},
		{`{"codec":"msgpack","types":[{"kind":"pointer","elem":0}]}`, "pointer to a pointer"},
		{`{"codec":"msgpack","types":[{"kind":"user"}]}`, "user's codec"},
		{`{"codec":"msgpack","types":[{"kind":"struct","fields":[{"name":"A","type":0},{"name":"B","type":0,"aliases":["A"]}]}]}`, `field "A" twice`},
		{`{"codec":"int64","types":[{"kind":"int32"}]}`, "a int32 in the form"},
		{`{"codec":"x","format":"y","types":[{"kind":"int32"}]}`, "a int32 in the form"},
		{`{"codec":"key","types":[{"kind":"slice","elem":0}]}`, "a slice in a key"},
		{`{"codec":"key","types":[{"kind":"tuple","fields":[{"name":"A","type":0}]}]}`, "contains itself"},
		{`{"codec":"key","types":[{"kind":"array","len":2,"elem":1},{"kind":"tuple","fields":[{"name":"A","type":0}]}]}`, "contains itself"},
	} {
		var s Schema
		err := s.UnmarshalJSON([]byte(c.src))
		require.ErrorIs(t, err, ErrCorrupt, c.src)
		require.ErrorContains(t, err, c.want, c.src)
	}
	many := `{"codec":"msgpack","types":[` + strings.Repeat(`{"kind":"int64"},`, maxTypes) + `{"kind":"int64"}]}`
	require.ErrorIs(t, new(Schema).UnmarshalJSON([]byte(many)), ErrCorrupt)
}

func TestSchemaText(t *testing.T) {
	require.Equal(t, "{ID int64; Name string; At time; When *time; Price float64; Ratio float32; Paid bool; Raw bytes; Sum [5]byte; Tags []string; "+
		"Counts map[string]int64; Byday map[int32]map[string][]uint16; Seen map[[3]string]{}; Next *…; Big own encoding (text); "+
		"Host own encoding (binary); Wait int64; Kids []{Kids …}; Short int8; Long uint64; n string}",
		schemaOf[order](t).String())
	require.Equal(t, "(X int64; Y int64)", schemaOf[point](t).String())
	require.Equal(t, "own encoding (msgpack)", schemaOf[selfMade](t).String())
	require.Equal(t, `values of codec "mine"`, Schema{codec: "mine", types: []typeRow{{kind: kindUser, key: -1, elem: -1}}}.String())
	require.Equal(t, "nothing", Schema{}.String())
	wide := schemaOf[wide](t)
	require.Less(t, len(wide.String()), 3*maxText)
	require.Contains(t, wide.String(), "…")
}

// wide would be a text of 4^6 parts.
type (
	wide  struct{ Alpha, Beta, Gamma, Delta wide1 }
	wide1 struct{ Alpha, Beta, Gamma, Delta wide2 }
	wide2 struct{ Alpha, Beta, Gamma, Delta wide3 }
	wide3 struct{ Alpha, Beta, Gamma, Delta wide4 }
	wide4 struct{ Alpha, Beta, Gamma, Delta []int }
)

// However the types of a schema are numbered and copied, the canonical form is
// the same.
func TestCanonicalFormIsUnique(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom([]Schema{schemaOf[order](rt), schemaOf[grove](rt), schemaOf[linked](rt), schemaOf[wide](rt)}).Draw(rt, "schema")
		// Every row k times, its references to any copy.
		n, k := len(s.types), rapid.IntRange(1, 3).Draw(rt, "copies")
		place := rapid.Permutation(indexes(n*k)).Draw(rt, "places")
		root := 0 // row 0 stays first
		for i, p := range place {
			if p == 0 {
				root = i
			}
		}
		place[0], place[root] = place[root], place[0]
		pick := func(i int) int {
			if i < 0 {
				return -1
			}
			return place[i+n*rapid.IntRange(0, k-1).Draw(rt, "copy")]
		}
		rows := make([]typeRow, n*k)
		for i := range rows {
			r := s.types[i%n]
			r.key, r.elem = pick(r.key), pick(r.elem)
			r.fields = append([]fieldRow{}, r.fields...)
			for j := range r.fields {
				r.fields[j].is = pick(r.fields[j].is)
			}
			rows[place[i]] = r
		}
		require.True(rt, s.Equal(Schema{codec: s.codec, format: s.format, types: canonical(rows)}))
	})
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
