package statefile

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/statemap"
)

type place2 struct {
	Area int32
	Name string
}

type session struct {
	Count int64
	Tags  []string
	Last  map[string]float64
}

// TestRoundTrip: a chain of deltas, and a snapshot of its end, bring back every version, whatever keys and states are.
func TestRoundTrip(t *testing.T) {
	sessions := rapid.Custom(func(t *rapid.T) session {
		s := session{Count: rapid.Int64().Draw(t, "count")}
		if rapid.Bool().Draw(t, "more") {
			s.Tags = rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "tags")
			s.Last = map[string]float64{rapid.String().Draw(t, "k"): rapid.Float64().Draw(t, "v")}
		}
		return s
	})
	places := rapid.Custom(func(t *rapid.T) place2 {
		return place2{rapid.Int32Range(-2, 2).Draw(t, "area"), rapid.SampledFrom([]string{"", "a", "\x00", "\x00b"}).Draw(t, "name")}
	})
	t.Run("string/int64", func(t *testing.T) {
		roundTrip(t, rapid.StringN(0, 4, 8), rapid.Int64())
	})
	t.Run("string/string", func(t *testing.T) {
		roundTrip(t, rapid.SampledFrom([]string{"", "a", "b", strings.Repeat("long", 300)}), rapid.String())
	})
	t.Run("int32/struct", func(t *testing.T) { roundTrip(t, rapid.Int32Range(-9, 9), sessions) })
	t.Run("struct/bytes", func(t *testing.T) { roundTrip(t, places, rapid.SliceOf(rapid.Byte())) })
	t.Run("float64/bool", func(t *testing.T) { roundTrip(t, rapid.Float64Range(-3, 3), rapid.Bool()) })
	t.Run("array/empty struct", func(t *testing.T) {
		roundTrip(t, rapid.Custom(func(t *rapid.T) [2]uint16 {
			return [2]uint16{rapid.Uint16Range(0, 3).Draw(t, "a"), rapid.Uint16().Draw(t, "b")}
		}), rapid.Just(struct{}{}))
	})
}

func roundTrip[K comparable, S any](t *testing.T, keys *rapid.Generator[K], states *rapid.Generator[S]) {
	rapid.Check(t, func(t *rapid.T) {
		k := newKit[K, S](t)
		deadlines := rapid.Bool().Draw(t, "deadlines")
		how := rapid.SampledFrom([]Compression{None, S2, Zstd}).Draw(t, "compression")
		m, loaded := newMap[K, S](t), newMap[K, S](t)
		var chain Sum
		for n := int64(1); n <= 3; n++ {
			i := info(n, how)
			i.Deadlines, i.Chain = deadlines, chain
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				key := keys.Draw(t, "key")
				if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
					require.NoError(t, m.Remove(key))
					continue
				}
				tm := drawTime(t, i)
				var s S
				if !deadlines || tm >= 0 { // a deadline alone has no state
					s = states.Draw(t, "state")
				}
				require.NoError(t, m.Put(key, s, tm))
			}
			file, sum := k.delta(i, m)
			w := want(Delta, n)
			w.Deadlines, w.Chain, w.Checksum = deadlines, Chain(chain, sum.Content), sum.Checksum
			require.Equal(t, sum, k.load(file, w, loaded))
			require.Equal(t, entries(m), entries(loaded))
			chain = sum.Chain
			next, err := m.Copy()
			require.NoError(t, err)
			m = next
		}
		i := info(3, how)
		i.Deadlines, i.Chain = deadlines, chain
		file, sum := k.snapshot(i, m)
		w := want(Snapshot, 3)
		w.Deadlines, w.Chain = deadlines, chain
		again := newMap[K, S](t)
		require.Equal(t, sum, k.load(file, w, again))
		require.Equal(t, entries(m), entries(again))
		require.EqualValues(t, m.Len(), sum.Records)
	})
}

// drawTime gives times near the batch, on and off the grid, before and after it, and the ends of the range.
func drawTime(t *rapid.T, i Info) int64 {
	return rapid.OneOf(
		rapid.Just(i.BatchTime),
		rapid.Map(rapid.Int64Range(-5, 5), func(n int64) int64 { return i.BatchTime + n*second }),
		rapid.Map(rapid.Int64Range(0, 5), func(n int64) int64 { return ^(i.BatchTime + n*second) }),
		rapid.SampledFrom([]int64{0, -1, 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64}),
		rapid.Int64(),
	).Draw(t, "time")
}

// TestEmptyFiles: a delta that changes nothing and a snapshot of nothing are files, and have chain hashes.
func TestEmptyFiles(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		k := newKit[string, int64](t)
		m := newMap[string, int64](t)
		file, sum := k.delta(info(1, c), m)
		require.Zero(t, sum.Records)
		require.NotEqual(t, Sum{}, sum.Chain)
		require.Equal(t, sum, k.load(file, want(Delta, 1), m))
		file, _ = k.snapshot(info(1, c), m)
		require.Zero(t, k.load(file, want(Snapshot, 1), m).Records)
		require.Len(t, frames(t, file), 1)
	})
}

// TestManyBlocks: files of several blocks, with and without a last one that is not full.
func TestManyBlocks(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		for _, n := range []int{blockRecords - 1, blockRecords, blockRecords + 1, 3 * blockRecords} {
			k := newKit[string, int64](t)
			m := newMap[string, int64](t)
			for i := range n {
				require.NoError(t, m.Put(word(i), int64(i), info(1, c).BatchTime-int64(i%7)*second))
			}
			file, _ := k.snapshot(info(1, c), m)
			require.Len(t, frames(t, file), (n+blockRecords-1)/blockRecords+1)
			loaded := newMap[string, int64](t)
			k.load(file, want(Snapshot, 1), loaded)
			require.Equal(t, entries(m), entries(loaded))
		}
	})
}

// TestHugeValues: states and keys of megabytes, which compress well, badly or not at all.
func TestHugeValues(t *testing.T) {
	noise := make([]byte, 3<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	compressions(t, func(t *testing.T, c Compression) {
		k := newKit[string, []byte](t)
		m := newMap[string, []byte](t)
		for key, s := range map[string][]byte{
			"zeros": make([]byte, 9<<20), "noise": noise, "small": {1}, "nil": nil, "": {},
			strings.Repeat("key", 1<<20): []byte("x"),
		} {
			require.NoError(t, m.Put(key, s, 1))
		}
		file, sum := k.snapshot(info(1, c), m)
		loaded := newMap[string, []byte](t)
		k.load(file, want(Snapshot, 1), loaded)
		require.Equal(t, entries(m), entries(loaded))
		if c != None {
			require.Less(t, sum.Size, sum.RawBytes*2/3)
		}
		require.LessOrEqual(t, cap(k.enc.rows.states), maxKept, "a huge state must not pin the buffers")
	})
}

// TestTombstones: what a version removes is removed by its delta, also where it is all that the version did.
func TestTombstones(t *testing.T) {
	k := newKit[string, int64](t)
	m := newMap[string, int64](t)
	for i := range 10 {
		require.NoError(t, m.Put(word(i), int64(i), 1))
	}
	loaded := newMap[string, int64](t)
	first, _ := k.delta(info(1, None), m)
	k.load(first, want(Delta, 1), loaded)
	m, err := m.Copy()
	require.NoError(t, err)
	for i := range 4 {
		require.NoError(t, m.Remove(word(i)))
	}
	second, sum := k.delta(info(2, None), m)
	k.load(second, want(Delta, 2), loaded)
	require.Equal(t, slices.Sorted(maps.Keys(entries(m))), slices.Sorted(maps.Keys(entries(loaded))))
	require.EqualValues(t, 4, sum.Tombstones)
	require.EqualValues(t, 4, sum.Records)
}

// TestDeadlineForms: every entry time comes back; a deadline alone takes no state along.
func TestDeadlineForms(t *testing.T) {
	k := newKit[int64, string](t)
	m := newMap[int64, string](t)
	i := info(1, None)
	i.Deadlines = true
	at := i.BatchTime + 30*second
	for key, tm := range []int64{at, math.MaxInt64, ^at, 0, -1, at + 5*second, math.MinInt64, math.MaxInt64 - 1} {
		require.NoError(t, m.Put(int64(key), "s", tm))
	}
	file, _ := k.snapshot(i, m)
	loaded := newMap[int64, string](t)
	w := want(Snapshot, 1)
	w.Deadlines = true
	k.load(file, w, loaded)
	expect := entries(m)
	for key, e := range expect {
		if e.Time < 0 {
			e.State = ""
		}
		expect[key] = statemap.Entry[string]{State: e.State, Time: e.Time}
	}
	require.Equal(t, expect, entries(loaded))
}
