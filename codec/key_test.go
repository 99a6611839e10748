package codec

import (
	"bytes"
	"cmp"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

type (
	userID string
	cents  int64
	small  int16
	visit  struct {
		user string
		day  int32
		_    bool
		vip  bool
	}
	triple  [3]string
	digest  [5]byte
	reading struct {
		at [2]float64
		f  float32
	}
	allInts struct {
		a int8
		b uint8
		c int16
		d uint16
		e int32
		f uint32
		g int64
		h uint64
		i int
		j uint
		k uintptr
	}
	emptyKey struct{}
)

// checkKey holds the laws of the canonical encoding for keys of one type.
func checkKey[K comparable](t *testing.T, gen *rapid.Generator[K]) {
	t.Helper()
	c, err := KeyFor[K]()
	require.NoError(t, err)
	hash := c.HashFunc()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := gen.Draw(rt, "a"), gen.Draw(rt, "b")
		ab, bb := c.Append(nil, a), c.Append(nil, b)
		require.Equal(rt, bytes.Compare(ab, bb), c.Compare(a, b), "order of %v and %v", a, b)
		require.Equal(rt, a == b, bytes.Equal(ab, bb), "equality of %v and %v", a, b)
		require.Equal(rt, xxh3.Hash(ab), hash(a))
		require.Equal(rt, hash(a), c.Hash(a))
		back, err := c.Decode(ab)
		require.NoError(rt, err)
		require.True(rt, back == a, "%v came back as %v", a, back)
		require.True(rt, c.Clone(a) == a)
		require.NoError(rt, c.Check(a))
		require.Equal(rt, append([]byte("xy"), ab...), c.Append([]byte("xy"), a))
	})
}

// dense draws from few values, so that pairs are often equal or neighbours.
func dense[I int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint | uintptr](g *rapid.Generator[I]) *rapid.Generator[I] {
	return rapid.OneOf(g, rapid.SampledFrom([]I{0, 1, 2, 127}))
}

var (
	texts  = rapid.OneOf(rapid.String(), rapid.StringMatching("[\x00\x01a]{0,4}"), rapid.StringN(0, 300, 300))
	floats = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), 5e-324}))
)

func TestKeyLaws(t *testing.T) {
	t.Run("string", func(t *testing.T) { checkKey(t, texts) })
	t.Run("named string", func(t *testing.T) { checkKey(t, rapid.Map(texts, func(s string) userID { return userID(s) })) })
	t.Run("bool", func(t *testing.T) { checkKey(t, rapid.Bool()) })
	t.Run("int", func(t *testing.T) { checkKey(t, dense(rapid.Int())) })
	t.Run("int8", func(t *testing.T) { checkKey(t, dense(rapid.Int8())) })
	t.Run("int16", func(t *testing.T) { checkKey(t, dense(rapid.Int16())) })
	t.Run("int32", func(t *testing.T) { checkKey(t, dense(rapid.Int32())) })
	t.Run("int64", func(t *testing.T) { checkKey(t, dense(rapid.Int64())) })
	t.Run("uint", func(t *testing.T) { checkKey(t, dense(rapid.Uint())) })
	t.Run("uint8", func(t *testing.T) { checkKey(t, dense(rapid.Uint8())) })
	t.Run("uint16", func(t *testing.T) { checkKey(t, dense(rapid.Uint16())) })
	t.Run("uint32", func(t *testing.T) { checkKey(t, dense(rapid.Uint32())) })
	t.Run("uint64", func(t *testing.T) { checkKey(t, dense(rapid.Uint64())) })
	t.Run("uintptr", func(t *testing.T) { checkKey(t, dense(rapid.Uintptr())) })
	t.Run("named int64", func(t *testing.T) { checkKey(t, rapid.Map(rapid.Int64(), func(i int64) cents { return cents(i) })) })
	t.Run("named int16", func(t *testing.T) { checkKey(t, rapid.Map(rapid.Int16(), func(i int16) small { return small(i) })) })
	t.Run("float64", func(t *testing.T) { checkKey(t, floats) })
	t.Run("float32", func(t *testing.T) { checkKey(t, rapid.Map(floats, func(f float64) float32 { return float32(f) })) })
	t.Run("struct", func(t *testing.T) {
		checkKey(t, rapid.Custom(func(rt *rapid.T) visit {
			return visit{user: texts.Draw(rt, "user"), day: dense(rapid.Int32()).Draw(rt, "day"), vip: rapid.Bool().Draw(rt, "vip")}
		}))
	})
	t.Run("array of strings", func(t *testing.T) {
		checkKey(t, rapid.Custom(func(rt *rapid.T) triple {
			return triple{texts.Draw(rt, "0"), texts.Draw(rt, "1"), texts.Draw(rt, "2")}
		}))
	})
	t.Run("array of bytes", func(t *testing.T) {
		checkKey(t, rapid.Map(rapid.SliceOfN(rapid.Byte(), 5, 5), func(b []byte) digest { return digest(b) }))
	})
	t.Run("floats in a struct", func(t *testing.T) {
		checkKey(t, rapid.Custom(func(rt *rapid.T) reading {
			return reading{at: [2]float64{floats.Draw(rt, "0"), floats.Draw(rt, "1")}, f: float32(floats.Draw(rt, "f"))}
		}))
	})
	t.Run("every width", func(t *testing.T) {
		checkKey(t, rapid.Custom(func(rt *rapid.T) allInts {
			u := rapid.Uint64().Draw(rt, "u")
			return allInts{int8(u), uint8(u), int16(u), uint16(u), int32(u), uint32(u), int64(u), u, int(u), uint(u), uintptr(u)}
		}))
	})
	t.Run("no bytes at all", func(t *testing.T) { checkKey(t, rapid.Just(emptyKey{})) })
}

// The bytes and hashes are stored in files and decide partitions: a failure
// here is a broken format, never a golden value to renew.
func TestKeyGolden(t *testing.T) {
	golden(t, "", "", 0x2d06800538d394c2)
	golden(t, "word", "776f7264", 0xe3ce369cf66c5c55)
	golden(t, "a key of more than sixteen bytes", "61206b6579206f66206d6f7265207468616e207369787465656e206279746573", 0x27258608776bc78a)
	golden(t, int64(-1), "7fffffffffffffff", 0xf832fc1d899fe591)
	golden(t, int(42), "800000000000002a", 0xf016f1b51cfb68cc)
	golden(t, int32(7), "80000007", 0xfb256cae13b2a55b)
	golden(t, int16(-2), "7ffe", 0xc60ab667e203f04)
	golden(t, uint8(200), "c8", 0xf0f28117d57ca107)
	golden(t, true, "01", 0xe12ef9d2eb86ceeb)
	golden(t, math.Copysign(0, -1), "8000000000000000", 0xb7aa1c28d234f8d6)
	golden(t, -1.5, "4007ffffffffffff", 0x7eb9a28ab737abc4)
	golden(t, float32(1), "bf800000", 0xe8afe92bfba2113)
	golden(t, visit{user: "a\x00b", day: 1, vip: true}, "6100ff6200018000000101", 0xd1bbc375d8165a8f)
	golden(t, triple{"x", "", "y"}, "7800010001790001", 0xe31c82fb19395aa4)
}

func golden[K comparable](t *testing.T, k K, wantBytes string, wantHash uint64) {
	t.Helper()
	c, err := KeyFor[K]()
	require.NoError(t, err)
	require.Equal(t, wantBytes, hexOf(c.Append(nil, k)), "bytes of %v", k)
	require.Equal(t, wantHash, c.Hash(k), "hash of %v is %#x", k, c.Hash(k))
}

func TestKeyOrderIsOrderOfValues(t *testing.T) {
	c, err := KeyFor[int64]()
	require.NoError(t, err)
	f, err := KeyFor[float64]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.Int64().Draw(rt, "a"), rapid.Int64().Draw(rt, "b")
		require.Equal(rt, cmp.Compare(a, b), c.Compare(a, b))
		x, y := floats.Draw(rt, "x"), floats.Draw(rt, "y")
		require.Equal(rt, cmp.Compare(x, y), f.Compare(x, y))
	})
}

func TestKeyNaN(t *testing.T) {
	nan := math.NaN()
	f, err := KeyFor[float64]()
	require.NoError(t, err)
	require.True(t, f.NeedsCheck())
	require.ErrorIs(t, f.Check(nan), ErrNaN)
	require.NoError(t, f.Check(math.Inf(-1)))
	r, err := KeyFor[reading]()
	require.NoError(t, err)
	require.True(t, r.NeedsCheck())
	require.ErrorIs(t, r.Check(reading{at: [2]float64{0, nan}}), ErrNaN)
	require.ErrorIs(t, r.Check(reading{f: float32(nan)}), ErrNaN)
	s, err := KeyFor[visit]()
	require.NoError(t, err)
	require.False(t, s.NeedsCheck())
	require.Equal(t, f.Hash(0), f.Hash(math.Copysign(0, -1)))
	for _, b := range [][]byte{f.Append(nil, nan), {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0, 0, 0, 0, 0}} {
		_, err := f.Decode(b)
		require.ErrorIs(t, err, ErrCorrupt, "% x", b)
	}
}

func TestKeyForRefusesNamingTheField(t *testing.T) {
	refused(t, func() error { _, err := KeyFor[*int](); return err }, "*int: a ptr cannot be part of a key")
	refused(t, func() error { _, err := KeyFor[any](); return err }, "a interface cannot be part of a key")
	refused(t, func() error { _, err := KeyFor[chan int](); return err }, "a chan cannot be part of a key")
	refused(t, func() error { _, err := KeyFor[complex128](); return err }, "a complex128 cannot be part of a key")
	type inner struct{ Tags [2]any }
	refused(t, func() error { _, err := KeyFor[struct{ Owner inner }](); return err }, "field Owner.Tags[]: a interface")
	refused(t, func() error { _, err := KeyFor[struct{ At timeT }](); return err }, "field At: time.Time cannot be part of a key")
}

func refused(t *testing.T, build func() error, want string) {
	t.Helper()
	err := build()
	var te *TypeError
	require.ErrorAs(t, err, &te)
	require.Contains(t, err.Error(), want)
}

// Keys must not pin the fetch buffer they were cut from.
func TestKeyCloneOwnsItsStrings(t *testing.T) {
	buffer := string(bytes.Repeat([]byte("k"), 1<<10))
	s, err := KeyFor[userID]()
	require.NoError(t, err)
	require.NotSame(t, unsafe.StringData(buffer), unsafe.StringData(string(s.Clone(userID(buffer)))))
	st, err := KeyFor[visit]()
	require.NoError(t, err)
	require.NotSame(t, unsafe.StringData(buffer), unsafe.StringData(st.Clone(visit{user: buffer}).user))
	ar, err := KeyFor[triple]()
	require.NoError(t, err)
	require.NotSame(t, unsafe.StringData(buffer), unsafe.StringData(ar.Clone(triple{2: buffer})[2]))
	require.Equal(t, triple{2: buffer}, ar.Clone(triple{2: buffer}))
}

func TestKeyDecodeRefuses(t *testing.T) {
	v, err := KeyFor[visit]()
	require.NoError(t, err)
	good := v.Append(nil, visit{user: "a\x00", day: -1, vip: true})
	for i := range good {
		_, err := v.Decode(good[:i])
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", i)
	}
	for _, bad := range [][]byte{
		append(bytes.Clone(good), 0),       // more than a key
		{0x00, 0x02, 0, 0, 0, 0, 0},        // unknown escape
		{0x00, 0x01, 0x80, 0, 0, 0, 2},     // bool 2
		append([]byte{'a', 0x00}, good...), // an escape that the next part breaks
	} {
		_, err := v.Decode(bad)
		require.ErrorIs(t, err, ErrCorrupt, "% x", bad)
	}
	d, err := KeyFor[digest]()
	require.NoError(t, err)
	_, err = d.Decode([]byte("four"))
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestKeyHotPathDoesNotAllocate(t *testing.T) {
	noAllocs(t, "a key of sixteen", "another key")
	noAllocs(t, userID("a key"), userID("b key"))
	noAllocs(t, int64(5), 6)
	noAllocs(t, cents(5), 6)
	noAllocs(t, 1.5, 2.5)
	noAllocs(t, visit{user: "u", day: 4}, visit{user: "u", day: 5})
	noAllocs(t, triple{"a", "b", "c"}, triple{"a", "b", "d"})
}

func noAllocs[K comparable](t *testing.T, a, b K) {
	t.Helper()
	c, err := KeyFor[K]()
	require.NoError(t, err)
	hash, buf, sum := c.HashFunc(), make([]byte, 0, 256), uint64(0)
	n := testing.AllocsPerRun(100, func() {
		sum += hash(a) + c.Hash(b) + uint64(c.Compare(a, b))
		buf = c.Append(buf[:0], a)
	})
	require.Zero(t, n, "allocations for %T", a)
}
