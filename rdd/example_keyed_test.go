package rdd_test

import (
	"cmp"
	"context"
	"fmt"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

type (
	price = rdd.Pair[string, int]
	city  = rdd.Pair[string, string]
)

func prices() *rdd.RDD[price] {
	return rdd.Parallelize([]price{rdd.KV("apple", 3), rdd.KV("pear", 5), rdd.KV("apple", 4)}, 2)
}

func cities() *rdd.RDD[city] {
	return rdd.Parallelize([]city{rdd.KV("apple", "Rome"), rdd.KV("plum", "Oslo")}, 1)
}

func show[T any](r *rdd.RDD[T]) {
	rows, err := rdd.Collect(context.Background(), r)
	if err != nil {
		fmt.Println(err)
	}
	for _, row := range rows {
		fmt.Println(row)
	}
}

func ExampleGroupByKey() {
	show(rdd.GroupByKey(prices(), partitioner.Hash[string](1)))
	// Output:
	// {apple [3 4]}
	// {pear [5]}
}

// The mean of each key: a sum and a number are combined.
func ExampleCombineByKey() {
	type mean struct{ sum, n int }
	means := rdd.CombineByKey(prices(),
		func(v int) mean { return mean{v, 1} },
		func(m mean, v int) mean { return mean{m.sum + v, m.n + 1} },
		func(a, b mean) mean { return mean{a.sum + b.sum, a.n + b.n} },
		partitioner.Hash[string](1))
	show(rdd.MapValues(means, func(m mean) float64 { return float64(m.sum) / float64(m.n) }))
	// Output:
	// {apple 3.5}
	// {pear 5}
}

func ExampleJoin() {
	show(rdd.Join(prices(), cities(), partitioner.Hash[string](1)))
	// Output:
	// {apple {3 Rome}}
	// {apple {4 Rome}}
}

func ExampleLeftOuterJoin() {
	joined := rdd.LeftOuterJoin(prices(), cities(), partitioner.Hash[string](1))
	show(rdd.Map(joined, func(p rdd.Pair[string, rdd.Joined[int, rdd.Option[string]]]) string {
		return fmt.Sprint(p.Key, " ", p.Value.Left, " ", p.Value.Right.OrElse("nowhere"))
	}))
	// Output:
	// apple 3 Rome
	// apple 4 Rome
	// pear 5 nowhere
}

func ExampleRightOuterJoin() {
	joined := rdd.RightOuterJoin(prices(), cities(), partitioner.Hash[string](1))
	show(rdd.Map(joined, func(p rdd.Pair[string, rdd.Joined[rdd.Option[int], string]]) string {
		return fmt.Sprint(p.Key, " ", p.Value.Left.OrElse(0), " ", p.Value.Right)
	}))
	// Output:
	// apple 3 Rome
	// apple 4 Rome
	// plum 0 Oslo
}

func ExampleFullOuterJoin() {
	joined := rdd.FullOuterJoin(prices(), cities(), partitioner.Hash[string](1))
	show(rdd.Keys(joined))
	// Output:
	// apple
	// apple
	// pear
	// plum
}

func ExampleCogroup() {
	show(rdd.Cogroup(prices(), cities(), partitioner.Hash[string](1)))
	// Output:
	// {apple {[3 4] [Rome]}}
	// {pear {[5] []}}
	// {plum {[] [Oslo]}}
}

func ExampleSubtractByKey() {
	show(rdd.SubtractByKey(prices(), cities(), partitioner.Hash[string](1)))
	// Output:
	// {pear 5}
}

func ExampleMerge() {
	p := partitioner.Hash[string](1)
	show(rdd.Merge(p, prices(), rdd.Parallelize([]price{rdd.KV("fig", 9)}, 3)))
	// Output:
	// {apple 3}
	// {pear 5}
	// {apple 4}
	// {fig 9}
}

func ExampleDistinct() {
	show(rdd.Distinct(rdd.Keys(prices()), 1))
	// Output:
	// apple
	// pear
}

func ExampleSortBy() {
	show(rdd.SortBy(prices(), func(p price) int { return p.Value }, 2))
	// Output:
	// {apple 3}
	// {apple 4}
	// {pear 5}
}

func ExampleTop() {
	fmt.Println(rdd.Top(context.Background(), rdd.Values(prices()), 2, cmp.Compare[int]))
	// Output: [5 4] <nil>
}

func ExampleCountByKey() {
	fmt.Println(rdd.CountByKey(context.Background(), prices()))
	// Output: map[apple:2 pear:1] <nil>
}

func ExampleCountByValue() {
	fmt.Println(rdd.CountByValue(context.Background(), rdd.Keys(prices())))
	// Output: map[apple:2 pear:1] <nil>
}

func ExampleFold() {
	fmt.Println(rdd.Fold(context.Background(), rdd.Values(prices()), 0, func(a, b int) int { return a + b }))
	// Output: 12 <nil>
}

func ExampleFirst() {
	fmt.Println(rdd.First(context.Background(), prices()))
	// Output: {apple 3} true <nil>
}

func ExamplePairs() {
	for item, price := range rdd.Pairs(prices()) {
		fmt.Println(item, price)
	}
	// Output:
	// apple 3
	// pear 5
	// apple 4
}
