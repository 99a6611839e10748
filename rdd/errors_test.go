package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// topic has 2 partitions; one worker makes the error that is told certain.
func topic(n int) *rdd.RDD[int] {
	return rdd.New(2, func(t *rdd.Task, emit func(int) error) error {
		t.Origin.Stream, t.Origin.Partition = "orders", fmt.Sprint("orders-", t.Partition)
		for i := range n {
			t.Origin.Offset = int64(1000 + i)
			if err := emit(i); err != nil {
				return err
			}
		}
		return nil
	}).WithExecutor(rdd.Local(1, nil))
}

func TestErrorsNameTheRecord(t *testing.T) {
	boom := errors.New("boom")
	fail := func(v int) error {
		if v == 7 {
			return boom
		}
		return nil
	}
	for name, r := range map[string]*rdd.RDD[int]{
		"parse": rdd.MapErr(topic(9), func(v int) (int, error) { return v, fail(v) }),
		"split": rdd.FlatMapErr(topic(9), func(v int) ([]int, error) { return nil, fail(v) }),
		"push":  rdd.FlatMapEmit(topic(9), func(v int, emit func(int)) error { emit(v); return fail(v) }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rdd.Collect(t.Context(), rdd.Filter(r.Named(name), func(int) bool { return true }))
			require.Equal(t, name, r.Name())
			require.ErrorIs(t, err, boom)
			var re *rdd.RecordError
			require.ErrorAs(t, err, &re)
			require.Equal(t, name, re.Operator)
			require.Equal(t, "orders", re.Stream)
			require.Equal(t, "orders-0", re.Partition)
			require.EqualValues(t, 1007, re.Offset)
			require.Nil(t, re.Stack)
			require.EqualError(t, err, name+": record at orders/orders-0 offset 1007: boom")
		})
	}
}

func TestPanicsAreErrorsWithOriginAndStack(t *testing.T) {
	boom := errors.New("boom")
	for _, value := range []any{"text", boom} {
		explode := func(v int) int {
			if v == 3 {
				panic(value)
			}
			return v
		}
		r := rdd.Map(topic(5), explode)
		for name, run := range map[string]func() error{
			"action": func() error { _, err := rdd.Count(t.Context(), r); return err },
			"stage":  func() error { return rdd.Keep(r).Materialize(t.Context()) },
		} {
			err := run()
			var re *rdd.RecordError
			require.ErrorAs(t, err, &re, name)
			require.EqualValues(t, 1003, re.Offset)
			require.Equal(t, "map", re.Operator)
			require.Regexp(t, `panic: .* \(at .*/errors_test\.go:\d+\)$`, err.Error())
			var pe *rdd.PanicError
			require.ErrorAs(t, err, &pe)
			require.Equal(t, value, pe.Value)
			require.Equal(t, rdd.Origin{Stream: "orders", Partition: "orders-0", Offset: 1003}, pe.Origin)
			require.Contains(t, string(pe.Stack), "errors_test.go")
			require.Equal(t, value == boom, errors.Is(err, boom))
		}
	}

	_, _, err := rdd.Reduce(t.Context(), topic(1), func(a, b int) int { panic("merge") })
	require.ErrorContains(t, err, "panic: merge", "folding the partitions together is user code too")
}

func TestPanicNamesOperatorAndKeyOfTheTask(t *testing.T) {
	task := &rdd.Task{Ctx: t.Context(), Name: "stage", Operator: "counts", Key: func() any { return "k" }}
	err := rdd.Protect(task, func(*rdd.Task) error { panic("x") })
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, "counts", re.Operator)
	require.Equal(t, "k", re.Key)
	require.ErrorContains(t, err, "counts: key k: panic: x")

	task.Key = func() any { panic("y") }
	require.ErrorContains(t, rdd.Protect(task, func(*rdd.Task) error { panic("x") }), "panic: x")
	require.NoError(t, task.Fail("op", nil, nil))
	require.Equal(t, error(re), task.Fail("other", nil, re), "named already")
}

func TestKeysAreChecked(t *testing.T) {
	in := rdd.Map(topic(3), func(v int) rdd.Pair[float64, int] {
		if v == 2 {
			return rdd.KV(math.NaN(), v)
		}
		return rdd.KV(math.Copysign(0, -1), v)
	})
	p := partitioner.Hash[float64](2)
	for name, r := range map[string]*rdd.RDD[rdd.Pair[float64, int]]{
		"partitionBy": rdd.PartitionBy(in, p),
		"reduceByKey": rdd.ReduceByKey(in, func(a, b int) int { return a + b }, p),
	} {
		_, err := rdd.Collect(t.Context(), r)
		require.ErrorIs(t, err, codec.ErrNaN, name)
		var re *rdd.RecordError
		require.ErrorAs(t, err, &re)
		require.Equal(t, name, re.Operator)
		require.True(t, math.IsNaN(re.Key.(float64)))
		require.EqualValues(t, 1002, re.Offset)
	}
}

func TestPartitionOutOfRange(t *testing.T) {
	p := partitioner.Func("bad", 2, func(k int) int { return k })
	in := rdd.Map(topic(3), func(v int) rdd.Pair[int, int] { return rdd.KV(v, v) })
	_, err := rdd.Collect(t.Context(), rdd.PartitionBy(in, p))
	require.ErrorIs(t, err, partitioner.ErrPartition)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, 2, re.Key)
	require.EqualValues(t, 1002, re.Offset)
}

// Cancelling is never a data error, wherever it is noticed.
func TestCancelling(t *testing.T) {
	big := rdd.Parallelize(numbers(1_000_000), 4)
	pairs := rdd.Map(big, func(v int) rdd.Pair[int, int] { return rdd.KV(v, v) })
	p := partitioner.Hash[int](3)
	deadline := errors.New("stop timeout")
	for name, run := range map[string]func(ctx context.Context, seen func()) error{
		"parallelize": func(ctx context.Context, seen func()) error {
			_, err := rdd.Count(ctx, rdd.Map(big, func(v int) int { seen(); return v }))
			return err
		},
		"keep": func(ctx context.Context, seen func()) error {
			return rdd.Keep(rdd.Map(big, func(v int) int { seen(); return v })).Materialize(ctx)
		},
		"endless source": func(ctx context.Context, seen func()) error {
			return rdd.Keep(rdd.New(2, func(t *rdd.Task, emit func(int) error) error {
				for {
					seen()
					if err := emit(1); err != nil {
						return err
					}
				}
			})).Materialize(ctx)
		},
		"shuffle read": func(ctx context.Context, seen func()) error {
			_, err := rdd.Count(ctx, rdd.Map(rdd.PartitionBy(pairs, p), func(v rdd.Pair[int, int]) int { seen(); return 1 }))
			return err
		},
		"user function": func(ctx context.Context, seen func()) error {
			_, err := rdd.Count(ctx, rdd.MapErr(big, func(v int) (int, error) {
				seen()
				return v, context.Cause(ctx)
			}))
			return err
		},
		"user panic": func(ctx context.Context, seen func()) error {
			_, err := rdd.Count(ctx, rdd.Map(big, func(v int) int {
				seen()
				if err := context.Cause(ctx); err != nil {
					panic(err)
				}
				return v
			}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			err := run(ctx, func() { cancel(deadline) })
			require.Error(t, err)
			require.True(t, errors.Is(err, deadline) || errors.Is(err, context.Canceled), "%v", err)
			var re *rdd.RecordError
			require.False(t, errors.As(err, &re), "%v", err)
		})
	}

	// The same error without a cancelled context is the record's.
	_, err := rdd.Count(t.Context(), rdd.MapErr(topic(1), func(int) (int, error) { return 0, context.Canceled }))
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
}
