package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

var errOdd = errors.New("odd one")

// leaky pushes two rows per record and then fails for every third record, one
// time by an error, the next by a panic: rows of a failed record must not be seen.
func leaky(records int) *rdd.RDD[kv] {
	return rdd.FlatMapEmit(rdd.Parallelize(numbers(records), 2), func(v int, emit func(kv)) error {
		emit(kv{Key: fmt.Sprint("k", v%5), Value: v})
		emit(kv{Key: fmt.Sprint("l", v), Value: v})
		switch v % 6 {
		case 1:
			return errOdd
		case 4:
			panic("four")
		}
		return nil
	}).Named("leaky")
}

// good is what must be left of leaky.
func good(records int) (rows []kv, skipped []int64) {
	for v := range records {
		if v%3 == 1 {
			skipped = append(skipped, int64(v))
			continue
		}
		rows = append(rows, kv{Key: fmt.Sprint("k", v%5), Value: v}, kv{Key: fmt.Sprint("l", v), Value: v})
	}
	return rows, skipped
}

// Every edge: a record that fails leaves no row, is told once with its origin, and
// the others are as if it had not been there.
func TestGuardedModeAtEveryEdge(t *testing.T) {
	const n = 30
	rows, skipped := good(n)
	add := func(a, b int) int { return a + b }
	p := partitioner.Hash[string](3)
	clean := func() *rdd.RDD[kv] { return rdd.Parallelize(rows, 2) }
	sums := func(r *rdd.RDD[kv]) map[string]int {
		m := map[string]int{}
		for _, v := range collect(t, r) {
			m[v.Key] += v.Value
		}
		return m
	}
	for name, edge := range map[string]func(r *rdd.RDD[kv]) any{
		"collect":     func(r *rdd.RDD[kv]) any { return collect(t, r) },
		"shuffle":     func(r *rdd.RDD[kv]) any { return collect(t, rdd.PartitionBy(r, p)) },
		"murmur":      func(r *rdd.RDD[kv]) any { return collect(t, rdd.PartitionBy(r, partitioner.Murmur2(3))) },
		"keep":        func(r *rdd.RDD[kv]) any { return collect(t, rdd.Keep(r)) },
		"reduceByKey": func(r *rdd.RDD[kv]) any { return sums(rdd.ReduceByKey(r, add, p)) },
		"countRDD":    func(r *rdd.RDD[kv]) any { return collect(t, rdd.CountRDD(r)) },
		"reduceRDD": func(r *rdd.RDD[kv]) any {
			return collect(t, rdd.ReduceRDD(rdd.Map(r, func(v kv) int { return v.Value }), add))
		},
		"count": func(r *rdd.RDD[kv]) any {
			c, err := rdd.Count(t.Context(), r)
			require.NoError(t, err)
			return c
		},
		"reduce": func(r *rdd.RDD[kv]) any {
			v, ok, err := rdd.Reduce(t.Context(), rdd.Map(r, func(v kv) string { return v.Key }), func(a, b string) string { return a + b })
			require.NoError(t, err)
			require.True(t, ok)
			return v
		},
		"take": func(r *rdd.RDD[kv]) any {
			v, err := rdd.Take(t.Context(), r, n*2)
			require.NoError(t, err)
			return v
		},
		"glom": func(r *rdd.RDD[kv]) any {
			var all []kv
			for _, part := range collect(t, rdd.Glom(r)) {
				all = append(all, part...)
			}
			return all
		},
		"mapPartitions": func(r *rdd.RDD[kv]) any {
			return collect(t, rdd.MapPartitions(r, func(_ int, in iter.Seq[kv]) iter.Seq[kv] { return in }))
		},
		"foreachPartition": func(r *rdd.RDD[kv]) any {
			var mu sync.Mutex
			sum := 0
			require.NoError(t, rdd.ForeachPartition(t.Context(), r, func(_ context.Context, _ int, in iter.Seq[kv]) error {
				mu.Lock()
				defer mu.Unlock()
				for v := range in {
					sum += v.Value
				}
				return nil
			}))
			return sum
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &retrying{guarded: true, workers: 2, pools: rdd.NewPoolsOf(4)}
			require.Equal(t, edge(clean()), edge(leaky(n).WithExecutor(e)))
			got := map[int64]bool{}
			for _, s := range e.skipped {
				require.Equal(t, "parallelize", s.Stream)
				require.False(t, got[s.Offset], "told twice: %d", s.Offset)
				got[s.Offset] = true
				if s.Offset%6 == 4 {
					var pe *rdd.PanicError
					require.ErrorAs(t, s, &pe)
					require.Equal(t, "four", pe.Value)
				} else {
					require.ErrorIs(t, s, errOdd)
					require.Equal(t, "leaky", s.Operator)
				}
			}
			require.Len(t, got, len(skipped))
			for _, o := range skipped {
				require.True(t, got[o], "offset %d", o)
			}

			_, err := rdd.Collect(t.Context(), leaky(n).WithExecutor(rdd.Local(1, nil)))
			require.ErrorIs(t, err, errOdd, "without a guard the first failure ends it")
		})
	}
}

// The reduce function itself may fail for one record; what it had changed is taken back.
func TestGuardedReduceFunction(t *testing.T) {
	in := rdd.FlatMap(rdd.Parallelize([]int{1, 2, 3, 4, 5}, 1), func(v int) []kv {
		// Each record makes a new key too, and adds twice to "a".
		return []kv{{Key: "a", Value: 10 * v}, {Key: fmt.Sprint("new", v), Value: v}, {Key: "a", Value: v}}
	})
	e := &retrying{guarded: true}
	add := func(a, b int) int {
		if b == 3 {
			panic("three")
		}
		return a + b
	}
	got := collect(t, rdd.ReduceByKey(in, add, partitioner.Hash[string](1)).WithExecutor(e))
	require.Equal(t, []kv{{"a", 132}, {"new1", 1}, {"new2", 2}, {"new4", 4}, {"new5", 5}}, got)
	require.Len(t, e.skipped, 1)
	require.EqualValues(t, 2, e.skipped[0].Offset)

	// At the final fold the records are the partial results, named by their first record.
	parts := rdd.Parallelize([]kv{{"a", 1}, {"a", 3}, {"a", 5}}, 3)
	e = &retrying{guarded: true}
	require.Equal(t, []kv{{"a", 6}}, collect(t, rdd.ReduceByKey(parts, add, partitioner.Hash[string](1)).WithExecutor(e)))
	require.Len(t, e.skipped, 1)
	require.EqualValues(t, 1, e.skipped[0].Offset)
}

// Failures below a barrier or a shuffle skip the row, with the origin it came with.
func TestGuardedRowsBelowAnEdge(t *testing.T) {
	fail := func(v kv) (kv, error) {
		if v.Value == 3 {
			return v, errOdd
		}
		return v, nil
	}
	in := rdd.Parallelize([]kv{{"a", 1}, {"b", 3}, {"a", 5}}, 1)
	whole := func(_ int, in iter.Seq[kv]) iter.Seq[kv] { return in }
	for name, r := range map[string]*rdd.RDD[kv]{
		"shuffle":       rdd.PartitionBy(in, partitioner.Hash[string](1)),
		"keep":          rdd.Keep(in),
		"mapPartitions": rdd.MapPartitions(in, whole),
		"source":        in,
	} {
		t.Run(name, func(t *testing.T) {
			e := &retrying{guarded: true}
			require.Equal(t, []kv{{"a", 1}, {"a", 5}}, collect(t, rdd.MapErr(r, fail).WithExecutor(e)))
			require.Len(t, e.skipped, 1)
			require.Equal(t, rdd.Origin{Stream: "parallelize", Partition: "0", Offset: 1},
				rdd.Origin{Stream: e.skipped[0].Stream, Partition: e.skipped[0].Partition, Offset: e.skipped[0].Offset})
		})
	}
}

func TestGuardSkipsOnlyRecordErrors(t *testing.T) {
	full := errors.New("dead letters full")
	in := rdd.Parallelize(numbers(5), 1)
	bad := rdd.MapErr(in, func(v int) (int, error) { return v, errOdd })
	task := func(skip func(*rdd.Task, any, *rdd.RecordError) error) *rdd.Task {
		return &rdd.Task{Ctx: t.Context(), Guard: &rdd.Guard{Skip: skip}}
	}
	none := func(int) error { return nil }

	// The error of Skip ends the task.
	require.ErrorIs(t, bad.Compute(task(func(*rdd.Task, any, *rdd.RecordError) error { return full }), none), full)

	// Without Skip they are only counted.
	quiet := task(nil)
	require.NoError(t, bad.Compute(quiet, none))
	require.EqualValues(t, 5, quiet.Guard.Skipped())

	// An error of the edge is not the record's.
	io := errors.New("disk")
	tk := task(nil)
	require.ErrorIs(t, in.Compute(tk, func(int) error { return io }), io)
	require.Zero(t, tk.Guard.Skipped())

	// The failure of a function over a partition ends the task.
	whole := rdd.MapPartitions(in, func(int, iter.Seq[int]) iter.Seq[int] { panic("whole") })
	_, err := rdd.Collect(t.Context(), whole.WithExecutor(&retrying{guarded: true}))
	require.ErrorContains(t, err, "whole")

	// Cancellation is not the record's either, even if the user's function passes it on.
	ctx, cancel := context.WithCancel(t.Context())
	tk = task(nil)
	tk.Ctx = ctx
	err = rdd.MapErr(in, func(v int) (int, error) { cancel(); return v, fmt.Errorf("call: %w", ctx.Err()) }).Compute(tk, none)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, tk.Guard.Skipped())
}

// Guard.Record is what stateful operators use for rows they read by blocks.
func TestGuardRecord(t *testing.T) {
	tk := &rdd.Task{Ctx: t.Context(), Guard: &rdd.Guard{}}
	e := &edge{}
	tk.Guard.Enlist(e)
	require.NoError(t, tk.Guard.Record(tk, func() error { return nil }))
	require.NoError(t, tk.Guard.Record(tk, func() error { return tk.Fail("op", "k", errOdd) }))
	require.NoError(t, tk.Guard.Record(tk, func() error { panic(1) }))
	require.Equal(t, "FDD", e.log)
	e.err = errOdd
	require.ErrorIs(t, tk.Guard.Record(tk, func() error { return nil }), errOdd)
	require.Equal(t, "FDDFD", e.log)
	require.EqualValues(t, 2, tk.Guard.Skipped())
}

type edge struct {
	log string
	err error
}

func (e *edge) Flush() error { e.log += "F"; return e.err }
func (e *edge) Drop()        { e.log += "D" }
