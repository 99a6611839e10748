package rdd

import (
	"errors"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
)

// ErrNotInWindow is returned when records leave a window whose key its result does
// not have, so that nothing can be taken away. It means that the filter dropped a
// key too early, or that the functions are not inverse to each other.
var ErrNotInWindow = errors.New("neither the previous window has a value for the key, nor are there new ones: " +
	"it was dropped by the filter while its records were still in the window")

// SlideWindow gives the result of a window from that of the one before, all laid
// out by p: of each key's value that of left is taken away by sub, and that of
// came added by add; keys that prev lacks have came's, in its order, behind the
// others. keep, if not nil, drops what it says false of. A key of left alone fails
// with ErrNotInWindow. Equal keys of left and of came are merged by add first.
func SlideWindow[K comparable, V any](prev, left, came *RDD[Pair[K, V]], add, sub func(V, V) V, keep func(K, V) bool, p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	const name = "slideWindow"
	prev, left, came = PartitionBy(prev, p), PartitionBy(left, p), PartitionBy(came, p)
	var out *RDD[Pair[K, V]]
	out = zipped(prev, left, p, name, func(t *Task, target int, emit func(Pair[K, V]) error) error {
		gone, doneGone, err := folded(left, t, target, add)
		if err != nil {
			return err
		}
		defer doneGone()
		news, doneNews, err := folded(came, t, target, add)
		if err != nil {
			return err
		}
		defer doneNews()
		goneSeen, newsSeen := make([]bool, len(gone.rows)), make([]bool, len(news.rows))
		pass := func(k K, v V) error {
			if keep != nil && !keep(k, v) {
				return nil
			}
			return emit(Pair[K, V]{k, v})
		}
		err = prev.compute(t, target, func(kv Pair[K, V]) error {
			v := kv.Value
			i, isGone := gone.index[kv.Key]
			j, isNew := news.index[kv.Key]
			if isGone { // before user code, which may fail the record
				goneSeen[i] = true
			}
			if isNew {
				newsSeen[j] = true
			}
			if isGone && !sabotage.On("window-keeps-all") {
				v = sub(v, gone.rows[i].value)
			}
			if isNew {
				v = add(v, news.rows[j].value)
			}
			return pass(kv.Key, v)
		})
		if err != nil {
			return err
		}
		for i, seen := range goneSeen {
			row := &gone.rows[i]
			if _, isNew := news.index[row.key]; !seen && !isNew {
				t.Origin = row.origin
				return t.Fail(out.label.name, row.key, ErrNotInWindow)
			}
		}
		fresh := guardEmit(t, func(kv Pair[K, V]) error { return pass(kv.Key, kv.Value) })
		for j, seen := range newsSeen {
			if seen {
				continue
			}
			row := &news.rows[j]
			t.Origin = row.origin
			if err := fresh(Pair[K, V]{row.key, row.value}); err != nil {
				return err
			}
		}
		return nil
	})
	alsoReads(out, came)
	return out
}

// folded merges the values of each key of a partition by f.
func folded[K comparable, V any](r *RDD[Pair[K, V]], t *Task, p int, f func(V, V) V) (c *combiner[K, V], done func(), err error) {
	above := t.below()
	c, done = takeCombiner[K, V](above)
	err = r.compute(above, p, func(kv Pair[K, V]) error {
		c.add(&above.Origin, kv.Key, kv.Value, f)
		return nil
	})
	if err != nil {
		done()
		return nil, nil, err
	}
	return c, done, nil
}
