package rdd_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// A panic names the step whose function it was, of several of the same code that are
// fused, without a guard and with one; its text has the line.
func TestPanicsNameTheStep(t *testing.T) {
	same := func(v int) int { return v }
	bad := func(v int) int {
		if v == 2 {
			panic("boom")
		}
		return v
	}
	badPair := func(a, b int) int { return bad(a) + bad(b) }
	keys := func(r *rdd.RDD[int]) *rdd.RDD[rdd.Pair[int, int]] {
		return rdd.KeyBy(r, func(v int) int { return v % 2 })
	}
	p, q := partitioner.Hash[int](2), partitioner.Func("mine", 1, func(k int) int { return 0 * bad(k) })
	up := func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Map(rdd.Map(r, same).Named("before"), same) }
	// behind adds steps of the same code as those before it.
	behind := func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Map(rdd.Map(r, same).Named("after"), same) }
	seq := func(after bool) func(v int) iter.Seq[int] {
		return func(v int) iter.Seq[int] {
			return func(yield func(int) bool) {
				if !after {
					bad(v)
				}
				if yield(v) {
					bad(v)
				}
			}
		}
	}
	whole := func(_ int, in iter.Seq[int]) iter.Seq[int] {
		return func(yield func(int) bool) {
			for v := range in {
				if !yield(v) {
					return
				}
				bad(v) // the steps behind it have had the record
			}
		}
	}
	for name, job := range map[string]func(r *rdd.RDD[int]) *rdd.RDD[int]{
		"map":         func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Map(r, bad) },
		"filter":      func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Filter(r, func(v int) bool { return bad(v) >= 0 }) },
		"flatMap":     func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.FlatMap(r, func(v int) []int { return []int{bad(v)} }) },
		"flatMapSeq":  func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.FlatMapSeq(r, seq(false)) },
		"after yield": func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.FlatMapSeq(r, seq(true)) },
		"after emit": func(r *rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.FlatMapEmit(r, func(v int, emit func(int)) error { emit(v); bad(v); return nil })
		},
		"reduceRDD": func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.ReduceRDD(r, badPair) },
		"reduce parts": func(r *rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.ReduceRDD(rdd.Filter(r, func(v int) bool { return v == 0 || v == 2 }), badPair)
		},
		"sort":        func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.SortFunc(r, badPair, 2) },
		"reduceByKey": func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Values(rdd.ReduceByKey(keys(r), badPair, p)) },
		"laid already": func(r *rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.Values(rdd.ReduceByKey(rdd.Within(rdd.PartitionBy(keys(r), p), "op"), badPair, p))
		},
		"combineByKey": func(r *rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.Values(rdd.CombineByKey(keys(r), bad, badPair, badPair, p))
		},
		"partitioner":   func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Keys(rdd.GroupByKey(rdd.KeyBy(r, same), q)) },
		"join":          func(r *rdd.RDD[int]) *rdd.RDD[int] { k := rdd.KeyBy(r, same); return rdd.Keys(rdd.Join(k, k, q)) },
		"mapValues":     func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.Values(rdd.MapValues(keys(r), bad)) },
		"mapPartitions": func(r *rdd.RDD[int]) *rdd.RDD[int] { return rdd.MapPartitions(r, whole) },
		"before the partition": func(r *rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.MapPartitions(r, func(_ int, in iter.Seq[int]) iter.Seq[int] { bad(2); return in })
		},
		"own dataset": func(r *rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.New(2, func(t *rdd.Task, emit func(int) error) error {
				return r.Compute(t, func(v int) error { return emit(bad(v)) })
			}, r.Deps()...).Named("op")
		},
		"source": func(*rdd.RDD[int]) *rdd.RDD[int] {
			return rdd.New(1, func(t *rdd.Task, emit func(int) error) error { return emit(bad(1) + bad(2)) }).Named("op")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, guarded := range []bool{false, true} {
				e := &retrying{guarded: guarded}
				in := rdd.Within(up(rdd.Parallelize(numbers(4), 2)), "op")
				_, err := rdd.Count(t.Context(), behind(rdd.Within(job(in), "")).WithExecutor(e))
				var re *rdd.RecordError
				if guarded && err == nil {
					require.NotEmpty(t, e.skipped)
					re = e.skipped[0]
				} else {
					require.ErrorAs(t, err, &re)
				}
				require.Equal(t, "op", re.Operator, "guarded %v: %s", guarded, re.Stack)
				require.Regexp(t, `panic: boom \(at .*/trail_test\.go:\d+\)$`, re.Error())
				require.EqualError(t, re.Err, "panic: boom", "dead letters must not change with the program's lines")
			}
		})
	}
}

// Actions name themselves, and what is made in them is a step of its own.
func TestActionsNameThemselves(t *testing.T) {
	ctx, boom := t.Context(), func(int, int) int { panic("boom") }
	in := rdd.Map(rdd.Parallelize([]int{1, 2}, 1).WithExecutor(rdd.Local(1, nil)), func(v int) int { return v })
	all := map[string]error{}
	_, all["fold"] = rdd.Fold(ctx, in, 0, boom)
	_, _, all["reduce"] = rdd.Reduce(ctx, in, boom)
	_, all["top"] = rdd.Top(ctx, in, 1, boom)
	_, all["aggregate"] = rdd.Aggregate(ctx, in, func() int { return 0 }, boom, boom)
	all["foreachPartition"] = rdd.ForeachPartition(ctx, in, func(_ context.Context, _ int, in iter.Seq[int]) error {
		for range in {
			panic("boom")
		}
		return nil
	})
	notNumbers := rdd.Map(in, func(int) float64 { return math.NaN() })
	_, all["countByValue"] = rdd.CountByValue(ctx, notNumbers)
	_, all["countByKey"] = rdd.CountByKey(ctx, rdd.KeyBy(notNumbers, func(v float64) float64 { return v }))
	_, all["distinct"] = rdd.Count(ctx, rdd.Distinct(notNumbers, 1))
	for name, err := range all {
		var re *rdd.RecordError
		require.ErrorAs(t, err, &re, name)
		require.Equal(t, name, re.Operator)
		require.Equal(t, strings.HasPrefix(name, "count") || name == "distinct", errors.Is(err, codec.ErrNaN))
	}
}

// A NaN cannot be counted, wherever in the key it is; a type without canonical bytes can.
func TestNaNIsNotCounted(t *testing.T) {
	type point struct{ x, y float64 }
	nan := math.NaN()
	count := func(t *testing.T, rows []any) (map[any]int64, []*rdd.RecordError) {
		e := &retrying{guarded: true}
		got, err := rdd.CountByValue(t.Context(), rdd.Parallelize(rows, 2).WithExecutor(e))
		require.NoError(t, err)
		return got, e.skipped
	}
	got, skipped := count(t, []any{1.5, nan, point{1, nan}, "a", 1.5, point{1, 2}, math.Copysign(0, -1), 0.0})
	require.Equal(t, map[any]int64{1.5: 2, "a": 1, point{1, 2}: 1, 0.0: 2}, got)
	require.Len(t, skipped, 2)
	for _, re := range skipped {
		require.ErrorIs(t, re, codec.ErrNaN)
		require.Equal(t, "countByValue", re.Operator)
	}
	_, err := rdd.CountByKey(t.Context(), rdd.Parallelize([]rdd.Pair[point, int]{{point{1, 2}, 1}, {point{nan, 2}, 1}}, 1))
	require.ErrorIs(t, err, codec.ErrNaN)
	require.ErrorContains(t, err, "offset 1")
}

// The place of a panic is the user's line, not that of the code which it was in.
func TestPlaceOfAPanic(t *testing.T) {
	var none map[string]int
	var nobody *rdd.PanicError
	for name, f := range map[string]func(){
		"value":       func() { panic(1) },
		"nil map":     func() { none["a"] = 1 },
		"nil pointer": func() { _ = nobody.Stack },
		"library":     func() { _ = strings.Repeat("x", -1-len(none)) },
		"this module's": func() {
			_, _ = rdd.None[int]().Get()
			rdd.Map[int, int](nil, nil).Named("x").Release()
			(*rdd.RDD[int])(nil).Release()
		},
		"again": func() {
			defer func() { panic(recover()) }()
			panic(strconv.Itoa(1))
		},
	} {
		err := rdd.Protect(&rdd.Task{Ctx: t.Context()}, func(*rdd.Task) error { f(); return nil })
		var p *rdd.PanicError
		require.ErrorAs(t, err, &p, name)
		require.Regexp(t, `/trail_test\.go:\d+$`, p.Place(), "%s: %s", name, p.Stack)
	}
	require.Empty(t, (&rdd.PanicError{}).Place())
	require.Equal(t, "strings.go:1", (&rdd.PanicError{Stack: []byte("goroutine 1 [running]:\npanic({0x1, 0x2})\n\truntime/panic.go:1 +0x1\nstrings.Repeat()\n\tstrings.go:1 +0x2\n")}).Place())
	require.Equal(t, "example.com/job/main.go:7", (&rdd.PanicError{Stack: []byte("goroutine 1 [running]:\npanic({0x1, 0x2})\n\truntime/panic.go:1 +0x1\n" +
		"strings.Repeat(...)\n\tstrings/strings.go:1 +0x2\nexample.com/job.f()\n\texample.com/job/main.go:7 +0x2\n")}).Place())
}
