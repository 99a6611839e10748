package rdd_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// In steady state blocks are reused: what a batch allocates does not grow with
// its records (a slice of pointers to blocks remains: 1 allocation per ~1000 records).
func TestSteadyStateAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("counts differ under the race detector and with invariants")
	}
	const n = 50_000
	recs := make([]kv, n)
	for i := range recs {
		recs[i] = kv{Key: string(rune('a' + i%26)), Value: i}
	}
	p := partitioner.Hash[string](4)
	exec := rdd.Local(1, &rdd.Pools{})
	in := rdd.Parallelize(recs, 4).WithExecutor(exec)
	ctx := context.Background()
	for name, batch := range map[string]func() error{
		"narrow": func() error {
			_, err := rdd.Count(ctx, rdd.Filter(rdd.Map(in, func(v kv) kv { return v }), func(v kv) bool { return v.Value > 0 }))
			return err
		},
		"flatMapEmit": func() error {
			_, err := rdd.Count(ctx, rdd.FlatMapEmit(in, func(v kv, emit func(kv)) error { emit(v); emit(v); return nil }))
			return err
		},
		"shuffle": func() error {
			s := rdd.Shuffle(in, p)
			_, err := rdd.Count(ctx, s.RDD())
			s.Release()
			return err
		},
		"custom": func() error {
			s := rdd.Shuffle(in, partitioner.Murmur2(4))
			_, err := rdd.Count(ctx, s.RDD())
			s.Release()
			return err
		},
		"keep": func() error {
			k := rdd.Keep(in)
			_, err := rdd.Count(ctx, k)
			k.Release()
			return err
		},
		"reduceByKey": func() error {
			r := rdd.ReduceByKey(in, func(a, b int) int { return a + b }, p)
			_, err := rdd.Count(ctx, r)
			r.Release()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(5, func() {
				if err := batch(); err != nil {
					t.Fatal(err)
				}
			})
			require.Less(t, allocs/n, 0.005, "%v allocations for %d records", allocs, n)
		})
	}
}

func TestBlocksAreReusedAndPinNothing(t *testing.T) {
	pools := &rdd.Pools{}
	exec := rdd.Local(2, pools)
	recs := make([]kv, 10_000)
	for i := range recs {
		recs[i] = kv{Key: string(rune('a' + i%26)), Value: i}
	}
	in := rdd.Parallelize(recs, 4)
	var want int
	for range 5 {
		s := rdd.Shuffle(in, partitioner.Hash[string](3))
		require.NoError(t, rdd.Materialize(t.Context(), exec, s.Stage()))
		if want == 0 {
			for target := range 3 {
				want += len(s.Blocks(target))
			}
		}
		s.Release()
		n, pinned := rdd.FreeRows(pools)
		require.Equal(t, want, n, "every block comes back, and no more are made")
		require.False(t, pinned, "a pooled block must not keep keys alive")
	}

	// A failed attempt gives its blocks back as well.
	bad := rdd.Map(in, func(v kv) kv {
		if v.Value%2500 == 2400 {
			panic("late")
		}
		return v
	})
	s := rdd.Shuffle(bad, partitioner.Hash[string](3))
	require.Error(t, rdd.Materialize(t.Context(), exec, s.Stage()))
	n, pinned := rdd.FreeRows(pools)
	require.Equal(t, want, n)
	require.False(t, pinned)
}

func TestHasPointers(t *testing.T) {
	type flat struct {
		A int64
		B [4]float32
	}
	for v, want := range map[any]bool{
		1: false, "s": true, 1.5: false, true: false, flat{}: false, [2]string{}: true,
		[0]string{}: false, rdd.KV("a", 1): true, rdd.KV(1, 1): false,
	} {
		require.Equal(t, want, rdd.HasPointersOf(reflect.TypeOf(v)), "%T", v)
	}
	require.True(t, rdd.HasPointersOf(reflect.TypeFor[any]()))
	require.True(t, rdd.HasPointersOf(reflect.TypeFor[*int]()))
}
