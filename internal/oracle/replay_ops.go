package oracle

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

type pairInt = dstream.Pair[string, int64]

// run builds a job of one input and one output, runs the case on it and gives
// what each batch wrote.
func run[T, U any](t testing.TB, c *Case, decode func(Row) (T, error), build func(in *dstream.DStream[T]) dstream.Stream[U]) [][]U {
	t.Helper()
	kit := milltest.New(t, c.Interval(), func(ssc *dstream.StreamingContext) error {
		dstream.Print(build(from[T](ssc, inName)), 0, dstream.Name(outName))
		return nil
	})
	in := milltest.Input[T](kit, inName).Partitions(max(1, c.Config.InputPartitions))
	n := c.BatchCount()
	feed(t, in, c.Batches, n, decode)
	kit.Tick(n)
	return milltest.Output[U](kit, outName)
}

// compareAll compares every batch, record by record.
func compareAll[U any](t testing.TB, c *Case, got [][]U, show func(U) any) {
	t.Helper()
	compareFirst(t, c, c.BatchCount(), got, show)
}

// compareFirst compares the first n batches.
func compareFirst[U any](t testing.TB, c *Case, n int, got [][]U, show func(U) any) {
	t.Helper()
	sets := make([]Multiset, len(got))
	for i, records := range got {
		if records != nil { // it ran
			sets[i] = canonAll(t, records, show)
		}
	}
	compareOutputs(t, c, n, sets)
}

func showPair(p pairInt) any { return []any{p.Key, p.Value} }

// raw shows a record that is canonical JSON already.
func raw(s string) any { return json.RawMessage(s) }

// opOptions are the options of the operators that move records by key.
func opOptions(c *Case) (opts []dstream.OpOption) {
	if c.Config.Partitions > 0 {
		opts = append(opts, dstream.NumPartitions(c.Config.Partitions))
	}
	return opts
}

// reducer gives a case's reduce function by its name.
func reducer(t testing.TB, c *Case) func(a, b int64) int64 {
	t.Helper()
	switch c.Config.Reduce {
	case "sum":
		return func(a, b int64) int64 { return a + b }
	case "max":
		return func(a, b int64) int64 { return max(a, b) }
	case "min":
		return func(a, b int64) int64 { return min(a, b) }
	}
	t.Fatalf("unknown reduce function %q", c.Config.Reduce)
	return nil
}

func knownFunction(t testing.TB, c *Case, known string) {
	t.Helper()
	if c.Config.Function != known {
		t.Fatalf("unknown function %q of %s, known is %q", c.Config.Function, c.Op, known)
	}
}

func replayMapValues(t testing.TB, c *Case) {
	knownFunction(t, c, "v*10+1")
	got := run(t, c, pair[int64], func(in *dstream.DStream[pairInt]) dstream.Stream[pairInt] {
		return dstream.MapValues(in, func(v int64) int64 { return v*10 + 1 })
	})
	compareAll(t, c, got, showPair)
}

func replayFlatMapValues(t testing.TB, c *Case) {
	knownFunction(t, c, "v => [0..v mod 3)")
	got := run(t, c, pair[int64], func(in *dstream.DStream[pairInt]) dstream.Stream[pairInt] {
		return dstream.FlatMapValues(in, func(v int64) (out []int64) {
			for i := range max(0, v%3) {
				out = append(out, i)
			}
			return out
		})
	})
	compareAll(t, c, got, showPair)
}

func replayReduceByKey(t testing.TB, c *Case) {
	reduce := reducer(t, c)
	got := run(t, c, pair[int64], func(in *dstream.DStream[pairInt]) dstream.Stream[pairInt] {
		return dstream.ReduceByKey(in, reduce, opOptions(c)...)
	})
	compareAll(t, c, got, showPair)
}

func replayTransform(t testing.TB, c *Case) {
	knownFunction(t, c, "sortByKey.zipless: distinct keys with batch time")
	got := run(t, c, pair[int64], func(in *dstream.DStream[pairInt]) dstream.Stream[pairInt] {
		return dstream.Transform(in, func(batch time.Time, r *rdd.RDD[pairInt]) (*rdd.RDD[pairInt], error) {
			distinct := rdd.ReduceByKey(r, func(a, _ int64) int64 { return a }, partitioner.Hash[string](2))
			return rdd.MapValues(distinct, func(int64) int64 { return batch.UnixMilli() }), nil
		})
	})
	compareAll(t, c, got, showPair)
}

func replayReduce(t testing.TB, c *Case) {
	decode := func(row Row) (v int64, err error) { return v, json.Unmarshal(row, &v) }
	reduce := reducer(t, c)
	got := run(t, c, decode, func(in *dstream.DStream[int64]) dstream.Stream[int64] {
		return dstream.Reduce(in, reduce)
	})
	compareAll(t, c, got, func(v int64) any { return v })
}

func replayCount(t testing.TB, c *Case) {
	got := run(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[int64] { return dstream.Count(in) })
	compareAll(t, c, got, func(v int64) any { return v })
}

func replayGlom(t testing.TB, c *Case) {
	got := run(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[[]string] { return dstream.Glom(in) })
	compareAll(t, c, got, func(partition []string) any {
		all := make([]any, len(partition)) // not nil: an empty partition is []
		for i, s := range partition {
			all[i] = raw(s)
		}
		return all
	})
}

func replayRepartition(t testing.TB, c *Case) {
	got := run(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[string] {
		return dstream.Repartition(in, c.Config.Partitions)
	})
	compareAll(t, c, got, raw)
}

// replayGlomSizes asserts the number of partitions and the sum of their sizes.
func replayGlomSizes(t testing.TB, c *Case) {
	got := run(t, c, text, func(in *dstream.DStream[string]) dstream.Stream[int64] {
		parts := dstream.Glom(dstream.Repartition(in, c.Config.Partitions))
		return dstream.Map(parts, func(p []string) int64 { return int64(len(p)) })
	})
	want, err := c.OutputRows()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d batches ran, want %d", len(got), len(want))
	}
	for i := range want {
		rows, err := CanonRows(want[i].List)
		if err != nil {
			t.Fatal(err)
		}
		n, sum, err := sizes(rows)
		if err != nil {
			t.Fatalf("batch %d: %v", i+1, err)
		}
		if other, differs := nullBatchRows(c, i); differs {
			n, sum = len(other), 0
		}
		var total int64
		for _, s := range got[i] {
			total += s
		}
		if len(got[i]) != n || total != int64(sum) {
			t.Errorf("batch %d: %d partitions with %d records, want %d with %d", i+1, len(got[i]), total, n, sum)
		}
	}
}

func replayUnion(t testing.TB, c *Case) {
	kit := milltest.New(t, c.Interval(), func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.Union(from[string](ssc, inName), from[string](ssc, in2Name)), 0, dstream.Name(outName))
		return nil
	})
	n := c.BatchCount()
	feed(t, milltest.Input[string](kit, inName), c.Batches, n, text)
	feed(t, milltest.Input[string](kit, in2Name), c.Batches2, n, text)
	kit.Tick(n)
	compareAll(t, c, milltest.Output[string](kit, outName), raw)
}
