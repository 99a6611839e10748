package rdd_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// laid is what a dataset looks like when it lies by p: every target's rows.
func (s scenario) laid() [][]kv {
	out := make([][]kv, s.p.Partitions())
	for _, src := range s.sources {
		for _, r := range src {
			target := s.p.Partition(r.key)
			out[target] = append(out[target], kv{Key: r.key, Value: r.value})
		}
	}
	return out
}

// modelKeys are the keys of rows in first-seen order, and the values of each.
func modelKeys(rows []kv) (keys []string, values map[string][]int) {
	values = map[string][]int{}
	for _, r := range rows {
		if _, ok := values[r.Key]; !ok {
			keys = append(keys, r.Key)
		}
		values[r.Key] = append(values[r.Key], r.Value)
	}
	return keys, values
}

func triple(k, l, r any) string { return fmt.Sprintf("%v %v %v", k, l, r) }

func some(v int) string { return fmt.Sprint(rdd.Some(v)) }

var none = fmt.Sprint(rdd.None[int]())

// modelJoin gives the rows of a join as texts; left and right say whether keys
// stay that the other side lacks.
func modelJoin(a, b []kv, left, right bool) (out []string) {
	ka, va := modelKeys(a)
	kb, vb := modelKeys(b)
	wrap := func(outer bool, v int) string {
		if outer {
			return some(v)
		}
		return fmt.Sprint(v)
	}
	for _, k := range ka {
		for _, v := range va[k] {
			for _, w := range vb[k] {
				out = append(out, triple(k, wrap(right, v), wrap(left, w)))
			}
			if left && vb[k] == nil {
				out = append(out, triple(k, wrap(right, v), none))
			}
		}
	}
	for _, k := range kb {
		for _, w := range vb[k] {
			if right && va[k] == nil {
				out = append(out, triple(k, none, wrap(left, w)))
			}
		}
	}
	return out
}

func joinText[L, R any](v rdd.Pair[string, rdd.Joined[L, R]]) string {
	return triple(v.Key, v.Value.Left, v.Value.Right)
}

func eachPart[A, B any](parts [][]A, f func(A) B) [][]B {
	out := make([][]B, len(parts))
	for i, p := range parts {
		for _, v := range p {
			out[i] = append(out[i], f(v))
		}
	}
	return out
}

func noNil[T any](parts [][]T) [][]T {
	for i := range parts {
		if len(parts[i]) == 0 {
			parts[i] = nil
		}
	}
	return parts
}

func text[T any](v T) string { return fmt.Sprintf("%v", v) }

// Joins and groups against a plain model, partition by partition and in order,
// for any partitioner, number of sources, workers and block size; also when a
// side lies by the partitioner already.
func TestJoinsAreTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := genScenario(rt), genScenario(rt)
		b.p = a.p
		exec, p := genExecutor(rt), a.p
		ra, rb := a.rdd().WithExecutor(exec), b.rdd()
		if rapid.Bool().Draw(rt, "left lies by p") {
			ra = rdd.PartitionBy(ra, p)
		}
		if rapid.Bool().Draw(rt, "right lies by p") {
			rb = rdd.PartitionBy(rb, p)
		}
		la, lb := a.laid(), b.laid()
		model := func(f func(a, b []kv) []string) [][]string {
			out := make([][]string, len(la))
			for i := range la {
				out[i] = f(la[i], lb[i])
			}
			return noNil(out)
		}
		join := func(left, right bool) [][]string {
			return model(func(a, b []kv) []string { return modelJoin(a, b, left, right) })
		}
		require.Equal(rt, join(false, false), noNil(eachPart(glom(t, rdd.Join(ra, rb, p)), joinText)))
		require.Equal(rt, join(true, false), noNil(eachPart(glom(t, rdd.LeftOuterJoin(ra, rb, p)), joinText)))
		require.Equal(rt, join(false, true), noNil(eachPart(glom(t, rdd.RightOuterJoin(ra, rb, p)), joinText)))
		require.Equal(rt, join(true, true), noNil(eachPart(glom(t, rdd.FullOuterJoin(ra, rb, p)), joinText)))
		require.Equal(rt, model(func(a, b []kv) (out []string) {
			ka, va := modelKeys(a)
			kb, vb := modelKeys(b)
			for _, k := range kb {
				if va[k] == nil {
					ka = append(ka, k)
				}
			}
			for _, k := range ka {
				out = append(out, fmt.Sprint(rdd.KV(k, rdd.Grouped[int, int]{Left: va[k], Right: vb[k]})))
			}
			return out
		}), noNil(eachPart(glom(t, rdd.Cogroup(ra, rb, p)), text)))
		require.Equal(rt, model(func(a, b []kv) (out []string) {
			_, vb := modelKeys(b)
			for _, r := range a {
				if vb[r.Key] == nil {
					out = append(out, fmt.Sprint(r))
				}
			}
			return out
		}), noNil(eachPart(glom(t, rdd.SubtractByKey(ra, rb, p)), text)))
		require.Equal(rt, model(func(a, _ []kv) (out []string) {
			keys, values := modelKeys(a)
			for _, k := range keys {
				out = append(out, fmt.Sprint(rdd.KV(k, values[k])))
			}
			return out
		}), noNil(eachPart(glom(t, rdd.GroupByKey(ra, p)), text)))
		require.Equal(rt, model(func(a, b []kv) (out []string) {
			for _, r := range append(append([]kv(nil), a...), b...) {
				out = append(out, fmt.Sprint(r))
			}
			return out
		}), noNil(eachPart(glom(t, rdd.Merge(p, ra, rb)), text)))
		combined := rdd.CombineByKey(ra, func(v int) string { return fmt.Sprint(v) },
			func(c string, v int) string { return c + fmt.Sprint(v) }, func(a, b string) string { return a + b }, p)
		require.Equal(rt, model(func(a, _ []kv) (out []string) {
			keys, values := modelKeys(a)
			for _, k := range keys {
				c := ""
				for _, v := range values[k] {
					c += fmt.Sprint(v)
				}
				out = append(out, fmt.Sprint(rdd.KV(k, c)))
			}
			return out
		}), noNil(eachPart(glom(t, combined), text)))
		require.True(rt, rdd.LiesBy(combined, p))
	})
}

// What lies by the partitioner is not moved: the step has no stage of its own.
func TestWhatLiesIsNotMoved(t *testing.T) {
	p := partitioner.Hash[string](3)
	add := func(a, b int) int { return a + b }
	in := rdd.PartitionBy(rdd.Parallelize([]kv{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "a", Value: 3}}, 2), p)
	for name, deps := range map[string][]*rdd.Stage{
		"reduceByKey": rdd.ReduceByKey(in, add, p).Deps(),
		"groupByKey":  rdd.GroupByKey(in, p).Deps(),
		"combine":     rdd.CombineByKey(in, func(v int) int { return v }, add, add, p).Deps(),
		"join":        rdd.Join(in, rdd.MapValues(in, func(v int) int { return v }), p).Deps()[:1],
		"merge":       rdd.Merge(p, in).Deps(),
	} {
		require.Equal(t, in.Deps(), deps, name)
	}
	require.ElementsMatch(t, []kv{{Key: "a", Value: 4}, {Key: "b", Value: 2}}, collect(t, rdd.ReduceByKey(in, add, p)))
	other := rdd.ReduceByKey(in, add, partitioner.Hash[string](2))
	require.NotEqual(t, in.Deps(), other.Deps())
	require.False(t, rdd.LiesBy(in, nil))
}

// A group that is kept does not grow into its neighbour.
func TestGroupsAreTheReceivers(t *testing.T) {
	p := partitioner.Hash[string](1)
	in := rdd.Parallelize([]kv{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "a", Value: 3}}, 1)
	groups := collect(t, rdd.GroupByKey(in, p))
	_ = append(groups[0].Value, 99)
	require.Equal(t, []int{2}, groups[1].Value)
	both := collect(t, rdd.Cogroup(in, in, p))
	_ = append(both[0].Value.Left, 99)
	require.Equal(t, []int{2}, both[1].Value.Left)
}

func TestJoinsOfBadDatasets(t *testing.T) {
	p := partitioner.Hash[string](2)
	in := rdd.Parallelize([]kv{{Key: "a", Value: 1}}, 1)
	bad := rdd.Repartition(in, 0)
	require.ErrorIs(t, rdd.Join(bad, in, p).Err(), rdd.ErrPartitions)
	require.ErrorIs(t, rdd.Join(in, bad, p).Err(), rdd.ErrPartitions)
	require.ErrorIs(t, rdd.Join(in, in, nil).Err(), rdd.ErrNoPartitioner)
	require.ErrorIs(t, rdd.SubtractByKey(in, bad, p).Err(), rdd.ErrPartitions)
	require.ErrorIs(t, rdd.GroupByKey(in, nil).Err(), rdd.ErrNoPartitioner)
	require.ErrorIs(t, rdd.Merge(p, in, bad).Err(), rdd.ErrPartitions)
	require.Error(t, rdd.Merge[string, int](p).Err())
	require.Error(t, rdd.CombineByKey(in, func(v int) int { return v }, nil, nil, nil).Err())
	require.ErrorIs(t, rdd.SortBy(bad, func(v kv) int { return v.Value }, 1).Err(), rdd.ErrPartitions)
	require.ErrorIs(t, rdd.SortBy(in, func(v kv) int { return v.Value }, 0).Err(), rdd.ErrPartitions)
	require.Error(t, rdd.Distinct(rdd.Parallelize(numbers(1), 1), 0).Err())
	require.Error(t, rdd.Keys[string, int](nil).Err())
}
