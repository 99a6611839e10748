package rdd_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/statemill/statemill/rdd"
)

var background = context.Background()

func ExampleCollect() {
	fmt.Println(rdd.Collect(background, rdd.Parallelize([]int{1, 2, 3}, 2)))
	// Output: [1 2 3] <nil>
}

func ExampleTake() {
	fmt.Println(rdd.Take(background, rdd.Parallelize([]int{1, 2, 3}, 2), 2))
	// Output: [1 2] <nil>
}

func ExampleCount() {
	fmt.Println(rdd.Count(background, rdd.Parallelize([]string{"a", "b"}, 1)))
	// Output: 2 <nil>
}

func ExampleReduce() {
	sum := func(a, b int) int { return a + b }
	fmt.Println(rdd.Reduce(background, rdd.Parallelize([]int{1, 2, 3}, 2), sum))
	fmt.Println(rdd.Reduce(background, rdd.Parallelize([]int(nil), 2), sum))
	// Output:
	// 6 true <nil>
	// 0 false <nil>
}

func ExampleKeyBy() {
	r := rdd.KeyBy(rdd.Parallelize([]string{"a", "bb"}, 1), func(s string) int { return len(s) })
	fmt.Println(rdd.Collect(background, r))
	// Output: [{1 a} {2 bb}] <nil>
}

func ExampleGlom() {
	fmt.Println(rdd.Collect(background, rdd.Glom(rdd.Parallelize([]int{1, 2, 3}, 2))))
	// Output: [[1] [2 3]] <nil>
}

func ExampleRDD_NumPartitions() {
	fmt.Println(rdd.Parallelize([]int{1, 2, 3}, 2).NumPartitions())
	// Output: 2
}

// The partitions run side by side, each in its order.
func ExampleForeachPartition() {
	var sum atomic.Int64
	err := rdd.ForeachPartition(background, rdd.Parallelize([]int{1, 2, 3}, 2), func(_ context.Context, _ int, in iter.Seq[int]) error {
		for v := range in {
			sum.Add(int64(v))
		}
		return nil
	})
	fmt.Println(sum.Load(), err)
	// Output: 6 <nil>
}
