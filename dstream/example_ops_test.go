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
