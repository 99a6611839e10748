package rdd

import (
	"context"
	"slices"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
)

// First returns the first record; ok is false if there is none.
func First[T any](ctx context.Context, r *RDD[T]) (v T, ok bool, err error) {
	got, err := Take(ctx, r, 1)
	if err != nil || len(got) == 0 {
		return v, false, err
	}
	return got[0], true, nil
}

// Top returns the n greatest records by compare (negative if a is less than b),
// the greatest first, fewer if there are no more; equal ones in their order. It
// holds n records for each partition.
func Top[T any](ctx context.Context, r *RDD[T], n int, compare func(a, b T) int) ([]T, error) {
	if err := r.needsFor("top", compare != nil); err != nil || n < 1 {
		return nil, err
	}
	down := func(a, b T) int { return compare(b, a) }
	best := func(rows []T) []T {
		slices.SortStableFunc(rows, down)
		return rows[:min(n, len(rows))]
	}
	return aggregate(ctx, r, "top", func() []T { return nil }, func(rows []T, v T) []T {
		if rows = append(rows, v); len(rows) >= 2*max(n, blockRows) {
			return best(slices.Clone(rows)) // a record that fails must find them as they were
		}
		return rows
	}, func(a, b []T) []T { return best(slices.Concat(best(a), best(b))) })
}

// Fold folds all records of each partition onto zero, and the results, in the
// order of the partitions, onto zero again, as Spark does: it is to be neutral
// (0 of a sum). f must be associative and must not change its arguments.
func Fold[T any](ctx context.Context, r *RDD[T], zero T, f func(T, T) T) (T, error) {
	if err := r.needsFor("fold", f != nil); err != nil {
		return zero, err
	}
	return aggregate(ctx, r, "fold", func() T { return zero }, f, f)
}

// Aggregate folds the records of each partition onto a value that zero makes, by
// add, and the results, in the order of the partitions, onto another one, by
// merge. add may append to a slice that it is given; it must not change it
// otherwise.
func Aggregate[T, A any](ctx context.Context, r *RDD[T], zero func() A, add func(A, T) A, merge func(A, A) A) (A, error) {
	var none A
	if err := r.needsFor("aggregate", zero != nil && add != nil && merge != nil); err != nil {
		return none, err
	}
	return aggregate(ctx, r, "aggregate", zero, add, merge)
}

// aggregate is Aggregate for the action named name.
func aggregate[T, A any](ctx context.Context, r *RDD[T], name string, zero func() A, add func(A, T) A, merge func(A, A) A) (A, error) {
	var none A
	l := &label{name: name}
	parts := make([]A, r.n)
	err := act(ctx, r, name, 0, r.n, func(t *Task, p int) error {
		e := &fold[A]{acc: zero()}
		e.flushed = e.acc
		if t.Guard != nil {
			t.Guard.Enlist(e)
		}
		err := r.push(t, p, l, func(v T) error {
			e.acc = add(e.acc, v)
			return nil
		})
		parts[p] = e.acc
		return err
	})
	if err != nil {
		return none, err
	}
	all := none
	err = Protect(&Task{Ctx: ctx, Name: name}, func(*Task) error {
		all = zero()
		for _, part := range parts {
			all = merge(all, part)
		}
		return nil
	})
	return all, err
}

// CountByValue returns how often each record is there. A record that is or has a NaN
// fails, as in the steps by key: a map could not be asked for it.
func CountByValue[T comparable](ctx context.Context, r *RDD[T]) (map[T]int64, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	return countKeys(ctx, r, "countByValue", func(v T) T { return v })
}

// CountByKey returns how many records each key has. A record whose key is or has a NaN
// fails.
func CountByKey[K comparable, V any](ctx context.Context, r *RDD[Pair[K, V]]) (map[K]int64, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	return countKeys(ctx, r, "countByKey", func(kv Pair[K, V]) K { return kv.Key })
}

func countKeys[T any, K comparable](ctx context.Context, r *RDD[T], name string, key func(T) K) (map[K]int64, error) {
	l := &label{name: name}
	// Unlike a shuffle it needs no canonical bytes of the keys, so that a type without is counted too.
	canonical, err := codec.KeyFor[K]()
	check := (err != nil || canonical.NeedsCheck()) && !sabotage.On("nan-is-counted")
	parts := make([]*combiner[K, int64], r.n)
	err = act(ctx, r, name, 0, r.n, func(t *Task, p int) error {
		c, _ := takeCombiner[K, int64](&Task{Guard: t.Guard}) // not pooled: it is read afterwards
		parts[p] = c
		return r.push(t, p, l, func(v T) error {
			k := key(v)
			if check && !equal(k, k) {
				return t.Fail(name, k, codec.ErrNaN)
			}
			c.add(&t.Origin, k, 1, func(a, b int64) int64 { return a + b })
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	all := map[K]int64{}
	for _, c := range parts {
		for i := range c.rows {
			all[c.rows[i].key] += c.rows[i].value
		}
	}
	return all, nil
}

// equal is false for what is not equal to itself: a NaN, or what has one.
func equal[K comparable](a, b K) bool { return a == b }
