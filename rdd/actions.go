package rdd

import (
	"context"
	"errors"
	"iter"
)

// act runs the stages that r needs and then task for its partitions from first
// on, n of them.
func act[T any](ctx context.Context, r *RDD[T], name string, first, n int, task func(t *Task, p int) error) error {
	e := r.Executor()
	if err := Materialize(ctx, e, r.deps...); err != nil {
		return err
	}
	return e.RunTasks(ctx, name, n, func(t *Task) error {
		return Protect(t, func(t *Task) error { return task(t, first+t.Partition) })
	})
}

// Collect returns all records, in the order of the partitions.
func Collect[T any](ctx context.Context, r *RDD[T]) ([]T, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	parts := make([][]T, r.n)
	err := act(ctx, r, "collect", 0, r.n, func(t *Task, p int) error {
		c := &collector[T]{}
		err := c.fill(r, t, p)
		parts[p] = c.rows
		return err
	})
	if err != nil {
		return nil, err
	}
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	all := make([]T, 0, n)
	for _, part := range parts {
		all = append(all, part...)
	}
	return all, nil
}

// Count returns the number of records.
func Count[T any](ctx context.Context, r *RDD[T]) (int64, error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	parts := make([]int64, r.n)
	err := act(ctx, r, "count", 0, r.n, func(t *Task, p int) error {
		n, err := foldPartition(r, t, p, nil, func(n *int64, _ T) { *n++ })
		parts[p] = n
		return err
	})
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range parts {
		sum += n
	}
	return sum, nil
}

// Reduce folds all records in the order of the partitions; ok is false if there
// is none. f must be associative and must not change its arguments.
func Reduce[T any](ctx context.Context, r *RDD[T], f func(T, T) T) (v T, ok bool, err error) {
	if err := r.needsFor("reduce", f != nil); err != nil {
		return v, false, err
	}
	l := &label{name: "reduce"}
	parts := make([]Option[T], r.n)
	err = act(ctx, r, l.name, 0, r.n, func(t *Task, p int) error {
		acc, err := foldPartition(r, t, p, l, func(acc *Option[T], v T) {
			if acc.ok {
				v = f(acc.value, v)
			}
			*acc = Some(v)
		})
		parts[p] = acc
		return err
	})
	if err != nil {
		return v, false, err
	}
	t := &Task{Ctx: ctx, Name: l.name}
	err = Protect(t, func(*Task) error {
		v, ok = foldParts(parts, f).Get()
		return nil
	})
	return v, ok, err
}

// Take returns the first n records, fewer if there are no more. It computes
// only as many partitions as it needs, each at most once: the first, then four
// times as many as before until it has enough.
func Take[T any](ctx context.Context, r *RDD[T], n int) ([]T, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	var all []T
	for from, width := 0, 1; from < r.n && len(all) < n; width *= 4 {
		until := min(r.n, from+width)
		parts := make([][]T, until-from)
		need := n - len(all)
		err := act(ctx, r, "take", from, until-from, func(t *Task, p int) error {
			c := &collector[T]{}
			err := c.take(r, t, p, need)
			parts[p-from] = c.rows
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			all = append(all, part[:min(len(part), n-len(all))]...)
		}
		from = until
	}
	return all, nil
}

// take fills the collector with the first need records of partition p.
func (c *collector[T]) take(r *RDD[T], t *Task, p, need int) error {
	if t.Guard != nil {
		t.Guard.Enlist(c)
	}
	err := r.compute(t, p, func(v T) error {
		c.rows = append(c.rows, v)
		if len(c.rows) >= need {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// ForeachPartition calls f once for every partition, side by side, with its
// records. An attempt that is repeated calls f again. f may stop ranging early and may
// range over the records once. In guarded mode the partition is held in memory.
func ForeachPartition[T any](ctx context.Context, r *RDD[T], f func(ctx context.Context, partition int, in iter.Seq[T]) error) error {
	if err := r.needsFor("foreachPartition", f != nil); err != nil {
		return err
	}
	l := &label{name: "foreachPartition"}
	return act(ctx, r, l.name, 0, r.n, func(t *Task, p int) error {
		var up error
		in, err := partitionSeq(r, t, p, l, &up)
		if err != nil {
			return err
		}
		err = f(t.Ctx, p, in)
		if up != nil {
			return up
		}
		return err
	})
}
