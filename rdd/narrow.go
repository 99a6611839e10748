package rdd

import (
	"iter"

	"github.com/statemill/statemill/internal/sabotage"
)

// Map applies f to every record.
func Map[T, U any](r *RDD[T], f func(T) U) *RDD[U] {
	l := labelOf(r, "map")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		return r.push(t, p, l, func(v T) error { return emit(f(v)) })
	}).needs(f != nil)
}

// MapErr applies f to every record; its error fails the record.
func MapErr[T, U any](r *RDD[T], f func(T) (U, error)) *RDD[U] {
	l := labelOf(r, "mapErr")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		return r.push(t, p, l, func(v T) error {
			u, err := f(v)
			if err != nil {
				return t.Fail(l.operator(), nil, err)
			}
			return emit(u)
		})
	}).needs(f != nil)
}

// Filter passes on the records for which keep is true. The partitioner stays.
func Filter[T any](r *RDD[T], keep func(T) bool) *RDD[T] {
	l := labelOf(r, "filter")
	return like(r, derive(r, l, func(t *Task, p int, emit func(T) error) error {
		return r.push(t, p, l, func(v T) error {
			if keep(v) {
				return emit(v)
			}
			return nil
		})
	}).needs(keep != nil))
}

// FlatMap passes on the elements of what f returns.
func FlatMap[T, U any](r *RDD[T], f func(T) []U) *RDD[U] {
	l := labelOf(r, "flatMap")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		return r.push(t, p, l, func(v T) error { return each(f(v), emit) })
	}).needs(f != nil)
}

// FlatMapErr is FlatMap whose function can fail the record.
func FlatMapErr[T, U any](r *RDD[T], f func(T) ([]U, error)) *RDD[U] {
	l := labelOf(r, "flatMapErr")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		return r.push(t, p, l, func(v T) error {
			us, err := f(v)
			if err != nil {
				return t.Fail(l.operator(), nil, err)
			}
			return each(us, emit)
		})
	}).needs(f != nil)
}

// FlatMapSeq passes on the elements of the sequence that f returns.
func FlatMapSeq[T, U any](r *RDD[T], f func(T) iter.Seq[U]) *RDD[U] {
	l := labelOf(r, "flatMapSeq")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		return r.push(t, p, l, func(v T) error { return pushSeq(f(v), emit) })
	}).needs(f != nil)
}

// FlatMapEmit passes on what f gives to emit, without garbage. emit belongs to
// the call: it must not be kept, nor called from another goroutine. f's error fails the record.
func FlatMapEmit[T, U any](r *RDD[T], f func(v T, emit func(U)) error) *RDD[U] {
	l := labelOf(r, "flatMapEmit")
	return derive(r, l, func(t *Task, p int, emit func(U) error) error {
		var down error // what the steps below said; f cannot be told, so it is kept aside
		push := func(u U) {
			if down == nil {
				down = emit(u)
			}
		}
		return r.push(t, p, l, func(v T) error {
			down = nil
			err := f(v, push)
			if down != nil {
				return down
			}
			if err != nil {
				return t.Fail(l.operator(), nil, err)
			}
			return nil
		})
	}).needs(f != nil)
}

// MapValues applies f to every value. Keys and partitioner stay.
func MapValues[K, V, W any](r *RDD[Pair[K, V]], f func(V) W) *RDD[Pair[K, W]] {
	l := labelOf(r, "mapValues")
	return like(r, derive(r, l, func(t *Task, p int, emit func(Pair[K, W]) error) error {
		return r.push(t, p, l, func(kv Pair[K, V]) error {
			return emit(Pair[K, W]{kv.Key, f(kv.Value)})
		})
	}).needs(f != nil))
}

// like says that out lies by the partitioner of r.
func like[T, U any](r *RDD[T], out *RDD[U]) *RDD[U] {
	if r != nil {
		out.part = r.part
		if sabotage.On("input-survives-steps") {
			out.input = r.input
		}
	}
	return out
}

func each[U any](us []U, emit func(U) error) error {
	for i := range us {
		if err := emit(us[i]); err != nil {
			return err
		}
	}
	return nil
}

// pushSeq passes on the elements of a user's sequence. A sequence that goes on
// after it was told to stop panics (a loop over it can do nothing better); then
// the error that stopped it is the one to tell.
func pushSeq[U any](seq iter.Seq[U], emit func(U) error) (err error) {
	defer func() {
		if err == nil {
			return
		}
		_ = recover()
	}()
	for u := range seq {
		if err = emit(u); err != nil {
			return err
		}
	}
	return nil
}
