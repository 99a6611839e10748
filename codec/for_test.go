package codec

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

type (
	base struct{ ID int64 }
	// order has one of everything that can be stored.
	order struct {
		base
		Name   string
		At     time.Time
		When   *time.Time
		Price  float64
		Ratio  float32
		Paid   bool
		Raw    []byte
		Sum    digest
		Tags   []string
		Counts map[string]int
		Byday  map[int32]map[string][]uint16
		Seen   map[triple]struct{}
		Next   *order
		Big    big.Int
		Host   netip.Addr
		Wait   time.Duration
		Kids   []tree
		Short  int8
		Long   uint64
		Note   string `msgpack:"n,omitempty"`
		Gone   func() `msgpack:"-"`
		_      int
	}
	tree  struct{ Kids []tree }
	point struct {
		//lint:ignore U1000 read by its tag
		_msgpack struct{} `msgpack:",as_array"`
		X, Y     int
	}
	// selfMade encodes itself, with pointer receivers (report 35).
	selfMade struct{ hidden int }
	boxed    struct{ hidden string }
	halfMade struct{ X int }
)

func (s *selfMade) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeInt(int64(s.hidden)) }
func (s *selfMade) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	s.hidden, err = d.DecodeInt()
	return err
}
func (b *boxed) MarshalMsgpack() ([]byte, error) { return msgpack.Marshal(b.hidden) }
func (b *boxed) UnmarshalMsgpack(src []byte) error {
	return msgpack.Unmarshal(src, &b.hidden)
}
func (h halfMade) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeNil() }

func someOrder() order {
	at := time.Date(2021, 6, 3, 1, 2, 3, 4, time.UTC)
	return order{
		base: base{7}, Name: "x", At: at, When: &at, Price: math.Inf(-1), Ratio: 0.5, Paid: true, Raw: []byte{},
		Sum: digest{1, 2, 3, 4, 5}, Tags: []string{"a", ""}, Counts: map[string]int{"b": 2, "a": -1 << 40},
		Byday: map[int32]map[string][]uint16{-1: {"q": {1, 65535}, "p": nil}, 5: {}},
		Seen:  map[triple]struct{}{{"a"}: {}, {"b"}: {}}, Next: &order{Name: "inner"}, Big: *big.NewInt(1 << 60),
		Host: netip.MustParseAddr("::1"), Wait: time.Hour, Kids: []tree{{Kids: []tree{}}, {}}, Short: -128,
		Long: math.MaxUint64, Note: "n",
	}
}

func roundTrip[T any](t require.TestingT, v T) T {
	c, err := For[T]()
	require.NoError(t, err)
	b, err := c.Append([]byte("head"), v)
	require.NoError(t, err)
	require.Equal(t, "head", string(b[:4]))
	back, err := c.Decode(b[4:])
	require.NoError(t, err)
	return back
}

func TestRoundTripOfEverything(t *testing.T) {
	require.Equal(t, someOrder(), roundTrip(t, someOrder()))
	require.Equal(t, order{}, roundTrip(t, order{}))
	require.Equal(t, point{X: 1, Y: -2}, roundTrip(t, point{X: 1, Y: -2}))
	require.Equal(t, [3]point{{X: 1}}, roundTrip(t, [3]point{{X: 1}}))
	require.Equal(t, map[string]selfMade{"k": {5}}, roundTrip(t, map[string]selfMade{"k": {5}}))
	require.Equal(t, []boxed{{"in"}, {""}}, roundTrip(t, []boxed{{"in"}, {""}}))
	require.Equal(t, map[netip.Addr]bool{netip.MustParseAddr("1.2.3.4"): true}, roundTrip(t, map[netip.Addr]bool{netip.MustParseAddr("1.2.3.4"): true}))
	big := make([]int, 100_000)
	big[99_999] = 1
	require.Equal(t, big, roundTrip(t, big))
}

func TestRoundTripOfScalars(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		i, u := rapid.Int64().Draw(rt, "i"), rapid.Uint64().Draw(rt, "u")
		require.Equal(rt, int(i), roundTrip(rt, int(i)))
		require.Equal(rt, i, roundTrip(rt, i))
		require.Equal(rt, int32(i), roundTrip(rt, int32(i)))
		require.Equal(rt, int16(i), roundTrip(rt, int16(i)))
		require.Equal(rt, int8(i), roundTrip(rt, int8(i)))
		require.Equal(rt, cents(i), roundTrip(rt, cents(i)))
		require.Equal(rt, uint(u), roundTrip(rt, uint(u)))
		require.Equal(rt, uint32(u), roundTrip(rt, uint32(u)))
		require.Equal(rt, uint16(u), roundTrip(rt, uint16(u)))
		require.Equal(rt, uint8(u), roundTrip(rt, uint8(u)))
		require.Equal(rt, uintptr(u), roundTrip(rt, uintptr(u)))
		require.Equal(rt, u&1 == 0, roundTrip(rt, u&1 == 0))
		f := math.Float64frombits(u) // NaNs with their bits too
		require.Equal(rt, u, math.Float64bits(roundTrip(rt, f)))
		require.Equal(rt, uint32(u), math.Float32bits(roundTrip(rt, math.Float32frombits(uint32(u)))))
		require.Equal(rt, uint32(u), math.Float32bits(roundTrip(rt, []float32{math.Float32frombits(uint32(u))})[0]))
		s := texts.Draw(rt, "s")
		require.Equal(rt, s, roundTrip(rt, s))
		require.Equal(rt, []byte(s), roundTrip(rt, []byte(s)))
		tm := time.Unix(i/2, int64(u%1e9))
		require.Equal(rt, tm.UTC(), roundTrip(rt, tm))
		require.Equal(rt, []time.Time{tm.UTC()}, roundTrip(rt, []time.Time{tm}))
	})
	require.Nil(t, roundTrip(t, []byte(nil)))
	require.NotNil(t, roundTrip(t, []byte{}))
}

func TestScalarGolden(t *testing.T) {
	goldenValue(t, int64(-65), "8101", "int64")
	goldenValue(t, cents(1), "02", "int64")
	goldenValue(t, uint16(300), "ac02", "uint16")
	goldenValue(t, 1.0, "000000000000f03f", "float64")
	goldenValue(t, true, "01", "bool")
	goldenValue(t, "ab", "6162", "string")
	goldenValue(t, []byte("ab"), "016162", "bytes")
	goldenValue(t, time.Unix(1, 5), "0205", "time")
	goldenValue(t, struct{ A, B int }{1, 300}, "82a14101a142cd012c", "msgpack")
	goldenValue(t, map[int]string{300: "x", -1: "y"}, "82cd012ca178ffa179", "msgpack")
}

func goldenValue[T any](t *testing.T, v T, want, id string) {
	t.Helper()
	c, err := For[T]()
	require.NoError(t, err)
	require.Equal(t, id, c.ID())
	b, err := c.Append(nil, v)
	require.NoError(t, err)
	require.Equal(t, want, hexOf(b))
}

// report 33
func TestTimesAreTheSameEverywhere(t *testing.T) {
	east := time.FixedZone("east", 8*3600)
	for _, want := range []time.Time{
		time.Date(2021, 6, 3, 0, 0, 0, 0, time.UTC), {}, time.Date(1901, 1, 1, 0, 0, 0, 1, time.UTC),
		time.Date(2400, 1, 1, 0, 0, 0, 999_999_999, time.UTC), time.Unix(0, 0).UTC(),
	} {
		in := want.In(east)
		type holder struct {
			T time.Time
			P *time.Time
			S []time.Time
			M map[string]time.Time
			A [1]time.Time
		}
		require.Equal(t, want, roundTrip(t, in))
		got := roundTrip(t, holder{in, &in, []time.Time{in}, map[string]time.Time{"k": in}, [1]time.Time{in}})
		require.Equal(t, holder{want, &want, []time.Time{want}, map[string]time.Time{"k": want}, [1]time.Time{want}}, got)
		require.Equal(t, time.UTC, got.P.Location())
		require.Equal(t, want.IsZero(), got.T.IsZero())
	}
}

// report 34
func TestHostileBytes(t *testing.T) {
	deep := append(bytes.Repeat([]byte{0x91}, 8_000_000), 0xc0)
	for _, src := range append(hostile(), deep) {
		decodeFails[[]int](t, src)
		decodeFails[[]string](t, src)
		decodeFails[map[string]int](t, src)
		decodeFails[order](t, src)
		decodeFails[tree](t, src)
		decodeFails[selfMade](t, src)
		decodeFails[struct{ B []byte }](t, src)
	}
	c, err := For[order]()
	require.NoError(t, err)
	good, err := c.Append(nil, someOrder())
	require.NoError(t, err)
	for i := range good {
		decodeFails[order](t, good[:i])
	}
	decodeFails[order](t, append(good, 0xc0))
}

func decodeFails[T any](t *testing.T, src []byte) {
	t.Helper()
	c, err := For[T]()
	require.NoError(t, err)
	before := allocated()
	_, err = c.Decode(src)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Less(t, allocated()-before, uint64(16<<20), "bytes allocated")
}

func TestDecodeRefusesWrongShapes(t *testing.T) {
	type s struct {
		A int8
		U uint8
		F float32
		T time.Time
	}
	wrong := func(fields map[string]any, want string) {
		t.Helper()
		b, err := msgpack.Marshal(fields)
		require.NoError(t, err)
		c, err := For[s]()
		require.NoError(t, err)
		_, err = c.Decode(b)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, want)
	}
	wrong(map[string]any{"A": int16(300)}, "300 does not fit")
	wrong(map[string]any{"A": uint64(math.MaxUint64)}, "does not fit into int64")
	wrong(map[string]any{"U": int8(-1)}, "-1 does not fit")
	wrong(map[string]any{"U": uint64(256)}, "256 does not fit")
	wrong(map[string]any{"A": "x"}, "an integer should be")
	wrong(map[string]any{"A": nil}, "field A: ")
	wrong(map[string]any{"F": 1.5}, "a float32 should be")
	wrong(map[string]any{"T": "2021"}, "a time should be")
	wrong(map[string]any{"Z": 1}, `no field "Z"`)
	wrong(map[string]any{"A": true}, "an integer should be")
}

// report 35
func TestForRefusesWhatWouldVanish(t *testing.T) {
	refused(t, func() error { _, err := For[struct{ n int }](); return err }, "field n: unexported")
	refused(t, func() error {
		_, err := For[struct {
			A int
			b int
		}]()
		return err
	}, "field b: unexported")
	refused(t, func() error { _, err := For[struct{ F func() }](); return err }, "field F: a func cannot be stored")
	refused(t, func() error { _, err := For[[]struct{ C chan int }](); return err }, "field [].C: a chan cannot be stored")
	refused(t, func() error { _, err := For[struct{ M map[string]any }](); return err }, "field M[]: an interface")
	refused(t, func() error { _, err := For[struct{ E error }](); return err }, "field E: an interface")
	refused(t, func() error { _, err := For[any](); return err }, "interface {}: an interface")
	refused(t, func() error { _, err := For[struct{ C complex64 }](); return err }, "field C: a complex64")
	refused(t, func() error { _, err := For[struct{ P **int }](); return err }, "field P: a pointer to a ptr")
	refused(t, func() error { _, err := For[struct{ P *[]int }](); return err }, "field P: a pointer to a slice")
	refused(t, func() error { _, err := For[map[*int]int](); return err }, "a map key that holds a pointer")
	refused(t, func() error { _, err := For[struct{ H halfMade }](); return err }, "field H: codec.halfMade has only one of the methods")
	refused(t, func() error {
		_, err := For[struct {
			A int
			B int `msgpack:"A"`
		}]()
		return err
	}, "field A: two fields")
}

func TestTags(t *testing.T) {
	type old struct{ Name string }
	type renamed struct {
		Full string `msgpack:"full,alias:Name"`
		New  int    `msgpack:",omitempty"`
	}
	oc, err := For[old]()
	require.NoError(t, err)
	b, err := oc.Append(nil, old{"x"})
	require.NoError(t, err)
	rc, err := For[renamed]()
	require.NoError(t, err)
	got, err := rc.Decode(b)
	require.NoError(t, err)
	require.Equal(t, renamed{Full: "x"}, got)
	b, err = rc.Append(nil, renamed{Full: "x"})
	require.NoError(t, err)
	require.NotContains(t, string(b), "New")
}

func TestCyclesAreAnError(t *testing.T) {
	c, err := For[order]()
	require.NoError(t, err)
	o := &order{}
	o.Next = o
	dst := []byte("kept")
	out, err := c.Append(dst, *o)
	require.ErrorIs(t, err, ErrDepth)
	require.Equal(t, dst, out)
	// The pooled state of the failed call must not leak into the next.
	_, err = c.Append(nil, order{Counts: map[string]int{"a": 1, "b": 2}})
	require.NoError(t, err)
}

func TestSelfEncodersAreChecked(t *testing.T) {
	c, err := For[liar]()
	require.NoError(t, err)
	_, err = c.Append(nil, liar{N: 2})
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = c.Append(nil, liar{N: -1})
	require.ErrorIs(t, err, errLiar)
}

var errLiar = errors.New("liar")

// liar writes N values instead of one.
type liar struct{ N int }

func (l *liar) EncodeMsgpack(e *msgpack.Encoder) error {
	for range l.N {
		if err := e.EncodeInt(1); err != nil {
			return err
		}
	}
	if l.N < 0 {
		return errLiar
	}
	return nil
}
func (l *liar) DecodeMsgpack(d *msgpack.Decoder) error { return d.Skip() }
