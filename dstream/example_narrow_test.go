package dstream_test

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/partitioner"
)

// someTexts is the stream of texts of the examples.
func someTexts(ssc *dstream.StreamingContext) *dstream.DStream[string] {
	return dstream.QueueStream(ssc, []string{"to be", "or not"}, []string{"to be"})
}

func ExampleMap() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		return dstream.Map(someTexts(ssc), func(line string) int { return len(line) })
	})
	// Output:
	// 1s [5 6]
	// 2s [5]
}

// An error would fail the batch, or leave the record out with WithRecordPolicy(Skip).
func ExampleMapErr() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[int] {
		return dstream.MapErr(dstream.QueueStream(ssc, []string{"1", "20"}), strconv.Atoi)
	})
	// Output: 1s [1 20]
}

func ExampleFlatMap() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.FlatMap(someTexts(ssc), strings.Fields)
	})
	// Output:
	// 1s [to be or not]
	// 2s [to be]
}

func ExampleFlatMapErr() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.FlatMapErr(dstream.QueueStream(ssc, []string{"a=1", "b=2"}), func(text string) ([]string, error) {
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				return nil, fmt.Errorf("%q has no value", text)
			}
			return []string{name, value}, nil
		})
	})
	// Output: 1s [a 1 b 2]
}

func ExampleFlatMapSeq() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.FlatMapSeq(someTexts(ssc), func(line string) iter.Seq[string] { return strings.SplitSeq(line, " ") })
	})
	// Output: 1s [to be or not]
}

// No slice is made for the results.
func ExampleFlatMapEmit() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.FlatMapEmit(someTexts(ssc), func(line string, emit func(string)) error {
			for word := range strings.FieldsSeq(line) {
				emit(word)
			}
			return nil
		})
	})
	// Output: 1s [to be or not]
}

func ExampleFilter() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.Filter(someTexts(ssc), func(line string) bool { return strings.HasPrefix(line, "to") })
	})
	// Output:
	// 1s [to be]
	// 2s [to be]
}

func ExampleFilterErr() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.FilterErr(dstream.QueueStream(ssc, []string{"true", "0", "t"}), strconv.ParseBool)
	})
	// Output: 1s [true t]
}

// What is costly to make is made once a partition.
func ExampleMapPartitions() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.MapPartitions(someTexts(ssc), func(records iter.Seq[string]) iter.Seq[string] {
			return func(yield func(string) bool) {
				replacer := strings.NewReplacer("o", "0")
				for line := range records {
					if !yield(replacer.Replace(line)) {
						return
					}
				}
			}
		})
	})
	// Output: 1s [t0 be 0r n0t]
}

func ExampleMapPair() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.MapPair(someTexts(ssc), func(line string) (string, int) { return line, len(line) })
	})
	// Output: 1s [{to be 5} {or not 6}]
}

func ExampleMapPairErr() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.MapPairErr(dstream.QueueStream(ssc, []string{"a=1", "b=2"}), func(text string) (string, int, error) {
			name, value, _ := strings.Cut(text, "=")
			n, err := strconv.Atoi(value)
			return name, n, err
		})
	})
	// Output: 1s [{a 1} {b 2}]
}

func ExampleKeyBy() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[int, string]] {
		return dstream.KeyBy(someTexts(ssc), func(line string) int { return len(line) })
	})
	// Output: 1s [{5 to be} {6 or not}]
}

func ExampleMapValues() {
	play(2, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		return dstream.MapValues(prices(ssc), func(price int) int { return 100 * price })
	})
	// Output:
	// 1s [{apple 300} {pear 500} {apple 400}]
	// 2s [{pear 600}]
}

func ExampleMapValuesErr() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, int]] {
		fields := dstream.QueueStream(ssc, []dstream.Pair[string, string]{dstream.KV("a", "1")})
		return dstream.MapValuesErr(fields, strconv.Atoi)
	})
	// Output: 1s [{a 1}]
}

func ExampleFlatMapValues() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[dstream.Pair[string, string]] {
		fields := dstream.QueueStream(ssc, []dstream.Pair[string, string]{dstream.KV("ann", "red blue"), dstream.KV("bob", "")})
		return dstream.FlatMapValues(fields, strings.Fields)
	})
	// Output: 1s [{ann red} {ann blue}]
}

// A batch without records has the count 0.
func ExampleCount() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[int64] {
		return dstream.Count(someTexts(ssc))
	})
	// Output:
	// 1s [2]
	// 2s [1]
	// 3s [0]
}

// A batch without records has no result.
func ExampleReduce() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.Reduce(someTexts(ssc), func(a, b string) string { return a + " " + b })
	})
	// Output:
	// 1s [to be or not]
	// 2s [to be]
	// 3s []
}

// Each partition as one record.
func ExampleGlom() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[[]int] {
		return dstream.Glom(dstream.QueueNamed(ssc, "numbers", 2, []int{1, 2, 3, 4}))
	})
	// Output: 1s [[1 2] [3 4]]
}

func ExampleRepartition() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[[]int] {
		return dstream.Glom(dstream.Repartition(dstream.QueueStream(ssc, []int{1, 2, 3, 4, 5, 6}), 2))
	})
	// Output: 1s [[1 3 5] [2 4 6]]
}

// Numbers below 10 to one partition, the others to a second one.
func ExamplePartitionBy() {
	play(1, func(ssc *dstream.StreamingContext) dstream.Stream[[]dstream.Pair[int, string]] {
		pairs := dstream.KeyBy(dstream.QueueStream(ssc, []string{"1", "20", "3"}), func(text string) int {
			n, _ := strconv.Atoi(text)
			return n
		})
		bySize := partitioner.Func("by size", 2, func(n int) int { return min(n/10, 1) })
		return dstream.Glom(dstream.PartitionBy(pairs, bySize))
	})
	// Output: 1s [[{1 1} {3 3}] [{20 20}]]
}

func ExampleQueueStream() {
	play(3, func(ssc *dstream.StreamingContext) dstream.Stream[string] {
		return dstream.QueueStream(ssc, []string{"a", "b"}, []string{"c"})
	})
	// Output:
	// 1s [a b]
	// 2s [c]
	// 3s []
}
