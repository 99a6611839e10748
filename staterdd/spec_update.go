package staterdd

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/rdd"
)

// ErrUpdate: a setting that only update functions have, or a nil function in one.
var ErrUpdate = errors.New("bad update setting")

// Update makes a Spec from an update function, which is called once in every batch for every
// key that has state or data: with the batch's values of the key in order (none for a key
// without data; the slice may be kept and appended to) and the state before. It returns the
// state after, or none to remove the key. First come the keys with data, in first-seen order,
// then the others in the order of their canonical bytes.
//
// The operator gives every live key with its state after the batch, in the order of their
// canonical bytes. The states are shared with the operator: they must not be changed in place.
//
// A state that comes back equal is not written again (see Same), so it costs nothing on disk and
// keeps its update time: that of the last change. Update functions have no timeout.
func Update[K comparable, V, S any](f func(values []V, state rdd.Option[S]) rdd.Option[S]) Spec[K, V, S, rdd.Pair[K, S]] {
	if f == nil {
		return update[K, V, S](nil)
	}
	return update(func(_ Batch, _ K, values []V, state rdd.Option[S]) (rdd.Option[S], error) {
		return f(values, state), nil
	})
}

// UpdateTime is Update for functions that look at the batch time (UTC) and the key.
func UpdateTime[K comparable, V, S any](f func(batch time.Time, key K, values []V, state rdd.Option[S]) rdd.Option[S]) Spec[K, V, S, rdd.Pair[K, S]] {
	if f == nil {
		return update[K, V, S](nil)
	}
	return update(func(b Batch, k K, values []V, state rdd.Option[S]) (rdd.Option[S], error) {
		return f(b.Time, k, values, state), nil
	})
}

// UpdateErr is UpdateTime for functions that can fail. An error fails the call: where records
// are skipped, all values of the key in the batch are, and its state stays as it was.
func UpdateErr[K comparable, V, S any](f func(batch time.Time, key K, values []V, state rdd.Option[S]) (rdd.Option[S], error)) Spec[K, V, S, rdd.Pair[K, S]] {
	if f == nil {
		return update[K, V, S](nil)
	}
	return update(func(b Batch, k K, values []V, state rdd.Option[S]) (rdd.Option[S], error) {
		return f(b.Time, k, values, state)
	})
}

func update[K comparable, V, S any](f func(Batch, K, []V, rdd.Option[S]) (rdd.Option[S], error)) Spec[K, V, S, rdd.Pair[K, S]] {
	return Spec[K, V, S, rdd.Pair[K, S]]{fn: function[K, V, S, rdd.Pair[K, S]]{
		kind: kindUpdate, update: f,
		pair: func(k K, s S) rdd.Pair[K, S] { return rdd.Pair[K, S]{Key: k, Value: s} },
	}}
}

// OnlyWithData has an update function called for keys that have data, and for no others, so that
// a batch costs in proportion to its data. What the operator gives is the same: every live key.
func (s Spec[K, V, S, M]) OnlyWithData() Spec[K, V, S, M] {
	s.touched = true
	return s
}

// Same says when a state that an update function returns counts as unchanged. Default: types
// without references compare by ==, others by what they are stored as.
func (s Spec[K, V, S, M]) Same(same func(before, after S) bool) Spec[K, V, S, M] {
	s.same, s.sameGiven = same, true
	return s
}

func (s Spec[K, V, S, M]) checkUpdate() error {
	switch {
	case s.sameGiven && s.same == nil:
		return fmt.Errorf("%w: the function given to Same is nil", ErrUpdate)
	case s.fn.kind == kindUpdate:
		return nil
	case s.touched:
		return fmt.Errorf("%w: OnlyWithData is for update functions", ErrUpdate)
	case s.sameGiven:
		return fmt.Errorf("%w: Same is for update functions", ErrUpdate)
	}
	return nil
}

// equality says whether two states are equal, in one of the ways that Same documents. Of a type
// that can neither be compared nor stored no two are.
type equality[S any] struct {
	same func(a, b S) bool
	code codec.Codec[S]
}

func (s Spec[K, V, S, M]) equality() (e equality[S]) {
	switch {
	case s.fn.kind != kindUpdate:
	case s.same != nil:
		e.same = s.same
	case !codec.HasRefs[S]() && reflect.TypeFor[S]().Comparable():
		e.same = func(a, b S) bool { return any(a) == any(b) }
	default:
		if c, _, err := s.Stored(); err == nil {
			e.code = c
		}
	}
	return e
}

// compare uses a and b as scratch.
func (e *equality[S]) compare(before, after S, a, b *[]byte) bool {
	if e.same != nil {
		return e.same(before, after)
	}
	if e.code == nil {
		return false
	}
	var errA, errB error
	*a, errA = e.code.Append((*a)[:0], before)
	*b, errB = e.code.Append((*b)[:0], after)
	return errA == nil && errB == nil && string(*a) == string(*b)
}
