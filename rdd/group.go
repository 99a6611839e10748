package rdd

import (
	"fmt"

	"github.com/statemill/statemill/partitioner"
)

// GroupByKey gathers the values of each key and lays the groups out by p. Groups
// come in the order in which their keys were first seen, values in the order of
// the records. What lies by p already is not moved. A group is held in memory as a
// whole; where a fold will do, ReduceByKey moves less.
func GroupByKey[K comparable, V any](r *RDD[Pair[K, V]], p partitioner.Partitioner[K]) *RDD[Pair[K, []V]] {
	l := labelOf(r, "groupByKey")
	laid := layBy(r, l, p)
	out := derive(laid, l, func(t *Task, target int, emit func(Pair[K, []V]) error) error {
		g, err := group(laid, t, target, l)
		if err != nil {
			return err
		}
		emit = guardEmit(t, emit)
		for i := range g.keys {
			t.Origin = g.keys[i].origin
			// A copy: who keeps one group must not keep the whole partition.
			if err := emit(Pair[K, []V]{g.keys[i].key, append([]V(nil), g.at(i)...)}); err != nil {
				return err
			}
		}
		return nil
	})
	out.part = p
	return out
}

// CombineByKey folds the values of each key to a C and lays the results out by
// p: create makes one of a key's first value, merge adds a value, combine adds two
// of them, the earlier one first. Each source partition is folded before it is
// moved; what lies by p already is not moved. The result is in first-seen order.
// merge and combine may append to a slice they are given; they must not change
// their arguments otherwise.
func CombineByKey[K comparable, V, C any](r *RDD[Pair[K, V]], create func(V) C, merge func(C, V) C, combine func(C, C) C, p partitioner.Partitioner[K]) *RDD[Pair[K, C]] {
	l := labelOf(r, "combineByKey")
	if create == nil || merge == nil || combine == nil {
		return failed[Pair[K, C]](fmt.Errorf("%s: %w", l.name, errNilFunction))
	}
	// fold adds the values of one partition.
	fold := func(above *Task, c *combiner[K, C], part int, check func(*Task, K) error) error {
		return r.push(above, part, l, func(kv Pair[K, V]) error {
			if check != nil {
				if err := check(above, kv.Key); err != nil {
					return err
				}
			}
			combineInto(c, &above.Origin, kv.Key, kv.Value, create, merge)
			return nil
		})
	}
	if LiesBy(r, p) {
		return foldLaid(r, l, p, func(above *Task, c *combiner[K, C], part int) error { return fold(above, c, part, nil) })
	}
	s := shuffle(r, l, p, func(t *Task, w *rowWriter[K, C]) error {
		above := t.below()
		c, done := takeCombiner[K, C](above)
		defer done()
		if err := fold(above, c, w.source, w.keyChecker()); err != nil {
			return err
		}
		return c.each(t, guardEmitPair(t, w.emitter()))
	})
	if s.err != nil {
		return s.rdd
	}
	return reduced(s.rdd, l, combine, p)
}

// foldLaid is the fold of each partition of a dataset that lies by p.
func foldLaid[K comparable, V, C any](r *RDD[Pair[K, V]], l *label, p partitioner.Partitioner[K], fill func(above *Task, c *combiner[K, C], part int) error) *RDD[Pair[K, C]] {
	out := derive(r, l, func(t *Task, target int, emit func(Pair[K, C]) error) error {
		above := t.below()
		c, done := takeCombiner[K, C](above)
		defer done()
		if err := fill(above, c, target); err != nil {
			return err
		}
		return c.each(t, guardEmitPair(t, emit))
	})
	out.part = p
	return out
}

// reduced folds each partition of a dataset that lies by p.
func reduced[K comparable, V any](r *RDD[Pair[K, V]], l *label, f func(V, V) V, p partitioner.Partitioner[K]) *RDD[Pair[K, V]] {
	return foldLaid(r, l, p, func(above *Task, c *combiner[K, V], part int) error {
		return r.push(above, part, l, func(kv Pair[K, V]) error {
			c.add(&above.Origin, kv.Key, kv.Value, f)
			return nil
		})
	})
}

// LiesBy says whether r's records lie by p already, so that steps which lay
// them out by p do not move them.
func LiesBy[K comparable, V any](r *RDD[Pair[K, V]], p partitioner.Partitioner[K]) bool {
	have := PartitionerOf(r)
	return have != nil && p != nil && have.Equal(p)
}

// grouper gathers rows by key, in the order in which the keys were first seen. In
// guarded mode it is an edge: a record's rows are kept aside until it has succeeded.
type grouper[K comparable, V any] struct {
	index map[K]int
	keys  []groupKey[K]
	vals  []V   // as they came; by group after arrange
	of    []int // the group of each of vals, until arrange

	staged []stagedGroupRow[K, V]
}

type groupKey[K comparable] struct {
	key    K
	origin Origin // of the first record
	n, end int    // number of values; where they end in vals
}

type stagedGroupRow[K comparable, V any] struct {
	kv     Pair[K, V]
	origin Origin
}

// group gathers partition p of r.
func group[K comparable, V any](r *RDD[Pair[K, V]], t *Task, p int, l *label) (*grouper[K, V], error) {
	g, above := &grouper[K, V]{index: map[K]int{}}, t.below()
	put := func(kv Pair[K, V]) error {
		g.add(kv, &above.Origin)
		return nil
	}
	if above.Guard != nil {
		above.Guard.Enlist(g)
		put = func(kv Pair[K, V]) error {
			g.staged = append(g.staged, stagedGroupRow[K, V]{kv, above.Origin})
			return nil
		}
	}
	if err := r.push(above, p, l, put); err != nil {
		return nil, err
	}
	g.arrange()
	return g, nil
}

func (g *grouper[K, V]) add(kv Pair[K, V], o *Origin) {
	i, ok := g.index[kv.Key]
	if !ok {
		i = len(g.keys)
		g.index[kv.Key] = i
		g.keys = append(g.keys, groupKey[K]{key: kv.Key, origin: *o})
	}
	g.keys[i].n++
	g.vals, g.of = append(g.vals, kv.Value), append(g.of, i)
}

// Flush makes the record's rows final.
func (g *grouper[K, V]) Flush() error {
	for i := range g.staged {
		g.add(g.staged[i].kv, &g.staged[i].origin)
	}
	g.Drop()
	return nil
}

// Drop forgets the record's rows.
func (g *grouper[K, V]) Drop() {
	clear(g.staged)
	g.staged = g.staged[:0]
}

// arrange puts the values of a group side by side, in their order.
func (g *grouper[K, V]) arrange() {
	at := 0
	for i := range g.keys {
		g.keys[i].end = at
		at += g.keys[i].n
	}
	sorted := make([]V, len(g.vals))
	for j, i := range g.of {
		sorted[g.keys[i].end] = g.vals[j]
		g.keys[i].end++
	}
	g.vals, g.of = sorted, nil
}

// at gives the values of group i. They share one array: nobody may append.
func (g *grouper[K, V]) at(i int) []V {
	k := &g.keys[i]
	return g.vals[k.end-k.n : k.end : k.end]
}

// find gives the values of a key, nil if it has none.
func (g *grouper[K, V]) find(key K) []V {
	if i, ok := g.index[key]; ok {
		return g.at(i)
	}
	return nil
}
