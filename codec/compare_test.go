package codec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type (
	v1 struct {
		A int
		B string
	}
	v1Added struct {
		A int
		B string
		C string
	}
	v1Removed struct{ A int }
	v1Retyped struct {
		A string
		B string
	}
	v1Renamed struct {
		A  int
		B2 string
	}
	v1Aliased struct {
		A  int
		B2 string `msgpack:",alias:B"`
	}
)

// report 10, K20
func TestCompare(t *testing.T) {
	cases := []struct {
		name     string
		old, new Schema
		want     []string
	}{
		{"added (i)", schemaOf[v1](t), schemaOf[v1Added](t),
			[]string{"compatible: field C (string) was added; stored values read it as zero"}},
		{"removed (ii)", schemaOf[v1](t), schemaOf[v1Removed](t),
			[]string{"incompatible: field B (string) was removed; keep it, or give a migration"}},
		{"retyped (iii)", schemaOf[v1](t), schemaOf[v1Retyped](t),
			[]string{"incompatible: field A was int64, is now string; change it back, or give a migration"}},
		{"renamed (iv)", schemaOf[v1](t), schemaOf[v1Renamed](t), []string{
			"incompatible: field B (string) was removed; if it was renamed, say so by the tag `msgpack:\"B2,alias:B\"`; keep it, or give a migration",
			"compatible: field B2 (string) was added; stored values read it as zero"}},
		{"renamed by alias (iv)", schemaOf[v1](t), schemaOf[v1Aliased](t),
			[]string{"compatible: field B was renamed to B2 by an alias"}},
		{"two into one", schemaOf[struct{ B, B2 string }](t), schemaOf[struct {
			B2 string `msgpack:",alias:B"`
		}](t), []string{
			"compatible: field B was renamed to B2 by an alias",
			"incompatible: field B2 and B would both be read into B2; take the alias away"}},
		{"deep", schemaOf[map[string][]struct{ P *v1 }](t), schemaOf[map[string][]struct{ P *v1Retyped }](t),
			[]string{"incompatible: field [][].P.A was int64, is now string; change it back, or give a migration"}},
		{"map key", schemaOf[map[string]int](t), schemaOf[map[int]int](t),
			[]string{"incompatible: field [key] was string, is now int64; change it back, or give a migration"}},
		{"recursive", schemaOf[tree](t), schemaOf[struct {
			Kids []struct{ Kids []tree }
			New  time.Time
		}](t), []string{"compatible: field New (time) was added; stored values read it as zero"}},
		{"value widened", schemaOf[int32](t), schemaOf[int](t), []string{"compatible: the value was widened from int32 to int64"}},
		{"value narrowed", schemaOf[int](t), schemaOf[int32](t),
			[]string{"incompatible: the value was int64, is now int32; change it back, or give a migration"}},
		{"value signed", schemaOf[uint8](t), schemaOf[int](t),
			[]string{"incompatible: the value was uint8, is now int64; change it back, or give a migration"}},
		{"value float", schemaOf[float32](t), schemaOf[float64](t),
			[]string{"incompatible: the value was float32, is now float64; change it back, or give a migration"}},
		{"value text", schemaOf[string](t), schemaOf[[]byte](t),
			[]string{"incompatible: the value was string, is now bytes; change it back, or give a migration"}},
		{"value into struct", schemaOf[int](t), schemaOf[v1](t), []string{
			`incompatible: the value was int64 in codec "int64", is now {A int64; B string} in codec "msgpack"`}},
		{"unsigned into same width", schemaOf[[]uint32](t), schemaOf[[]int32](t),
			[]string{"incompatible: field [] was uint32, is now int32; change it back, or give a migration"}},
		{"no longer a pointer", schemaOf[struct{ A *int }](t), schemaOf[struct{ A int }](t),
			[]string{"incompatible: field A was *int64, is now int64; change it back, or give a migration"}},
		{"own encoding", schemaOf[selfMade](t), schemaOf[*selfMade](t), // nil would mean two things
			[]string{"incompatible: the value was own encoding (msgpack), is now *own encoding (msgpack); change it back, or give a migration"}},
		{"array longer", schemaOf[[3]int](t), schemaOf[[4]int](t),
			[]string{"incompatible: the value was [3]int64, is now [4]int64; change it back, or give a migration"}},
		{"by position: grown", schemaOf[point](t), schemaOf[point3](t),
			[]string{"incompatible: the value had 2 fields by position, has now 3; change it back, or give a migration"}},
		{"by position: moved", schemaOf[point](t), schemaOf[pointYX](t), []string{
			"incompatible: field X stands where Y is now; if it was renamed, say so by the tag `msgpack:\"Y,alias:X\"`",
			"incompatible: field Y stands where X is now; if it was renamed, say so by the tag `msgpack:\"X,alias:Y\"`"}},
		{"by position: named", schemaOf[point](t), schemaOf[pointPlace](t), []string{
			"compatible: field X was renamed to Long by an alias"}},
		{"key widened", keySchema[int32](t), keySchema[int64](t),
			[]string{"incompatible: the value was int32, is now int64; change it back: keys are placed by their bytes"}},
		{"key field renamed", keySchema[struct{ A, B int }](t), keySchema[struct {
			X int `msgpack:",alias:A"`
			B int
		}](t), []string{"compatible: field A was renamed to X by an alias"}},
		{"nothing stored", Schema{}, schemaOf[int](t), []string{"incompatible: the value was nothing, is now int64"}},
		{"own codec changed", Schema{codec: "mine", format: "msgpack", types: schemaOf[v1](t).types},
			Schema{codec: "mine", format: "msgpack", types: schemaOf[v1Added](t).types},
			[]string{"incompatible: the value was {A int64; B string}, is now {A int64; B string; C string}; " +
				"a codec of your own whose bytes change needs another ID, and a migration from the old one"}},
		{"other codec", Schema{codec: "mine", types: userRows()}, Schema{codec: "mine2", types: userRows()},
			[]string{`incompatible: the value was values of codec "mine" in codec "mine", is now values of codec "mine2" in codec "mine2"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			worst := Same
			for _, change := range Compare(c.old, c.new) {
				got = append(got, change.String())
				worst = max(worst, change.Class)
			}
			require.Equal(t, c.want, got)
			require.Equal(t, worst, ClassOf(Compare(c.old, c.new)))
			require.Empty(t, Compare(c.old, c.old))
		})
	}
	require.Equal(t, "same", ClassOf(nil).String())
}

func userRows() []typeRow { return []typeRow{{kind: kindUser, key: -1, elem: -1}} }

type (
	point3 struct {
		//lint:ignore U1000 read by its tag
		_msgpack struct{} `msgpack:",as_array"`
		X, Y, Z  int
	}
	pointYX struct {
		//lint:ignore U1000 read by its tag
		_msgpack struct{} `msgpack:",as_array"`
		Y, X     int
	}
	pointPlace struct {
		//lint:ignore U1000 read by its tag
		_msgpack struct{} `msgpack:",as_array"`
		Long     int      `msgpack:",alias:X"`
		Y        int
	}
)

// The error that a start prints: report 10 (iii) wants field, old and new type.
func TestSchemaErrorText(t *testing.T) {
	err := &SchemaError{Old: schemaOf[v1](t), New: schemaOf[v1Retyped](t), Changes: Compare(schemaOf[v1](t), schemaOf[v1Retyped](t))}
	require.EqualError(t, err, "codec: stored as {A int64; B string}, the program has {A string; B string}: "+
		"field A was int64, is now string; change it back, or give a migration")
	c := err.Changes[0]
	require.Equal(t, []string{"A", "int64", "string"}, []string{c.Path, c.Old, c.New})
}

// What Compare calls compatible, the new codec reads: each row of the table of
// the package comment.
func TestCompatibleReadsOldBytes(t *testing.T) {
	type num[I, U, F any] struct {
		I I
		U U
		F F
		M map[string]I
	}
	rapid.Check(t, func(rt *rapid.T) {
		i, u := rapid.Int8().Draw(rt, "i"), rapid.Uint8().Draw(rt, "u")
		f, s := rapid.Float32().Draw(rt, "f"), texts.Draw(rt, "s")
		reads(rt, v1{int(i), s}, v1Added{int(i), s, ""})
		reads(rt, v1{int(i), s}, v1Aliased{int(i), s})
		reads(rt, []v1{{int(i), s}}, []v1Added{{int(i), s, ""}})
		reads(rt, i, int16(i))
		reads(rt, int32(i), cents(i))
		reads(rt, u, uint64(u))
		reads(rt, num[int8, uint8, float32]{i, u, f, map[string]int8{s: i}}, num[int64, int16, float64]{int64(i), int16(u), float64(f), map[string]int64{s: int64(i)}})
		reads(rt, num[int8, uint8, float32]{i, u, f, nil}, num[int16, uint16, float64]{int16(i), uint16(u), float64(f), nil})
		reads(rt, map[uint8]v1{u: {}}, map[int32]v1Added{int32(u): {}})
		reads(rt, struct{ A int }{int(i)}, struct{ A *int64 }{ptr(int64(i))})
		reads(rt, struct{ A v1 }{v1{int(i), s}}, struct{ A *v1Added }{&v1Added{int(i), s, ""}})
		reads(rt, struct{ A [2]uint8 }{[2]uint8{u, 1}}, struct{ A []byte }{[]byte{u, 1}})
		reads(rt, [2]int8{i, 1}, []int{int(i), 1})
		reads(rt, point{X: int(i)}, pointPlace{Long: int(i)})
	})
}

func ptr[T any](v T) *T { return &v }

func reads[Old, New any](t *rapid.T, old Old, want New) {
	from, to := schemaOf[Old](t), schemaOf[New](t)
	require.Equal(t, Compatible, ClassOf(Compare(from, to)), "%v", Compare(from, to))
	oc, err := For[Old]()
	require.NoError(t, err)
	nc, err := For[New]()
	require.NoError(t, err)
	b, err := oc.Append(nil, old)
	require.NoError(t, err)
	r, err := Reader(from, nc)
	require.NoError(t, err)
	require.Equal(t, oc.ID(), r.ID())
	got, err := r.Decode(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
