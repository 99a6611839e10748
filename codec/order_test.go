package codec

import (
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/internal/invariants"
)

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Maps with the same entries have the same bytes, however they came about:
// design, "Maps inside states are encoded sorted".
func TestMapsAreSorted(t *testing.T) {
	type state struct{ Outer map[string]map[int]string }
	c, err := For[state]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.MapOfN(rapid.String(), rapid.MapOf(rapid.IntRange(-300, 300), rapid.String()), 2, 20).Draw(rt, "m")
		one, err := c.Append(nil, state{m})
		require.NoError(rt, err)
		other := map[string]map[int]string{}
		for _, k := range slices.Backward(slices.Sorted(maps.Keys(m))) {
			other[k] = maps.Clone(m[k])
		}
		two, err := c.Append(nil, state{other})
		require.NoError(rt, err)
		require.Equal(rt, hexOf(one), hexOf(two))
		back, err := c.Decode(one)
		require.NoError(rt, err)
		require.Equal(rt, m, back.Outer)
	})
}

// labels hands its map to the library.
type labels struct{ m map[string]string }

func (l *labels) EncodeMsgpack(e *msgpack.Encoder) error { return e.Encode(l.m) }
func (l *labels) DecodeMsgpack(d *msgpack.Decoder) error { return d.Decode(&l.m) }

func TestMapsOfSelfEncodersAreSorted(t *testing.T) {
	c, err := For[[]labels]()
	require.NoError(t, err)
	m := map[string]string{}
	for i := range 30 {
		m[string(rune('a'+i))] = "v"
	}
	want, err := c.Append(nil, []labels{{m}, {m}})
	require.NoError(t, err)
	for range 20 {
		got, err := c.Append(nil, []labels{{m}, {m}})
		require.NoError(t, err)
		require.Equal(t, hexOf(want), hexOf(got))
	}
}

func TestMapKeysOfOneEncodingAreRefused(t *testing.T) {
	c, err := For[map[time.Time]int]()
	require.NoError(t, err)
	at := time.Unix(1, 0)
	_, err = c.Append(nil, map[time.Time]int{at.UTC(): 1, at.In(time.FixedZone("x", 60)): 2})
	require.ErrorContains(t, err, "have one encoding")
}

func TestHasRefs(t *testing.T) {
	require.False(t, HasRefs[int]())
	require.False(t, HasRefs[string]())
	require.False(t, HasRefs[time.Time]())
	require.False(t, HasRefs[[0][]int]())
	require.False(t, HasRefs[struct {
		A [3]string
		T time.Time
	}]())
	require.True(t, HasRefs[[]byte]())
	require.True(t, HasRefs[map[int]int]())
	require.True(t, HasRefs[any]())
	require.True(t, HasRefs[struct{ A [2]*int }]())
	require.True(t, HasRefs[func()]())
	require.True(t, HasRefs[chan int]())
}

func TestCloner(t *testing.T) {
	plain, err := Cloner[struct{ n int }]() // no references, so no codec is needed
	require.NoError(t, err)
	v, err := plain(struct{ n int }{3})
	require.NoError(t, err)
	require.Equal(t, 3, v.n)

	deep, err := Cloner[order]()
	require.NoError(t, err)
	in := someOrder()
	out, err := deep(in)
	require.NoError(t, err)
	require.Equal(t, in, out)
	out.Counts["a"], out.Tags[0], out.Next.Name, out.Byday[-1]["q"][0] = 9, "z", "z", 9
	require.Equal(t, someOrder(), in)

	raw, err := Cloner[[]byte]()
	require.NoError(t, err)
	b := []byte("abc")
	cp, err := raw(b)
	require.NoError(t, err)
	cp[0] = 'x'
	require.Equal(t, "abc", string(b))

	_, err = Cloner[map[string]any]()
	var te *TypeError
	require.ErrorAs(t, err, &te)
	cycle := order{}
	cycle.Next = &cycle
	_, err = deep(cycle)
	require.ErrorIs(t, err, ErrDepth)
}

// A decoded value shares nothing with its input or with the one decoded before.
func TestDecodeTargetsAreFresh(t *testing.T) {
	c, err := For[order]()
	require.NoError(t, err)
	b, err := c.Append(nil, someOrder())
	require.NoError(t, err)
	empty, err := c.Append(nil, order{})
	require.NoError(t, err)
	src := slices.Clone(b)
	one, err := c.Decode(src)
	require.NoError(t, err)
	clear(src)
	two, err := c.Decode(empty)
	require.NoError(t, err)
	require.Equal(t, order{}, two)
	require.Equal(t, someOrder(), one)
}

func TestCodecIsConcurrent(t *testing.T) {
	c, err := For[order]()
	require.NoError(t, err)
	want, err := c.Append(nil, someOrder())
	require.NoError(t, err)
	done := make(chan []byte, 4)
	for range cap(done) {
		go func() {
			var b []byte
			for range 50 {
				b, _ = c.Append(b[:0], someOrder())
				_, _ = c.Decode(b)
			}
			done <- b
		}()
	}
	for range cap(done) {
		require.Equal(t, hexOf(want), hexOf(<-done))
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("under the race detector sync.Pool drops values at random")
	}
	type session struct {
		User  string
		Count int64
		At    time.Time
		Tags  []string
	}
	c, err := For[session]()
	require.NoError(t, err)
	v := session{"u", 5, time.Unix(1, 0), []string{"a"}}
	buf := make([]byte, 0, 256)
	n := testing.AllocsPerRun(200, func() { buf, _ = c.Append(buf[:0], v) })
	require.Less(t, n, 1.0) // the pool may be emptied by a collection
}

func BenchmarkKeyHash(b *testing.B) {
	s, _ := KeyFor[string]()
	i, _ := KeyFor[int64]()
	v, _ := KeyFor[visit]()
	hs, hi, hv := s.HashFunc(), i.HashFunc(), v.HashFunc()
	var sink uint64
	b.Run("string16", func(b *testing.B) {
		for b.Loop() {
			sink += hs("0123456789abcdef")
		}
	})
	b.Run("int64", func(b *testing.B) {
		for b.Loop() {
			sink += hi(int64(sink))
		}
	})
	b.Run("struct", func(b *testing.B) {
		for b.Loop() {
			sink += hv(visit{user: "0123456789", day: 4})
		}
	})
}

func BenchmarkPacked(b *testing.B) {
	type session struct {
		User  string
		Count int64
		Sum   float64
	}
	c, _ := For[session]()
	buf := make([]byte, 0, 256)
	v := session{"user-12345", 5, 1.5}
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			buf, _ = c.Append(buf[:0], v)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			_, _ = c.Decode(buf)
		}
	})
}
