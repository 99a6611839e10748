package dstream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
)

// play runs a job of the examples for a number of batches of one second, and prints
// what its one output, named "out", got in each.
func play[T any](batches int, job func(ssc *dstream.StreamingContext) dstream.Stream[T]) {
	var end []func()
	r := newRig(exampleTB{end: &end}, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(job(ssc), 0, dstream.Name("out"))
		return nil
	}).start().tick(batches)
	defer func() {
		for _, f := range end {
			f()
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, rows := range r.rows["out"] {
		fmt.Println(r.times["out"][i].Sub(zero), rows)
	}
}

// exampleTB is what an example has in the place of a test.
type exampleTB struct {
	testing.TB
	end *[]func()
}

func (exampleTB) Helper()                        {}
func (t exampleTB) Cleanup(f func())             { *t.end = append(*t.end, f) }
func (exampleTB) Errorf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (exampleTB) FailNow()                       { panic("failed") }

// prices and cities are the streams of the examples.
func prices(ssc *dstream.StreamingContext) *dstream.DStream[dstream.Pair[string, int]] {
	return dstream.QueueStream(ssc,
		[]dstream.Pair[string, int]{dstream.KV("apple", 3), dstream.KV("pear", 5), dstream.KV("apple", 4)},
		[]dstream.Pair[string, int]{dstream.KV("pear", 6)})
}

func cities(ssc *dstream.StreamingContext) *dstream.DStream[dstream.Pair[string, string]] {
	return dstream.QueueStream(ssc,
		[]dstream.Pair[string, string]{dstream.KV("apple", "Rome"), dstream.KV("plum", "Oslo")})
}

var onePartition = dstream.NumPartitions(1)

func ExampleReduceByKey() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.ReduceByKey(prices(ssc), func(a, b int) int { return a + b }, onePartition)
	})
	// Output:
	// 1s [{apple 7} {pear 5}]
	// 2s [{pear 6}]
}

func ExampleGroupByKey() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, []int]] {
		return dstream.GroupByKey(prices(ssc), onePartition)
	})
	// Output:
	// 1s [{apple [3 4]} {pear [5]}]
	// 2s [{pear [6]}]
}

// The mean of each key and batch.
func ExampleCombineByKey() {
	type mean struct{ sum, n int }
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, float64]] {
		means := dstream.CombineByKey(prices(ssc),
			func(v int) mean { return mean{v, 1} },
			func(m mean, v int) mean { return mean{m.sum + v, m.n + 1} },
			func(a, b mean) mean { return mean{a.sum + b.sum, a.n + b.n} },
			onePartition)
		return dstream.MapValues(means, func(m mean) float64 { return float64(m.sum) / float64(m.n) })
	})
	// Output:
	// 1s [{apple 3.5} {pear 5}]
	// 2s [{pear 6}]
}

func ExampleCountByValue() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int64]] {
		return dstream.CountByValue(dstream.QueueStream(ssc, []string{"to", "be", "or", "not", "to", "be"}), onePartition)
	})
	// Output: 1s [{to 2} {be 2} {or 1} {not 1}]
}

func ExampleJoin() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, dstream.Joined[int, string]]] {
		return dstream.Join(prices(ssc), cities(ssc), onePartition)
	})
	// Output:
	// 1s [{apple {3 Rome}} {apple {4 Rome}}]
	// 2s []
}

func ExampleLeftOuterJoin() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		joined := dstream.LeftOuterJoin(prices(ssc), cities(ssc), onePartition)
		return dstream.Map(joined, func(p dstream.Pair[string, dstream.Joined[int, dstream.Option[string]]]) string {
			return fmt.Sprint(p.Key, " ", p.Value.Left, " ", p.Value.Right.OrElse("nowhere"))
		})
	})
	// Output:
	// 1s [apple 3 Rome apple 4 Rome pear 5 nowhere]
	// 2s [pear 6 nowhere]
}

func ExampleRightOuterJoin() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		joined := dstream.RightOuterJoin(prices(ssc), cities(ssc), onePartition)
		return dstream.Map(joined, func(p dstream.Pair[string, dstream.Joined[dstream.Option[int], string]]) string {
			return fmt.Sprint(p.Key, " ", p.Value.Left.OrElse(0), " ", p.Value.Right)
		})
	})
	// Output: 1s [apple 3 Rome apple 4 Rome plum 0 Oslo]
}

func ExampleFullOuterJoin() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		joined := dstream.FullOuterJoin(prices(ssc), cities(ssc), onePartition)
		return dstream.Map(joined, func(p dstream.Pair[string, dstream.Joined[dstream.Option[int], dstream.Option[string]]]) string {
			return fmt.Sprint(p.Key, " ", p.Value.Left.OrElse(0), " ", p.Value.Right.OrElse("nowhere"))
		})
	})
	// Output: 1s [apple 3 Rome apple 4 Rome pear 5 nowhere plum 0 Oslo]
}

func ExampleCogroup() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, dstream.Grouped[int, string]]] {
		return dstream.Cogroup(prices(ssc), cities(ssc), onePartition)
	})
	// Output: 1s [{apple {[3 4] [Rome]}} {pear {[5] []}} {plum {[] [Oslo]}}]
}

func ExampleSubtractByKey() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.SubtractByKey(prices(ssc), cities(ssc), onePartition)
	})
	// Output:
	// 1s [{pear 5}]
	// 2s [{pear 6}]
}

// A stream is joined with a fixed table, which is laid out once.
func ExampleConstant() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, dstream.Joined[int, string]]] {
		colours := dstream.Parallelize(ssc, []dstream.Pair[string, string]{dstream.KV("apple", "red"), dstream.KV("pear", "green")})
		return dstream.Join(prices(ssc), dstream.Constant(ssc, colours), onePartition)
	})
	// Output:
	// 1s [{apple {3 red}} {apple {4 red}} {pear {5 green}}]
	// 2s [{pear {6 green}}]
}

func ExampleTransform() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.Transform(prices(ssc), func(_ time.Time, r *dstream.RDD[dstream.Pair[string, int]]) (*dstream.RDD[string], error) {
			n, err := rdd.Count(context.Background(), r)
			return rdd.Map(rdd.Distinct(rdd.Keys(r), 1), func(key string) string { return fmt.Sprint(key, " of ", n) }), err
		})
	})
	// Output:
	// 1s [apple of 3 pear of 3]
	// 2s [pear of 1]
}

func ExampleTransformWith() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.TransformWith(prices(ssc), cities(ssc),
			func(_ time.Time, a *dstream.RDD[dstream.Pair[string, int]], b *dstream.RDD[dstream.Pair[string, string]]) (*dstream.RDD[string], error) {
				return rdd.Distinct(rdd.Union(rdd.Keys(a), rdd.Keys(b)), 1), nil
			})
	})
	// Output:
	// 1s [apple pear plum]
	// 2s [pear]
}

func ExampleTransformAll() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		a, b := dstream.QueueStream(ssc, []int{3, 1}), dstream.QueueStream(ssc, []int{2})
		return dstream.TransformAll([]dstream.Stream[int]{a, b}, func(_ time.Time, rs []*dstream.RDD[int]) (*dstream.RDD[int], error) {
			return rdd.SortBy(rdd.Union(rs...), func(v int) int { return v }, 1), nil
		})
	})
	// Output: 1s [1 2 3]
}

func ExampleUnion() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		return dstream.Union(dstream.QueueStream(ssc, []int{1, 2}, []int{3}), dstream.QueueStream(ssc, []int{10}))
	})
	// Output:
	// 1s [1 2 10]
	// 2s [3]
}

// Two seconds, every second.
func ExampleWindow() {
	play(4, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		return dstream.Window(dstream.QueueStream(ssc, []int{1}, []int{2}, []int{3}), 2*time.Second, time.Second)
	})
	// Output:
	// 1s [1]
	// 2s [1 2]
	// 3s [2 3]
	// 4s [3]
}

func ExampleReduceByWindow() {
	play(4, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		words := dstream.QueueStream(ssc, []string{"a", "b"}, []string{"c"}, []string{"d"})
		return dstream.ReduceByWindow(words, func(a, b string) string { return a + b }, 4*time.Second, 2*time.Second)
	})
	// Output:
	// 2s [abc]
	// 4s [abcd]
}

func ExampleReduceByWindowInverse() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		return dstream.ReduceByWindowInverse(dstream.QueueStream(ssc, []int{1, 2}, []int{4}),
			func(a, b int) int { return a + b }, func(a, b int) int { return a - b }, 2*time.Second, time.Second)
	})
	// Output:
	// 1s [3]
	// 2s [7]
	// 3s [4]
}

func ExampleCountByWindow() {
	play(4, func(ssc *dstream.StreamingContext) dstream.Stream[int64] {
		return dstream.CountByWindow(dstream.QueueStream(ssc, []int{7, 7}, []int{7}), 2*time.Second, time.Second)
	})
	// Output:
	// 1s [2]
	// 2s [3]
	// 3s [1]
	// 4s [0]
}

func ExampleCountByValueAndWindow() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int64]] {
		words := dstream.QueueStream(ssc, []string{"a"}, []string{"b", "b"}, []string{"b"})
		return dstream.CountByValueAndWindow(words, 2*time.Second, time.Second, onePartition)
	})
	// Output:
	// 1s [{a 1}]
	// 2s [{a 1} {b 2}]
	// 3s [{b 3}]
}

func ExampleGroupByKeyAndWindow() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, []int]] {
		return dstream.GroupByKeyAndWindow(prices(ssc), 2*time.Second, time.Second, onePartition)
	})
	// Output:
	// 1s [{apple [3 4]} {pear [5]}]
	// 2s [{apple [3 4]} {pear [5 6]}]
}

func ExampleReduceByKeyAndWindow() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.ReduceByKeyAndWindow(prices(ssc), func(a, b int) int { return max(a, b) }, 2*time.Second, time.Second, onePartition)
	})
	// Output:
	// 1s [{apple 4} {pear 5}]
	// 2s [{apple 4} {pear 6}]
	// 3s [{pear 6}]
}

// The inverse function takes away what leaves the window; the filter drops keys of
// which nothing is left.
func ExampleReduceByKeyAndWindowInverse() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.ReduceByKeyAndWindowInverse(prices(ssc),
			func(a, b int) int { return a + b }, func(a, b int) int { return a - b },
			func(_ string, sum int) bool { return sum != 0 },
			2*time.Second, time.Second, onePartition)
	})
	// Output:
	// 1s [{apple 7} {pear 5}]
	// 2s [{apple 7} {pear 11}]
	// 3s [{pear 6}]
}

func ExampleUpdateStateByKey() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.UpdateStateByKey(prices(ssc), func(values []int, state dstream.Option[int]) dstream.Option[int] {
			if len(values) == 0 && state.OrElse(0) > 10 {
				return dstream.None[int]() // enough of it
			}
			sum := state.OrElse(0)
			for _, v := range values {
				sum += v
			}
			return dstream.Some(sum)
		}, onePartition, dstream.Name("sums"))
	})
	// Output:
	// 1s [{apple 7} {pear 5}]
	// 2s [{apple 7} {pear 11}]
	// 3s [{apple 7}]
}
