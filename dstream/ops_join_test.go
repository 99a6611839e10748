package dstream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// joinModel gives the rows of a join of one batch in the plainest way, sorted; l and
// r say whether keys stay that the other side lacks.
func joinModel(a, b []kv, l, r bool) []string {
	out := []string{}
	has := func(rows []kv, key string) bool {
		return slices.ContainsFunc(rows, func(p kv) bool { return p.Key == key })
	}
	for _, p := range a {
		for _, q := range b {
			if p.Key == q.Key {
				out = append(out, fmt.Sprintf("%s %d %d", p.Key, p.Value, q.Value))
			}
		}
		if l && !has(b, p.Key) {
			out = append(out, fmt.Sprintf("%s %d -", p.Key, p.Value))
		}
	}
	for _, q := range b {
		if r && !has(a, q.Key) {
			out = append(out, fmt.Sprintf("%s - %d", q.Key, q.Value))
		}
	}
	slices.Sort(out)
	return out
}

func option(o dstream.Option[int]) string {
	if v, ok := o.Get(); ok {
		return fmt.Sprint(v)
	}
	return "-"
}

func genBatches(rt *rapid.T, name string) [][]kv {
	row := rapid.Custom(func(rt *rapid.T) kv {
		return kv{Key: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key"), Value: rapid.IntRange(0, 9).Draw(rt, "value")}
	})
	return rapid.SliceOfN(rapid.SliceOfN(row, 0, 12), 1, 4).Draw(rt, name)
}

func at[T any](batches [][]T, i int) []T {
	if i < len(batches) {
		return batches[i]
	}
	return nil
}

func texts[T any](batches [][]T, f func(T) string) [][]string {
	out := [][]string{}
	for _, b := range batches {
		lines := []string{}
		for _, v := range b {
			lines = append(lines, f(v))
		}
		slices.Sort(lines)
		out = append(out, lines)
	}
	return out
}

// Joins, cogroup and subtractByKey give what a plain model gives, for any number
// of partitions, and whether a side lies by the partitioner already or is kept
// for others.
func TestJoinsAreTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		as, bs := genBatches(rt, "left"), genBatches(rt, "right")
		n := rapid.IntRange(1, 4).Draw(rt, "partitions")
		laidLeft, laidRight := rapid.Bool().Draw(rt, "left lies"), rapid.Bool().Draw(rt, "right lies")
		r := newRig(t, time.Second, func(c ssc) error {
			side := func(name string, batches [][]kv, lies bool) *dstream.DStream[kv] {
				s := dstream.From(c, name, newScript(2, batches...))
				if lies {
					s = dstream.PartitionBy(s, partitioner.Hash[string](n))
				}
				return s
			}
			a, b, by := side("a", as, laidLeft), side("b", bs, laidRight), dstream.NumPartitions(n)
			dstream.Print(dstream.Join(a, b, by, dstream.Name("inner")), 1)
			dstream.Print(dstream.LeftOuterJoin(a, b, by), 1, dstream.Name("left"))
			dstream.Print(dstream.RightOuterJoin(a, b, by), 1, dstream.Name("right"))
			dstream.Print(dstream.FullOuterJoin(a, b, dstream.PartitionedBy(partitioner.Hash[string](n))), 1, dstream.Name("full"))
			dstream.Print(dstream.Cogroup(a, b, by), 1, dstream.Name("cogroup"))
			dstream.Print(dstream.SubtractByKey(a, b, by), 1, dstream.Name("subtract"))
			return nil
		}, dstream.WithRemember(3*time.Second)).start()
		defer func() { require.NoError(rt, r.ssc.Stop(context.Background())) }()
		batches := max(len(as), len(bs)) + 1
		r.tick(batches)
		var inner, left, right, full, both, rest [][]string
		for i := range batches {
			a, b := at(as, i), at(bs, i)
			inner = append(inner, joinModel(a, b, false, false))
			left = append(left, joinModel(a, b, true, false))
			right = append(right, joinModel(a, b, false, true))
			full = append(full, joinModel(a, b, true, true))
			groups, kept := []string{}, []string{}
			values := func(rows []kv, key string) (all []int) {
				for _, p := range rows {
					if p.Key == key {
						all = append(all, p.Value)
					}
				}
				return all
			}
			for _, key := range []string{"a", "b", "c", "d"} {
				if l, r := values(a, key), values(b, key); l != nil || r != nil {
					groups = append(groups, fmt.Sprint(key, l, r))
				}
			}
			for _, p := range a {
				if values(b, p.Key) == nil {
					kept = append(kept, fmt.Sprint(p))
				}
			}
			slices.Sort(kept)
			both, rest = append(both, groups), append(rest, kept)
		}
		require.Equal(rt, inner, texts(out[dstream.Pair[string, dstream.Joined[int, int]]](r, "inner"), func(p dstream.Pair[string, dstream.Joined[int, int]]) string {
			return fmt.Sprintf("%s %d %d", p.Key, p.Value.Left, p.Value.Right)
		}))
		require.Equal(rt, left, texts(out[dstream.Pair[string, dstream.Joined[int, dstream.Option[int]]]](r, "left"), func(p dstream.Pair[string, dstream.Joined[int, dstream.Option[int]]]) string {
			return fmt.Sprintf("%s %d %s", p.Key, p.Value.Left, option(p.Value.Right))
		}))
		require.Equal(rt, right, texts(out[dstream.Pair[string, dstream.Joined[dstream.Option[int], int]]](r, "right"), func(p dstream.Pair[string, dstream.Joined[dstream.Option[int], int]]) string {
			return fmt.Sprintf("%s %s %d", p.Key, option(p.Value.Left), p.Value.Right)
		}))
		require.Equal(rt, full, texts(out[dstream.Pair[string, dstream.Joined[dstream.Option[int], dstream.Option[int]]]](r, "full"), func(p dstream.Pair[string, dstream.Joined[dstream.Option[int], dstream.Option[int]]]) string {
			return fmt.Sprintf("%s %s %s", p.Key, option(p.Value.Left), option(p.Value.Right))
		}))
		require.Equal(rt, both, texts(out[dstream.Pair[string, dstream.Grouped[int, int]]](r, "cogroup"), func(p dstream.Pair[string, dstream.Grouped[int, int]]) string {
			return fmt.Sprint(p.Key, p.Value.Left, p.Value.Right)
		}))
		require.Equal(rt, rest, texts(out[kv](r, "subtract"), func(p kv) string { return fmt.Sprint(p) }))
	})
}

func TestGroupAndCombine(t *testing.T) {
	in := []string{"ab", "c", "abc", "d", "cd"}
	one := dstream.NumPartitions(1)
	require.Equal(t, []dstream.Pair[string, []int]{{Key: "a", Value: []int{2, 3}}, {Key: "c", Value: []int{1, 2}}, {Key: "d", Value: []int{1}}},
		runOp(t, in, func(in words) dstream.Stream[dstream.Pair[string, []int]] {
			return dstream.GroupByKey(lengths(in), one)
		}))
	require.Equal(t, []dstream.Pair[string, string]{{Key: "a", Value: "23"}, {Key: "c", Value: "12"}, {Key: "d", Value: "1"}},
		runOp(t, in, func(in words) dstream.Stream[dstream.Pair[string, string]] {
			return dstream.CombineByKey(lengths(in), func(v int) string { return fmt.Sprint(v) },
				func(c string, v int) string { return c + fmt.Sprint(v) }, func(a, b string) string { return a + b }, one)
		}))
	require.Equal(t, []dstream.Pair[string, int64]{{Key: "a", Value: 2}, {Key: "b", Value: 1}},
		runOp(t, []string{"a", "b", "a"}, func(in words) dstream.Stream[dstream.Pair[string, int64]] { return dstream.CountByValue(in, one) }))
}

// Spark's default: as many partitions as the context's parallelism (2 in the rig);
// given ones win, and of NumPartitions and PartitionedBy the last.
func TestPartitionsOfOperatorsByKey(t *testing.T) {
	byLength := partitioner.Func("length", 5, func(s string) int { return len(s) })
	for want, opts := range map[int][]dstream.OpOption{
		2: nil, 3: {dstream.NumPartitions(3)}, 5: {dstream.NumPartitions(3), dstream.PartitionedBy(byLength)},
		4: {dstream.PartitionedBy(byLength), dstream.NumPartitions(4)},
	} {
		in := []string{"ab", "c"}
		parts := func(f func(in words) *dstream.DStream[int]) int {
			return len(runOp(t, in, func(in words) dstream.Stream[int] { return f(in) }))
		}
		require.Equal(t, want, parts(func(in words) *dstream.DStream[int] { return sizes(dstream.GroupByKey(lengths(in), opts...)) }))
		require.Equal(t, want, parts(func(in words) *dstream.DStream[int] { return sizes(dstream.Join(lengths(in), lengths(in), opts...)) }))
		require.Equal(t, want, parts(func(in words) *dstream.DStream[int] { return sizes(dstream.CountByValue(in, opts...)) }))
		require.Equal(t, want, parts(func(in words) *dstream.DStream[int] { return sizes(dstream.ReduceByKey(lengths(in), add, opts...)) }))
	}
}

func sizes[T any](in dstream.Stream[T]) *dstream.DStream[int] {
	return dstream.Map(dstream.Glom(in), func(rows []T) int { return len(rows) })
}

// A stream that lies by the partitioner is joined where it lies, and stays readable for
// its other consumers as long as it is remembered.
func TestJoinLeavesItsParentsAlone(t *testing.T) {
	p := partitioner.Hash[string](2)
	var kept *dstream.DStream[kv]
	r := newRig(t, time.Second, func(c ssc) error {
		kept = dstream.PartitionBy(lengths(dstream.From(c, "in", newScript(2, []string{"ab", "c"}, nil, nil, nil))), p).Cache()
		dstream.Print(dstream.Join(kept, kept, dstream.PartitionedBy(p)), 1, dstream.Name("o"))
		dstream.Print(dstream.GroupByKey(kept, dstream.PartitionedBy(p)), 1)
		dstream.Print(dstream.ReduceByKey(kept, add, dstream.PartitionedBy(p)), 1)
		return nil
	}, dstream.WithRemember(2*time.Second)).start().tick(2)
	got, err := dstream.Slice(kept, zero.Add(time.Second), zero.Add(time.Second))
	require.NoError(t, err)
	rows, err := rdd.Collect(t.Context(), got[0].RDD)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	got[0].RDD.Release()
	require.Len(t, out[dstream.Pair[string, dstream.Joined[int, int]]](r, "o")[0], 2)
}

// A fixed table is laid out once a run, however many batches are joined with it.
func TestJoinWithAFixedTable(t *testing.T) {
	read := 0
	r := newRig(t, time.Second, func(c ssc) error {
		table := rdd.Map(dstream.Parallelize(c, []string{"a", "b"}, dstream.NumPartitions(1)), func(k string) dstream.Pair[string, string] {
			read++
			return dstream.KV(k, strings.ToUpper(k))
		})
		joined := dstream.LeftOuterJoin(lengths(dstream.From(c, "in", newScript(2, []string{"ab", "c"}, []string{"b"}))), dstream.Constant(c, table))
		dstream.Print(joined, 1, dstream.Name("o"))
		dstream.Print(dstream.Constant(c, table), 1, dstream.Name("table"))
		return nil
	}).start().tick(3)
	type row = dstream.Pair[string, dstream.Joined[int, dstream.Option[string]]]
	require.Equal(t, [][]string{{"a 2 A", "c 1 ?"}, {"b 1 B"}, {}}, texts(out[row](r, "o"), func(p row) string {
		return fmt.Sprintf("%s %d %s", p.Key, p.Value.Left, p.Value.Right.OrElse("?"))
	}))
	require.Len(t, out[dstream.Pair[string, string]](r, "table")[2], 2)
	require.Equal(t, 2+2*2*3, read, "twice for the shuffle, and in each batch what Print and the rig read of the table itself")
}

func TestTransformOfSeveral(t *testing.T) {
	r := newRig(t, time.Second, func(c ssc) error {
		a, b := dstream.From(c, "a", newScript(1, []string{"x", "y"}, []string{"z"})), dstream.From(c, "b", newScript(1, []string{"y"}))
		dstream.Print(dstream.TransformWith(a, dstream.Map(b, func(s string) int { return len(s) }),
			func(at time.Time, a *dstream.RDD[string], b *dstream.RDD[int]) (*dstream.RDD[string], error) {
				n, err := rdd.Count(context.Background(), b)
				return rdd.Map(a, func(s string) string { return fmt.Sprint(s, n, at.Sub(zero)) }), err
			}), 1, dstream.Name("with"))
		dstream.Print(dstream.TransformAll([]dstream.Stream[string]{a, b}, func(_ time.Time, rs []*dstream.RDD[string]) (*dstream.RDD[string], error) {
			return rdd.Distinct(rdd.Union(rs...), 1), nil
		}), 1, dstream.Name("all"))
		return nil
	}).start().tick(2)
	require.Equal(t, [][]string{{"x1 1s", "y1 1s"}, {"z0 2s"}}, sorted[string](r, "with"))
	require.Equal(t, [][]string{{"x", "y"}, {"z"}}, sorted[string](r, "all"))
}

func TestFaultsOfOperatorsByKey(t *testing.T) {
	for name, tc := range map[string]struct {
		job  func(c ssc)
		want string
	}{
		"nil side":      {func(c ssc) { dstream.Join[int, int, int](keyed(c), nil) }, "dstream.Join: the input stream is nil"},
		"nil create":    {func(c ssc) { dstream.CombineByKey[int, int, int](keyed(c), nil, add, add) }, "dstream.CombineByKey: the function is nil"},
		"partitions":    {func(c ssc) { dstream.GroupByKey(keyed(c), dstream.NumPartitions(0)) }, "dstream.GroupByKey: the number of partitions is 0"},
		"partitioner":   {func(c ssc) { dstream.Cogroup(keyed(c), keyed2(c), dstream.PartitionedBy[int](nil)) }, "dstream.Cogroup: the partitioner is nil"},
		"bad one":       {func(c ssc) { dstream.GroupByKey(keyed(c), dstream.PartitionedBy(partitioner.Hash[int](0))) }, "0 partitions"},
		"other keys":    {func(c ssc) { dstream.GroupByKey(keyed(c), dstream.PartitionedBy(partitioner.Murmur2(2))) }, "the partitioner murmur2(2) is not for keys of type int"},
		"not by key":    {func(c ssc) { dstream.Print(numbers(c), 1, dstream.PartitionedBy(partitioner.Hash[int](2))) }, "dstream.Print: PartitionedBy does not apply to Print"},
		"keyed":         {func(c ssc) { keyedState(c, dstream.PartitionedBy(partitioner.Hash[int](2))) }, "dstream.Keyed: PartitionedBy does not apply to Keyed"},
		"key type":      {func(c ssc) { dstream.GroupByKey(dstream.KeyBy(numbers(c), func(i int) chan int { return nil })) }, "chan int"},
		"values":        {func(c ssc) { dstream.CountByValue(dstream.Map(numbers(c), func(i int) chan int { return nil })) }, "chan int"},
		"nil with":      {func(c ssc) { dstream.TransformWith[int, int, int](numbers(c), numbers2(c), nil) }, "dstream.TransformWith: the function is nil"},
		"nil all":       {func(c ssc) { dstream.TransformAll[int, int]([]dstream.Stream[int]{numbers(c)}, nil) }, "dstream.TransformAll: the function is nil"},
		"nil constant":  {func(c ssc) { dstream.Constant[int](c, nil) }, "dstream.Constant: the dataset is nil"},
		"bad constant":  {func(c ssc) { dstream.Constant(c, rdd.Parallelize([]int{1}, 0)) }, "dstream.Constant: parallelize of 0 partitions"},
		"parallelize":   {func(c ssc) { dstream.Parallelize(c, []int{1}, dstream.NumPartitions(0)) }, "dstream.Parallelize: the number of partitions is 0"},
		"other context": {func(c ssc) { dstream.Join(keyed(c), keyed(dstream.New(time.Second))) }, "another context"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dstream.New(time.Second)
			tc.job(c)
			dstream.Print(numbers3(c), 1)
			require.ErrorContains(t, c.Validate(), tc.want)
			require.ErrorContains(t, c.Validate(), "_test.go:")
		})
	}
}

func numbers2(c ssc) *dstream.DStream[int] {
	return dstream.From(c, "numbers2", newScript(1, []int{1}))
}
func numbers3(c ssc) *dstream.DStream[int] {
	return dstream.From(c, "numbers3", newScript(1, []int{1}))
}

func keyed2(c ssc) *dstream.DStream[dstream.Pair[int, int]] {
	return dstream.KeyBy(numbers2(c), func(i int) int { return i })
}
