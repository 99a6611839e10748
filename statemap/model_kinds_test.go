package statemap

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/statemill/statemill/internal/invariants"
)

func modelTest[K comparable, S any](keys []K, hash func(K) uint64, state func(int) S) func(*testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			x := &model[K, S]{keys: keys, state: state}
			x.opts = Options[K]{
				DeltaChainThreshold: rapid.SampledFrom([]int{1, 2, 3, 20}).Draw(t, "threshold"),
				NoAutoDetach:        rapid.IntRange(0, 3).Draw(t, "noauto") == 0,
				InitialCapacity:     rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "capacity"),
				Hash:                hash,
			}
			if rapid.Bool().Draw(t, "background") {
				x.opts.Background = func(f func()) { x.jobs = append(x.jobs, f) }
			}
			defer func() {
				for _, r := range x.readers {
					r.stop()
				}
			}()
			t.Repeat(x.actions())
			for _, f := range x.jobs {
				f()
			}
			x.check(t)
		})
	}
}

func manyKeys[K any](n int, f func(i int) K) []K {
	keys := make([]K, n)
	for i := range keys {
		keys[i] = f(i)
	}
	return keys
}

// The property test of the package: E1–E8, R5, first-touch order, abort.
func TestModel(t *testing.T) {
	num := func(n int) int64 { return int64(n) }
	t.Run("string/int64", modelTest(manyKeys(24, func(i int) string { return strings.Repeat("k", i%11) + fmt.Sprint(i) }), nil, num))
	t.Run("string with empty and long", modelTest(
		append(manyKeys(9, func(i int) string { return strings.Repeat("long", i*i*40) }), strings.Repeat("x", maxSmallKey), strings.Repeat("x", maxSmallKey+1), strings.Repeat("y", bigKey), "a", "b"),
		nil, func(n int) string { return fmt.Sprint(n) }))
	t.Run("int/pointer", modelTest(manyKeys(16, func(i int) int { return i - 3 }), func(k int) uint64 { return uint64(k) },
		func(n int) *[2]int { return &[2]int{n, -n} }))
	t.Run("all hashes collide", modelTest(manyKeys(30, func(i int) int { return i }), func(int) uint64 { return 42 }, num))
	t.Run("few hashes", modelTest(manyKeys(20, func(i int) string { return fmt.Sprint("key", i) }), func(s string) uint64 { return uint64(len(s) % 3) }, func(n int) []int { return []int{n} }))
	type key struct {
		A string
		B int32
		C [2]string
	}
	t.Run("struct", modelTest(manyKeys(12, func(i int) key { return key{fmt.Sprint(i % 3), int32(i), [2]string{"", "c"}} }), nil, func(n int) struct{} { return struct{}{} }))
	t.Run("array", modelTest(manyKeys(12, func(i int) [2]int32 { return [2]int32{int32(i), 1} }), nil, func(n int) map[string]int { return map[string]int{"n": n} }))
	type name string
	t.Run("named string/large state", modelTest(manyKeys(10, func(i int) name { return name(fmt.Sprint("n", i)) }), nil, func(n int) [20]int64 { return [20]int64{int64(n), 19: int64(n)} }))
	if !testing.Short() && !invariants.Enabled { // slow under the race detector
		t.Run("1300 keys", func(t *testing.T) {
			keys := manyKeys(1300, func(i int) string { return fmt.Sprintf("user-%05d", i) })
			modelTest(keys, nil, num)(t)
		})
	}
}
