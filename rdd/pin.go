package rdd

import "fmt"

// Pin gives a view of r for user code, valid until done is called, and longer
// only while it is retained. Afterwards every use of the view, and of all that was derived from
// it, is ErrReleased. What r reads from (kept rows, a state version) is held as long.
// done may be called more than once.
func Pin[T any](r *RDD[T]) (view *RDD[T], done func(), err error) {
	if r == nil {
		return nil, nil, errNil
	}
	for i, res := range r.res {
		if err := res.Retain(); err != nil {
			for _, held := range r.res[:i] {
				held.Release()
			}
			return nil, nil, err
		}
	}
	below := r.res
	life := NewLife("rdd "+r.label.name, func() {
		for _, res := range below {
			res.Release()
		}
	})
	c := *r
	c.res = []Resource{life}
	c.compute = func(t *Task, p int, emit func(T) error) error {
		if err := life.Enter(); err != nil {
			return err
		}
		defer life.Leave()
		return r.compute(t, p, emit)
	}
	return &c, life.Close, nil
}

// Retain keeps a dataset beyond the function it was given to; each call needs one
// Release. It fails with ErrReleased when it is too late. Datasets that hold no
// data of a batch need neither.
func (r *RDD[T]) Retain() error {
	for i, res := range r.res {
		if err := res.Retain(); err != nil {
			for _, held := range r.res[:i] {
				held.Release()
			}
			return fmt.Errorf("retain %s: %w", r.label.name, err)
		}
	}
	return nil
}

// Release gives back one Retain; without one it lets the data go for its owner.
func (r *RDD[T]) Release() {
	for _, res := range r.res {
		res.Release()
	}
}

// needsFor is usable, and whether an action was given the functions that it needs.
func (r *RDD[T]) needsFor(action string, given bool) error {
	if err := r.usable(); err != nil || given {
		return err
	}
	return fmt.Errorf("%s: %w", action, errNilFunction)
}

// usable is the first thing an action asks, so that released data is told even
// if no partition would be read.
func (r *RDD[T]) usable() error {
	if r == nil {
		return errNil
	}
	if r.err != nil {
		return r.err
	}
	for _, res := range r.res {
		if l, ok := res.(interface{ Err() error }); ok {
			if err := l.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
