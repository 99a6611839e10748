package rdd

import (
	"cmp"
	"fmt"
	"slices"
)

// SortBy puts the records in the order of the keys that f finds in them, the least
// first, over n partitions of nearly equal size: partition 0 has the least ones.
// Records of equal keys stay in their order. All records are held in memory
// until the dataset is dropped.
func SortBy[T any, K cmp.Ordered](r *RDD[T], key func(T) K, n int) *RDD[T] {
	return sorted(r, "sortBy", func(a, b T) int { return cmp.Compare(key(a), key(b)) }, n).needs(key != nil)
}

// SortFunc is SortBy in the order of compare, which is negative if a comes
// before b.
func SortFunc[T any](r *RDD[T], compare func(a, b T) int, n int) *RDD[T] {
	return sorted(r, "sortFunc", compare, n).needs(compare != nil)
}

type originRow[T any] struct {
	v      T
	origin Origin
}

// sorted sorts each partition in a task of its own, and merges them in one more.
func sorted[T any](r *RDD[T], name string, compare func(a, b T) int, n int) *RDD[T] {
	if err := faultOf(r, name); err != nil {
		return failed[T](err)
	}
	if n < 1 {
		return failed[T](fmt.Errorf("%s to %d: %w", name, n, ErrPartitions))
	}
	l := labelOf(r, name)
	order := func(a, b originRow[T]) int { return compare(a.v, b.v) }
	parts := make([][]originRow[T], r.n)
	var all []originRow[T]
	each := NewStage(StageConfig{
		Name: l.operator(), Deps: r.deps, Tasks: r.n,
		Run: func(t *Task) error {
			t.Operator = l.operator()
			c := &collector[T]{withOrigins: true}
			if err := c.fill(r, t, t.Partition); err != nil {
				return err
			}
			rows := make([]originRow[T], len(c.rows))
			for i := range c.rows {
				rows[i] = originRow[T]{c.rows[i], c.origins[i]}
			}
			slices.SortStableFunc(rows, order)
			parts[t.Partition] = rows // every partition has its own place
			return nil
		},
	})
	merge := NewStage(StageConfig{
		Name: l.operator(), Deps: []*Stage{each}, Tasks: 1,
		Run: func(t *Task) error {
			t.Operator = l.operator()
			rows := slices.Concat(parts...)
			if len(parts) > 1 {
				slices.SortStableFunc(rows, order)
			}
			all = rows
			return t.check()
		},
		Finish: func(err error) error {
			if err == nil {
				parts = nil
			}
			return err
		},
	})
	out := leaf(n, name, func(t *Task, p int, emit func(T) error) error {
		for i := p * len(all) / n; i < (p+1)*len(all)/n; i++ {
			t.Origin = all[i].origin
			if err := emit(all[i].v); err != nil {
				return err
			}
		}
		return nil
	})
	out.label, out.within = l, r.within
	out.deps, out.exec = []*Stage{merge}, r.exec
	return out
}
