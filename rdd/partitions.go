package rdd

import "iter"

// MapPartitions applies f to the records of each partition as a whole; f gets
// the partition's number. The sequence in may be ranged over once, and only while f's
// result is consumed. A failure of f itself is not the failure of one record:
// it ends the task in guarded mode too, where the records above and below are guarded
// by themselves and the partition is held in memory.
func MapPartitions[T, U any](r *RDD[T], f func(partition int, in iter.Seq[T]) iter.Seq[U]) *RDD[U] {
	l := labelOf(r, "mapPartitions")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		operator := t.Operator
		t.Operator = l.operator() // of a panic of f itself
		err := mapPartition(r, t, p, l, f, emit)
		t.Operator = operator
		return err
	}).needs(f != nil)
}

func mapPartition[T, U any](r *RDD[T], t *Task, p int, l *label, f func(partition int, in iter.Seq[T]) iter.Seq[U], emit func(U) error) error {
	var up error // the error of the steps above ends the sequence; f cannot be told
	in, err := partitionSeq(r, t, p, l, &up)
	if err != nil {
		return err
	}
	if err := pushSeq(f(p, in), guardEmit(t, emit)); err != nil {
		return err
	}
	return up
}

func partitionSeq[T any](r *RDD[T], t *Task, p int, l *label, up *error) (iter.Seq[T], error) {
	if t.Guard == nil {
		return func(yield func(T) bool) {
			*up = r.push(t, p, l, func(v T) error {
				if !yield(v) {
					return errStop
				}
				return nil
			})
			if *up == errStop {
				*up = nil
			}
		}, nil
	}
	rows, err := collectGuarded(r, t, p)
	if err != nil {
		return nil, err
	}
	return func(yield func(T) bool) {
		for i := range rows.rows {
			t.Origin = rows.origins[i]
			if !yield(rows.rows[i]) {
				return
			}
		}
	}, nil
}

// Glom gives one slice per partition with all its records, empty ones too.
func Glom[T any](r *RDD[T]) *RDD[[]T] {
	return derive(r, labelOf(r, "glom"), func(t *Task, p int, emit func([]T) error) error {
		rows, above := &collector[T]{}, t.below()
		if err := rows.fill(r, above, p); err != nil {
			return err
		}
		t.Origin = above.Origin
		if rows.rows == nil {
			rows.rows = []T{}
		}
		return guardEmit(t, emit)(rows.rows)
	})
}

// collector is an edge that gathers rows in a slice.
type collector[T any] struct {
	rows    []T
	origins []Origin // kept only if withOrigins
	flushed int

	withOrigins bool
}

func (c *collector[T]) Flush() error { c.flushed = len(c.rows); return nil }

func (c *collector[T]) Drop() {
	clear(c.rows[c.flushed:])
	c.rows = c.rows[:c.flushed]
	if c.withOrigins {
		c.origins = c.origins[:c.flushed]
	}
}

func (c *collector[T]) fill(r *RDD[T], t *Task, p int) error {
	if t.Guard != nil {
		t.Guard.Enlist(c)
	}
	return r.compute(t, p, func(v T) error {
		c.rows = append(c.rows, v)
		if c.withOrigins {
			c.origins = append(c.origins, t.Origin)
		}
		return nil
	})
}

func collectGuarded[T any](r *RDD[T], t *Task, p int) (*collector[T], error) {
	c := &collector[T]{withOrigins: true}
	return c, c.fill(r, t.below(), p)
}
