package rdd_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// Words of two partitions are counted; groups come in first-seen order.
func ExampleReduceByKey() {
	lines := rdd.Parallelize([]string{"to be or", "not to be"}, 2)
	words := rdd.FlatMap(lines, strings.Fields)
	ones := rdd.Map(words, func(w string) rdd.Pair[string, int] { return rdd.KV(w, 1) })
	counts := rdd.ReduceByKey(ones, func(a, b int) int { return a + b }, partitioner.Hash[string](1))
	got, err := rdd.Collect(context.Background(), counts)
	fmt.Println(got, err)
	// Output: [{to 2} {be 2} {or 1} {not 1}] <nil>
}

// Kept rows are computed once and read many times until they are released.
func ExampleKeep() {
	calls := 0
	kept := rdd.Keep(rdd.Map(rdd.Parallelize([]int{1, 2, 3}, 1), func(v int) int { calls++; return v * v }))
	sum, _, _ := rdd.Reduce(context.Background(), kept, func(a, b int) int { return a + b })
	n, _ := rdd.Count(context.Background(), kept)
	fmt.Println(sum, n, calls)
	kept.Release()
	_, err := rdd.Count(context.Background(), kept)
	fmt.Println(err)
	// Output:
	// 14 3 3
	// map: released: a dataset is valid until the function it was given to returns; Retain it to keep it longer
}
