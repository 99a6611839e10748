package rdd_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

type row struct {
	key    string
	value  int
	origin rdd.Origin
}

// scenario is a dataset whose records carry their own expected origins.
type scenario struct {
	sources [][]row
	p       partitioner.Partitioner[string]
}

func genScenario(t *rapid.T) scenario {
	s := scenario{sources: make([][]row, rapid.IntRange(1, 5).Draw(t, "sources"))}
	for i := range s.sources {
		n := rapid.IntRange(0, 60).Draw(t, "rows")
		for j := range n {
			s.sources[i] = append(s.sources[i], row{
				key:    fmt.Sprint("k", rapid.IntRange(0, 12).Draw(t, "key")),
				value:  rapid.IntRange(0, 9).Draw(t, "value"),
				origin: rdd.Origin{Stream: "s", Partition: fmt.Sprint("p", i, j/20), Offset: int64(100 + 3*j)},
			})
		}
	}
	n := rapid.IntRange(1, 4).Draw(t, "targets")
	s.p = []partitioner.Partitioner[string]{
		partitioner.Hash[string](n), partitioner.Murmur2(n),
		partitioner.Func("fnv", n, func(k string) int {
			h := fnv.New32a()
			_, _ = h.Write([]byte(k))
			return int(h.Sum32()) % n
		}),
	}[rapid.IntRange(0, 2).Draw(t, "partitioner")]
	return s
}

// rdd pushes the rows, and lets other tasks run in between so that completion
// order differs from source order.
func (s scenario) rdd() *rdd.RDD[kv] {
	return rdd.New(len(s.sources), func(t *rdd.Task, emit func(kv) error) error {
		for _, r := range s.sources[t.Partition] {
			if rand.IntN(8) == 0 {
				runtime.Gosched()
			}
			t.Origin = r.origin
			if err := emit(kv{Key: r.key, Value: r.value}); err != nil {
				return err
			}
		}
		return nil
	})
}

// executor draws workers and block size, which must not matter.
func genExecutor(t *rapid.T) rdd.Executor {
	pools := rdd.NewPoolsOf(rapid.SampledFrom([]int{1, 2, 7, 256}).Draw(t, "blockRows"))
	return rdd.Local(rapid.IntRange(1, 4).Draw(t, "workers"), pools)
}

// The order rule: source 0's records first, then 1, …, each in its order; hash and
// origin of every row are right.
func TestOrderOfShuffle(t *testing.T) {
	key, err := codec.KeyFor[string]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		s := genScenario(rt)
		want := make([][]row, s.p.Partitions())
		wantSource := make([][]int, s.p.Partitions())
		for i, src := range s.sources {
			for _, r := range src {
				target := s.p.Partition(r.key)
				want[target] = append(want[target], r)
				wantSource[target] = append(wantSource[target], i)
			}
		}
		exec := genExecutor(rt)
		sh := rdd.Shuffle(s.rdd(), s.p)
		if err := rdd.Materialize(t.Context(), exec, sh.Stage()); err != nil {
			rt.Fatal(err)
		}
		for target := range want {
			var got []row
			var source []int
			task := &rdd.Task{Ctx: t.Context()}
			for _, b := range sh.Blocks(target) {
				for i := range b.N {
					if b.Hash[i] != key.Hash(b.Key[i]) {
						rt.Fatalf("hash of %q", b.Key[i])
					}
					if b.At(task, i); task.Origin != b.Origin(i) {
						rt.Fatalf("cursor %v, origin %v", task.Origin, b.Origin(i))
					}
					got = append(got, row{b.Key[i], b.Value[i], b.Origin(i)})
					source = append(source, b.Source)
				}
			}
			if fmt.Sprint(got, source) != fmt.Sprint(want[target], wantSource[target]) {
				rt.Fatalf("target %d:\n got %v %v\nwant %v %v", target, got, source, want[target], wantSource[target])
			}
		}

		// A second shuffle, a keep and a repartition behind it mix origins in one block.
		again := rdd.Keep(rdd.Repartition(rdd.PartitionBy(rdd.Map(sh.RDD(), func(v kv) kv { return kv{Key: v.Key + "x", Value: v.Value} }), s.p), 3))
		origins := map[string]int{}
		for _, src := range s.sources {
			for _, r := range src {
				origins[fmt.Sprint(r.key, "x", r.value, r.origin)]++
			}
		}
		if err := rdd.Materialize(t.Context(), exec, again.Deps()...); err != nil {
			rt.Fatal(err)
		}
		for p := range again.NumPartitions() {
			task := &rdd.Task{Ctx: t.Context(), Partition: p}
			if err := again.Compute(task, func(v kv) error { origins[fmt.Sprint(v.Key, v.Value, task.Origin)]--; return nil }); err != nil {
				rt.Fatal(err)
			}
		}
		for o, n := range origins {
			if n != 0 {
				rt.Fatalf("origin %s: %d too few", o, n)
			}
		}
		sh.Release()
	})
}

// First-seen order of groups, and a reduction that is not commutative.
func TestOrderOfReduceByKey(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := genScenario(rt)
		want := make([][]rdd.Pair[string, string], s.p.Partitions())
		for _, src := range s.sources {
			for _, part := range firstSeen(src) {
				target := s.p.Partition(part.Key)
				want[target] = fold(want[target], part)
			}
		}
		texts := rdd.MapValues(s.rdd(), func(v int) string { return fmt.Sprint(v) })
		r := rdd.ReduceByKey(texts, func(a, b string) string { return a + b }, s.p).WithExecutor(genExecutor(rt))
		got, err := rdd.Collect(t.Context(), rdd.Glom(r))
		if err != nil {
			rt.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("\n got %v\nwant %v", got, want)
		}
	})
}

func firstSeen(rows []row) (out []rdd.Pair[string, string]) {
	for _, r := range rows {
		out = fold(out, rdd.KV(r.key, fmt.Sprint(r.value)))
	}
	return out
}

func fold(have []rdd.Pair[string, string], p rdd.Pair[string, string]) []rdd.Pair[string, string] {
	for i := range have {
		if have[i].Key == p.Key {
			have[i].Value += p.Value
			return have
		}
	}
	return append(have, p)
}

func TestRepartitionIsRoundRobin(t *testing.T) {
	// new java.util.Random(42).nextInt() is -1170105035, of seed 0 it is -1155484576:
	// the 31 bits that a bounded number is made of are the upper ones.
	require.EqualValues(t, 3124862261>>2, rdd.JavaNextInt(42, 1<<30))
	require.EqualValues(t, 3139482720>>1, rdd.JavaNextInt(0, 1<<31-1))
	require.EqualValues(t, 60, rdd.JavaNextInt(0, 100))
	require.EqualValues(t, 0, rdd.JavaNextInt(42, 10))
	for bound := int32(1); bound < 70; bound++ {
		for seed := int64(-20); seed < 20; seed++ {
			got := rdd.JavaNextInt(seed, bound)
			require.True(t, got >= 0 && got < bound)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := rdd.Parallelize(numbers(rapid.IntRange(0, 50).Draw(rt, "records")), rapid.IntRange(1, 4).Draw(rt, "from"))
		n := rapid.IntRange(1, 5).Draw(rt, "to")
		want := make([][]int, n)
		for source, part := range glom(t, in) {
			at := rdd.SparkStart(source, n)
			for _, v := range part {
				at++
				want[at%n] = append(want[at%n], v)
			}
		}
		got := glom(t, rdd.Repartition(in, n).WithExecutor(genExecutor(rt)))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("\n got %v\nwant %v", got, want)
		}
	})
}

// Whatever the chain, workers and block sizes do not matter.
func TestOrderIsIndependentOfWorkers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := genScenario(rt)
		job := func(e rdd.Executor) string {
			in := s.rdd().WithExecutor(e)
			kept := rdd.Keep(rdd.PartitionBy(in, s.p))
			sums := rdd.ReduceByKey(rdd.Union(kept, in), func(a, b int) int { return a*31 + b }, partitioner.Hash[string](3))
			out, err := rdd.Collect(t.Context(), rdd.Glom(rdd.Repartition(sums, 2)))
			if err != nil {
				rt.Fatal(err)
			}
			n, err := rdd.Count(t.Context(), kept)
			if err != nil {
				rt.Fatal(err)
			}
			return fmt.Sprint(out, n)
		}
		if one, many := job(rdd.Local(1, nil)), job(genExecutor(rt)); one != many {
			rt.Fatalf("\none worker %s\nmany       %s", one, many)
		}
	})
}
