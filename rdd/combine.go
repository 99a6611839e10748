package rdd

import (
	"maps"

	"github.com/statemill/statemill/internal/sabotage"
)

// combiner folds the values of each key, in the order in which the keys were
// first seen. In guarded mode it is an edge: a record's results are kept in an overlay
// until the whole record has succeeded.
type combiner[K comparable, V any] struct {
	index map[K]int
	rows  []combined[K, V]

	guarded bool
	changed map[int]V // new values of rows that existed before the record
	flushed int       // rows that the flushed records made
}

type combined[K, V any] struct {
	key    K
	value  V
	origin Origin // of the first record
}

func takeCombiner[K comparable, V any](t *Task) (c *combiner[K, V], done func()) {
	list := listOf[combiner[K, V]](t.Pools)
	if list == nil {
		c, done = new(combiner[K, V]), func() {}
	} else {
		c = list.Get()
		done = func() {
			c.clear()
			list.Put(c)
		}
	}
	if c.index == nil {
		c.index = map[K]int{}
	}
	if t.Guard != nil {
		c.guarded, c.changed = true, map[int]V{}
		t.Guard.Enlist(c)
	}
	return c, done
}

func (c *combiner[K, V]) clear() {
	clear(c.index)
	clear(c.rows)
	c.rows, c.guarded, c.changed, c.flushed = c.rows[:0], false, nil, 0
}

func (c *combiner[K, V]) add(o *Origin, key K, value V, f func(V, V) V) {
	i, ok := c.index[key]
	if !ok {
		c.index[key] = len(c.rows)
		c.rows = append(c.rows, combined[K, V]{key, value, *o})
		return
	}
	if !c.guarded || i >= c.flushed {
		r := &c.rows[i]
		r.value = f(r.value, value)
		return
	}
	have, ok := c.changed[i]
	if !ok {
		have = c.rows[i].value
	}
	c.changed[i] = f(have, value)
}

// combineInto is add for results of another type than the values.
func combineInto[K comparable, V, C any](c *combiner[K, C], o *Origin, key K, v V, create func(V) C, merge func(C, V) C) {
	i, ok := c.index[key]
	if !ok {
		first := create(v) // before the index: it may panic
		c.index[key] = len(c.rows)
		c.rows = append(c.rows, combined[K, C]{key, first, *o})
		return
	}
	if !c.guarded || i >= c.flushed {
		r := &c.rows[i]
		r.value = merge(r.value, v)
		return
	}
	have, ok := c.changed[i]
	if !ok {
		have = c.rows[i].value
	}
	c.changed[i] = merge(have, v)
}

// Flush makes the record's results final.
func (c *combiner[K, V]) Flush() error {
	for i, v := range c.changed {
		c.rows[i].value = v
	}
	clear(c.changed)
	c.flushed = len(c.rows)
	return nil
}

// Drop takes the record's results back.
func (c *combiner[K, V]) Drop() {
	clear(c.changed)
	for _, r := range c.rows[c.flushed:] {
		delete(c.index, r.key)
	}
	clear(c.rows[c.flushed:])
	c.rows = c.rows[:c.flushed]
}

// each gives the results in first-seen order, with the cursor at the key's first record.
func (c *combiner[K, V]) each(t *Task, f func(K, V) error) error {
	if sabotage.On("random-group-order") {
		order := maps.Values(c.index)
		for i := range order {
			if err := f(c.rows[i].key, c.rows[i].value); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range c.rows {
		r := &c.rows[i]
		t.Origin = r.origin
		if err := f(r.key, r.value); err != nil {
			return err
		}
	}
	return nil
}
