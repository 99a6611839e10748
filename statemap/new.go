package statemap

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
)

// New makes a table and gives its first version, open for writing. Errors:
// ErrThreshold, ErrCapacity.
func New[K comparable, S any](o Options[K]) (*Map[K, S], error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	for o.Secret == 0 {
		o.Secret = maphash.Bytes(maphash.MakeSeed(), nil)
	}
	if f := formOf[K, S](); f.arena {
		return &Map[K, S]{h: newRoot[K, keyRef, S](f, o)}, nil
	} else {
		return &Map[K, S]{h: newRoot[K, K, S](f, o)}, nil
	}
}

func newRoot[K comparable, SK, S any](f form[K], o Options[K]) *handle[K, SK, S] {
	t := newTable[K, SK, S](f, o, o.InitialCapacity)
	t.layouts = new(atomic.Uint64)
	t.layout, t.id = t.layouts.Add(1), t.layouts.Add(1)
	t.root = true
	t.cur, t.first = 0, 1
	return t.begin(0)
}

// Import makes a table from a dump: the result has the dump's base as the
// version before (which has no handle) and its own entries as changes, and is
// open. Errors: as New and Put, and ErrDumpCount.
func Import[K comparable, S any](o Options[K], d Dump[K, S]) (*Map[K, S], error) {
	base, err := New[K, S](o)
	if err != nil {
		return nil, err
	}
	for _, e := range d.Base {
		if err := base.Put(e.Key, e.State, e.Time); err != nil {
			return nil, err
		}
	}
	if base.Len() != d.Count || len(d.Base) != d.Count {
		return nil, fmt.Errorf("%w: its count is %d, its base has %d entries with %d distinct keys", ErrDumpCount, d.Count, len(d.Base), base.Len())
	}
	m, err := base.Copy()
	if err != nil {
		return nil, err
	}
	for _, e := range d.Own {
		if e.Removed {
			err = m.Remove(e.Key)
		} else {
			err = m.Put(e.Key, e.State, e.Time)
		}
		if err != nil {
			return nil, err
		}
	}
	base.Release()
	return m, nil
}
