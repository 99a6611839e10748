package partitioner

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/codec"
)

type account struct {
	bank   string
	number int64
}

// Partition numbers are stored with the state: a failure here is a broken
// format, never a golden value to renew.
func TestHashGolden(t *testing.T) {
	words := Hash[string](8)
	for i, w := range []string{"", "a", "word", "statemill", "a key of more than sixteen bytes"} {
		require.Equal(t, goldenWords[i], words.Partition(w), "%q", w)
	}
	nums := Hash[int64](1000)
	for i, n := range []int64{0, 1, -1, 42, math.MaxInt64, math.MinInt64} {
		require.Equal(t, goldenInts[i], nums.Partition(n), "%d", n)
	}
	require.Equal(t, goldenAccount, Hash[account](100).Partition(account{"b", 7}))
}

var (
	goldenWords   = []int{1, 7, 7, 1, 1}
	goldenInts    = []int{717, 806, 969, 937, 316, 779}
	goldenAccount = 53
)

func TestHashIsTheHighHalf(t *testing.T) {
	key, err := codec.KeyFor[string]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, math.MaxInt32).Draw(rt, "n")
		k := rapid.String().Draw(rt, "key")
		p := Hash[string](n).(Hasher[string])
		require.NoError(rt, Check[string](p))
		h := key.Hash(k)
		require.Equal(rt, h, p.Hash(k))
		require.Equal(rt, h, p.HashFunc()(k))
		require.Equal(rt, int((h>>32)*uint64(n)>>32), p.Partition(k))
		require.Equal(rt, p.Partition(k), p.PartitionHash(h))
		i, err := Of[string](p, k)
		require.NoError(rt, err)
		require.Equal(rt, p.Partition(k), i)
	})
}

func TestHashUsesAllPartitionsEvenly(t *testing.T) {
	const n, keys = 16, 64_000
	p := Hash[int](n)
	var count [n]int
	for k := range keys {
		count[p.Partition(k)]++
	}
	for i, c := range count {
		require.InDelta(t, keys/n, c, 300, "partition %d", i) // 5 sigma
	}
}

// The vectors of Kafka's own UtilsTest.
func TestMurmur2Vectors(t *testing.T) {
	for in, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		require.Equal(t, want, int32(murmur2([]byte(in))), in)
		// toPositive(hash) % n, as the Java client computes it.
		require.Equal(t, int(uint32(want)&0x7fffffff)%7, Murmur2(7).Partition(in), in)
	}
	require.Less(t, Murmur2(3).Partition(""), 3)
}

func TestEqual(t *testing.T) {
	f := func(k string) int { return len(k) }
	all := []Partitioner[string]{
		Hash[string](8), Hash[string](9), Murmur2(8), Murmur2(9),
		Func("len", 8, f), Func("len", 9, f), Func("other", 8, f),
	}
	for i, p := range all {
		for j, q := range all {
			require.Equal(t, i == j, p.Equal(q), "%s and %s", p, q)
			require.Equal(t, i == j, p.String() == q.String(), "%s and %s", p, q)
		}
		require.False(t, p.Equal(nil))
	}
	require.True(t, Hash[string](8).Equal(Hash[string](8)))
	require.True(t, Func("len", 8, f).Equal(Func("len", 8, func(string) int { return 0 })), "the name stands for the function")
}

func TestConstructorsNeverPanicAndCheckReports(t *testing.T) {
	bad := func(p Partitioner[string], want string) {
		t.Helper()
		require.ErrorContains(t, Check(p), want)
		if p != nil {
			require.NotPanics(t, func() { p.Partition("k") })
		}
	}
	bad(nil, "nil")
	bad(Hash[string](0), "hash(0) has 0 partitions; give 1")
	bad(Hash[string](-3), "-3 partitions")
	bad(Hash[string](math.MaxInt), "partitions; give 1 to 2147483647")
	bad(Murmur2(0), "murmur2(0) has 0 partitions")
	bad(Func("f", 0, func(string) int { return 0 }), "0 partitions")
	bad(Func[string]("f", 4, nil), `func "f"(4): the function is nil`)
	bad(Func("", 4, func(string) int { return 0 }), "no name")

	type badKey struct{ Tags *int }
	p := Hash[badKey](4)
	require.ErrorContains(t, Check(p), "field Tags")
	var te *codec.TypeError
	require.ErrorAs(t, Check(p), &te)
	require.Zero(t, p.Partition(badKey{}))
	require.Zero(t, p.(Hasher[badKey]).HashFunc()(badKey{}))
}

func TestOutOfRangeIsAnErrorOfTheRecord(t *testing.T) {
	for _, got := range []int{-1, 4, math.MinInt} {
		p := Func("mine", 4, func(string) int { return got })
		require.NoError(t, Check(p))
		_, err := Of(p, "k7")
		require.ErrorIs(t, err, ErrPartition)
		var pe *PartitionError
		require.ErrorAs(t, err, &pe)
		require.Equal(t, PartitionError{Partitioner: `func "mine"(4)`, Key: "k7", Got: got, Partitions: 4}, *pe)
		require.ErrorContains(t, err, "key k7")
		require.ErrorContains(t, err, "want 0 to 3")
	}
}
