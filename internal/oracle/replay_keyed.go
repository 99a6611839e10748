package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// keyedReplayer gives the replayer of an operator that groups or joins by key.
func keyedReplayer(op string) replayer {
	switch op {
	case "groupByKey":
		return replayGroupByKey
	case "combineByKey":
		return replayCombineByKey
	case "countByValue":
		return replayCountByValue
	case "cogroup":
		return replayCogroup
	case "join":
		return replayJoin
	case "leftOuterJoin":
		return replayLeftOuterJoin
	case "rightOuterJoin":
		return replayRightOuterJoin
	case "fullOuterJoin":
		return replayFullOuterJoin
	case "updateStateByKey":
		return replayUpdateStateByKey
	case "transformWith":
		return replayTransformWith
	}
	return nil
}

// pairs are the streams that operators by key read.
type pairs = *dstream.DStream[pairInt]

// run2 is run for jobs of two inputs of pairs. With windows on the sides, they are
// windowed first.
func run2[U any](t testing.TB, c *Case, build func(left, right pairs) dstream.Stream[U]) [][]U {
	t.Helper()
	kit := milltest.New(t, c.Interval(), func(ssc *dstream.StreamingContext) error {
		left, right := from[pairInt](ssc, inName), from[pairInt](ssc, in2Name)
		if c.Config.LeftWindowMs > 0 {
			left = dstream.Window(left, ms(c.Config.LeftWindowMs), slideOf(c))
		}
		if c.Config.RightWindowMs > 0 {
			right = dstream.Window(right, ms(c.Config.RightWindowMs), slideOf(c))
		}
		dstream.Print(build(left, right), 0, dstream.Name(outName))
		return nil
	})
	n := c.BatchCount()
	feed(t, milltest.Input[pairInt](kit, inName), c.Batches, n, pair[int64])
	feed(t, milltest.Input[pairInt](kit, in2Name), c.Batches2, n, pair[int64])
	kit.Tick(n)
	return milltest.Output[U](kit, outName)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// slideOf is the slide of a case's windows: one batch unless it says more.
func slideOf(c *Case) time.Duration {
	if c.Config.SlideMs > 0 {
		return ms(c.Config.SlideMs)
	}
	return c.Interval()
}

func showGroup(p dstream.Pair[string, []int64]) any { return []any{p.Key, shown(p.Value)} }

// shown is a list of values as the cases have it: sorted, and never nil.
func shown(values []int64) []int64 {
	all := append([]int64{}, values...)
	slices.Sort(all)
	return all
}

func showOption(o dstream.Option[int64]) any {
	if v, ok := o.Get(); ok {
		return v
	}
	return nil
}

func replayGroupByKey(t testing.TB, c *Case) {
	got := run(t, c, pair[int64], func(in pairs) dstream.Stream[dstream.Pair[string, []int64]] {
		return dstream.GroupByKey(in, opOptions(c)...)
	})
	compareAll(t, c, got, showGroup)
}

func replayCombineByKey(t testing.TB, c *Case) {
	knownFunction(t, c, "(count,sum)")
	type acc struct{ count, sum int64 }
	got := run(t, c, pair[int64], func(in pairs) dstream.Stream[dstream.Pair[string, acc]] {
		return dstream.CombineByKey(in,
			func(v int64) acc { return acc{1, v} },
			func(a acc, v int64) acc { return acc{a.count + 1, a.sum + v} },
			func(a, b acc) acc { return acc{a.count + b.count, a.sum + b.sum} }, opOptions(c)...)
	})
	compareAll(t, c, got, func(p dstream.Pair[string, acc]) any { return []any{p.Key, p.Value.count, p.Value.sum} })
}

func replayCountByValue(t testing.TB, c *Case) {
	got := run(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[pairInt] {
		return dstream.CountByValue(in, opOptions(c)...)
	})
	compareAll(t, c, got, showCount)
}

// showCount shows a value, which is canonical JSON already, and how often it is there.
func showCount(p pairInt) any { return []any{raw(p.Key), p.Value} }

func replayCogroup(t testing.TB, c *Case) {
	got := run2(t, c, func(left, right pairs) dstream.Stream[dstream.Pair[string, dstream.Grouped[int64, int64]]] {
		return dstream.Cogroup(left, right, opOptions(c)...)
	})
	compareAll(t, c, got, func(p dstream.Pair[string, dstream.Grouped[int64, int64]]) any {
		return []any{p.Key, shown(p.Value.Left), shown(p.Value.Right)}
	})
}

func replayJoin(t testing.TB, c *Case) {
	got := run2(t, c, func(left, right pairs) dstream.Stream[dstream.Pair[string, dstream.Joined[int64, int64]]] {
		return dstream.Join(left, right, opOptions(c)...)
	})
	compareAll(t, c, got, func(p dstream.Pair[string, dstream.Joined[int64, int64]]) any {
		return []any{p.Key, p.Value.Left, p.Value.Right}
	})
}

func replayLeftOuterJoin(t testing.TB, c *Case) {
	got := run2(t, c, func(left, right pairs) dstream.Stream[dstream.Pair[string, dstream.Joined[int64, dstream.Option[int64]]]] {
		return dstream.LeftOuterJoin(left, right, opOptions(c)...)
	})
	compareAll(t, c, got, func(p dstream.Pair[string, dstream.Joined[int64, dstream.Option[int64]]]) any {
		return []any{p.Key, p.Value.Left, showOption(p.Value.Right)}
	})
}

func replayRightOuterJoin(t testing.TB, c *Case) {
	got := run2(t, c, func(left, right pairs) dstream.Stream[dstream.Pair[string, dstream.Joined[dstream.Option[int64], int64]]] {
		return dstream.RightOuterJoin(left, right, opOptions(c)...)
	})
	compareAll(t, c, got, func(p dstream.Pair[string, dstream.Joined[dstream.Option[int64], int64]]) any {
		return []any{p.Key, showOption(p.Value.Left), p.Value.Right}
	})
}

func replayFullOuterJoin(t testing.TB, c *Case) {
	got := run2(t, c, func(left, right pairs) dstream.Stream[dstream.Pair[string, dstream.Joined[dstream.Option[int64], dstream.Option[int64]]]] {
		return dstream.FullOuterJoin(left, right, opOptions(c)...)
	})
	compareAll(t, c, got, func(p dstream.Pair[string, dstream.Joined[dstream.Option[int64], dstream.Option[int64]]]) any {
		return []any{p.Key, showOption(p.Value.Left), showOption(p.Value.Right)}
	})
}

func replayTransformWith(t testing.TB, c *Case) {
	knownFunction(t, c, "subtractByKey")
	got := run2(t, c, func(left, right pairs) dstream.Stream[pairInt] {
		return dstream.TransformWith(left, right, func(_ time.Time, l, r *rdd.RDD[pairInt]) (*rdd.RDD[pairInt], error) {
			return rdd.SubtractByKey(l, r, partitioner.Hash[string](2)), nil
		})
	})
	compareAll(t, c, got, showPair)
}
