package rdd_test

import (
	"fmt"
	"strings"

	"github.com/statemill/statemill/rdd"
)

func ExampleMap() {
	r := rdd.Map(rdd.Parallelize([]int{1, 2, 3}, 2), func(i int) int { return i * i })
	fmt.Println(rdd.Collect(background, r))
	// Output: [1 4 9] <nil>
}

func ExampleFilter() {
	odd := rdd.Filter(rdd.Parallelize([]int{1, 2, 3}, 2), func(i int) bool { return i%2 == 1 })
	fmt.Println(rdd.Collect(background, odd))
	// Output: [1 3] <nil>
}

func ExampleFlatMap() {
	words := rdd.FlatMap(rdd.Parallelize([]string{"to be", "or not"}, 2), strings.Fields)
	fmt.Println(rdd.Collect(background, words))
	// Output: [to be or not] <nil>
}

func ExampleMapValues() {
	r := rdd.KeyBy(rdd.Parallelize([]string{"a", "bb"}, 1), func(s string) int { return len(s) })
	fmt.Println(rdd.Collect(background, rdd.MapValues(r, strings.ToUpper)))
	// Output: [{1 A} {2 BB}] <nil>
}

func ExampleUnion() {
	r := rdd.Union(rdd.Parallelize([]int{1, 2}, 1), rdd.Parallelize([]int{2, 3}, 1))
	fmt.Println(rdd.Collect(background, r))
	fmt.Println(r.NumPartitions())
	// Output:
	// [1 2 2 3] <nil>
	// 2
}

func ExampleRepartition() {
	r := rdd.Repartition(rdd.Parallelize([]int{1, 2, 3, 4}, 1), 2)
	fmt.Println(r.NumPartitions())
	fmt.Println(rdd.Count(background, r))
	// Output:
	// 2
	// 4 <nil>
}

func ExampleAggregate() {
	type mean struct{ sum, n int }
	m, err := rdd.Aggregate(background, rdd.Parallelize([]int{1, 2, 6}, 2),
		func() mean { return mean{} },
		func(m mean, i int) mean { return mean{m.sum + i, m.n + 1} },
		func(a, b mean) mean { return mean{a.sum + b.sum, a.n + b.n} })
	fmt.Println(m.sum/m.n, err)
	// Output: 3 <nil>
}
