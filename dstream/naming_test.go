package dstream_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// Under the default policy, too, a panic is told by the operator whose function it was,
// by its name or that which it has without one, and by the line of the user's code.
func TestPanicsNameTheOperator(t *testing.T) {
	type in = *dstream.DStream[int]
	self := func(v int) int { return v }
	bad := func(v int) int { panic("boom") }
	bad2 := func(v, _ int) int { panic("boom") }
	add := func(a, b int) int { return a + b }
	key := func(s in) *dstream.DStream[dstream.Pair[bool, int]] {
		return dstream.KeyBy(s, func(int) bool { return true })
	}
	name := dstream.Name("mine")
	mine := dstream.PartitionedBy[bool](partitioner.Func("own", 1, func(bool) int { panic("boom") }))
	vals := func(s dstream.Stream[dstream.Pair[bool, int]]) in {
		return dstream.Map(s, func(p dstream.Pair[bool, int]) int { return p.Value })
	}
	const w = time.Second
	for kind, tc := range map[string]struct {
		job  func(s in) in
		want string
	}{
		"Map":       {func(s in) in { return dstream.Map(s, bad).Named("mine") }, "mine"},
		"unnamed":   {func(s in) in { return dstream.Map(s, bad) }, "Map-1"},
		"Filter":    {func(s in) in { return dstream.Filter(s, func(v int) bool { return bad(v) > 0 }).Named("mine") }, "mine"},
		"MapValues": {func(s in) in { return vals(dstream.MapValues(key(s), bad).Named("mine")) }, "mine"},
		"FlatMapValues": {func(s in) in {
			return vals(dstream.FlatMapValues(key(s), func(v int) []int { return []int{bad(v)} }).Named("mine"))
		}, "mine"},
		"MapPartitions": {func(s in) in {
			return dstream.MapPartitions(s, func(all iter.Seq[int]) iter.Seq[int] {
				return func(yield func(int) bool) {
					for v := range all {
						yield(v)
						bad(v)
					}
				}
			}).Named("mine")
		}, "mine"},
		"Transform": {func(s in) in {
			return dstream.Transform(s, func(_ time.Time, r *rdd.RDD[int]) (*rdd.RDD[int], error) { return rdd.Map(r, bad), nil }).Named("mine")
		}, "mine"},
		"Reduce":        {func(s in) in { return dstream.Reduce(s, bad2).Named("mine") }, "mine"},
		"ReduceByKey":   {func(s in) in { return vals(dstream.ReduceByKey(key(s), bad2, name)) }, "mine"},
		"ReduceByKey 2": {func(s in) in { return vals(dstream.ReduceByKey(key(s), bad2)) }, "ReduceByKey-2"},
		"CombineByKey":  {func(s in) in { return vals(dstream.CombineByKey(key(s), bad, bad2, bad2, name)) }, "mine"},
		"GroupByKey": {func(s in) in {
			return dstream.Map(dstream.GroupByKey(key(s), mine, name), func(dstream.Pair[bool, []int]) int { return 0 })
		}, "mine"},
		"Join": {func(s in) in {
			return dstream.Map(dstream.Join(key(s), key(s), mine, name), func(dstream.Pair[bool, dstream.Joined[int, int]]) int { return 0 })
		}, "mine"},
		"ReduceByWindow": {func(s in) in { return dstream.ReduceByWindow(s, bad2, w, w).Named("mine") }, "mine"},
		"inverse":        {func(s in) in { return dstream.ReduceByWindowInverse(s, bad2, bad2, w, w).Named("mine") }, "mine"},
		"ByKeyAndWindow": {func(s in) in { return vals(dstream.ReduceByKeyAndWindow(key(s), bad2, w, w, name)) }, "mine"},
		"window unnamed": {func(s in) in { return vals(dstream.ReduceByKeyAndWindow(key(s), bad2, w, w)) }, "ReduceByKeyAndWindow-3"},
		"group in window": {func(s in) in {
			return dstream.Map(dstream.GroupByKeyAndWindow(key(s), w, w, mine, name), func(dstream.Pair[bool, []int]) int { return 0 })
		}, "mine"},
		"inverse by key": {func(s in) in {
			return vals(dstream.ReduceByKeyAndWindowInverse(key(s), add, add, func(bool, int) bool { panic("boom") }, w, w, name))
		}, "mine"},
		"inverse unnamed": {func(s in) in {
			return vals(dstream.ReduceByKeyAndWindowInverse(key(s), add, add, func(bool, int) bool { panic("boom") }, w, w))
		}, "ReduceByKeyAndWindowInverse-5"},
		"state": {func(s in) in {
			return dstream.MapWithState(key(s), dstream.Function(func(bool, dstream.Option[int], *dstream.State[int]) int { panic("boom") }).Named("mine")).DStream
		}, "mine"},
	} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, time.Second, func(c ssc) error {
				in := dstream.From(c, "in", newScript(1, []int{7, 7}))
				dstream.Print(dstream.Map(dstream.Map(tc.job(in), self), self), 1, dstream.Name("out"))
				return nil
			}).start()
			require.Error(t, r.tryTick())
			var rec *rdd.RecordError
			err := r.end()
			require.ErrorAs(t, err, &rec)
			require.Equal(t, tc.want, rec.Operator, "%s", rec.Stack)
			require.ErrorContains(t, err, ": "+tc.want+": ")
			require.Regexp(t, `panic: .* \(at .*/naming_test\.go:\d+\)`, err.Error())
		})
	}
	r := newRig(t, time.Second, func(c ssc) error {
		dstream.ForeachRDD(numbers(c), func(context.Context, dstream.Batch, *rdd.RDD[int]) error { panic("boom") })
		return nil
	}).start()
	require.Error(t, r.tryTick())
	require.Regexp(t, `panic: boom \(at .*/naming_test\.go:\d+\)`, r.end().Error())
}
