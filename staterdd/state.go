package staterdd

import (
	"fmt"

	"github.com/statemill/statemill/rdd"
)

// The facts of a handle (rule A1) live in one word, so that every method tests all the
// conditions it cares about with one mask and its fast path stays small enough to inline.
const (
	stateSet       uint16 = 1 << iota // there is a value
	stateUpdated                      // Update was called in this call and not taken back by Remove
	stateRemoved                      // Remove was called in this call
	stateTimingOut                    // the final call for an idle key
	stateShared                       // value belongs to an older version: copy before it is looked at
	stateClosed                       // no call is running
	stateFaulted                      // there was a misuse in this call; the first is told by:
	stateBadUpdate                    // an illegal Update
	stateBadRemove                    // an illegal Remove; neither: see err
)

// State is the handle through which a function sees and changes the state of one key.
//
// ONE handle is reused for all calls of a partition: it is valid only during the call that
// received it and only on the goroutine of that call. A handle kept longer shows another
// key's state while a later call runs; between calls and after the batch it is closed and
// every method reports that (Try forms by ErrStateClosed, the others by failing the next
// batch of the partition).
//
// An illegal Get, Update or Remove changes nothing, is recorded and fails the record when the
// function returns; the Try forms return the error and record nothing.
//
// If S holds references (maps, slices, pointers …) the value a call sees is its own private
// copy, made when the call first looks at it, unless the Spec is Immutable. Changes in place
// reach the state only by Update. Once a call of a batch has updated the key, the later calls of
// that batch share the value that it gave: they see, and make, changes in place without a copy.
type State[S any] struct {
	value S // zero without stateSet
	flags uint16
	err   error
	clone func(S) (S, error) // set iff values must be copied before they are looked at
}

// NewState returns an open handle outside any operator, holding the given state or none: for
// tests of user functions.
func NewState[S any](state rdd.Option[S]) *State[S] {
	s := &State[S]{}
	v, ok := state.Get()
	s.wrap(v, ok)
	return s
}

// NewTimingOutState returns an open handle as the final call for an idle key sees it.
func NewTimingOutState[S any](state S) *State[S] {
	s := &State[S]{}
	s.wrapTimingOut(state)
	return s
}

// wrap begins a call: everything of the call before is forgotten (A7).
func (s *State[S]) wrap(v S, ok bool) {
	s.value, s.flags = v, 0
	if ok {
		s.flags = stateSet
	}
}

// wrapTimingOut begins the final call for an idle key (A8).
func (s *State[S]) wrapTimingOut(v S) {
	s.value, s.flags = v, stateSet|stateTimingOut
}

// Exists reports whether the key has state now: false after Remove, true after Update.
func (s *State[S]) Exists() bool { return s.flags&stateSet != 0 }

// IsTimingOut reports whether this is the final call for a key that was idle longer than the
// timeout. In that call the state can be read but not updated or removed; it is removed after
// the call.
func (s *State[S]) IsTimingOut() bool { return s.flags&stateTimingOut != 0 }

// Get returns the state. Without state it returns the zero value and fails the record with
// ErrStateNotSet.
func (s *State[S]) Get() S {
	if s.flags&(stateSet|stateShared|stateClosed) == stateSet {
		return s.value
	}
	return s.getSlow()
}

// Lookup returns the state and whether there is one.
func (s *State[S]) Lookup() (S, bool) {
	if s.flags&(stateShared|stateClosed) != 0 {
		s.ready()
	}
	return s.value, s.flags&stateSet != 0
}

// Option returns the state as an option.
func (s *State[S]) Option() rdd.Option[S] {
	if s.flags&(stateShared|stateClosed) != 0 {
		s.ready()
	}
	if s.flags&stateSet == 0 {
		return rdd.Option[S]{}
	}
	return rdd.Some(s.value)
}

// OrElse returns the state, or d when there is none.
func (s *State[S]) OrElse(d S) S {
	if s.flags&(stateSet|stateShared|stateClosed) == stateSet {
		return s.value
	}
	return s.orElseSlow(d)
}

// Update sets the state; of several calls the last wins. It is illegal after Remove in the
// same call and while timing out.
func (s *State[S]) Update(v S) {
	if s.flags&(stateRemoved|stateTimingOut|stateClosed) == 0 {
		s.value = v
		s.flags = s.flags&^stateShared | stateSet | stateUpdated
	} else if s.flags&stateFaulted == 0 {
		s.flags |= stateFaulted | stateBadUpdate
	}
}

// Remove removes the state, an update made in the same call included; it is legal for a key
// without state. It is illegal while timing out and a second time in the same call.
func (s *State[S]) Remove() {
	if s.flags&(stateTimingOut|stateRemoved|stateClosed) == 0 {
		var zero S
		s.value = zero
		s.flags = s.flags&^(stateSet|stateUpdated|stateShared) | stateRemoved
	} else if s.flags&stateFaulted == 0 {
		s.flags |= stateFaulted | stateBadRemove
	}
}

// TryGet is Get that returns ErrStateNotSet instead of failing the record.
func (s *State[S]) TryGet() (S, error) {
	if s.flags&(stateSet|stateClosed) != stateSet {
		var zero S
		return zero, s.getError()
	}
	if err := s.own(); err != nil {
		var zero S
		return zero, err
	}
	return s.value, nil
}

// TryUpdate is Update that returns ErrUpdateRemoved or ErrUpdateTimingOut instead of failing
// the record.
func (s *State[S]) TryUpdate(v S) error {
	if err := s.updateError(); err != nil {
		return err
	}
	s.Update(v)
	return nil
}

// TryRemove is Remove that returns ErrRemoveTimingOut or ErrRemoveTwice instead of failing the
// record.
func (s *State[S]) TryRemove() error {
	if err := s.removeError(); err != nil {
		return err
	}
	s.Remove()
	return nil
}

// Err returns the first misuse of the handle in this call, or nil: what will fail the record.
func (s *State[S]) Err() error {
	switch {
	case s.flags&stateFaulted == 0:
		return nil
	case s.flags&stateBadUpdate != 0:
		return s.updateError()
	case s.flags&stateBadRemove != 0:
		return s.removeError()
	}
	return s.err
}

// String returns the value's string, or "<state not set>".
func (s *State[S]) String() string {
	if s.flags&(stateSet|stateClosed) != stateSet {
		return "<state not set>"
	}
	return fmt.Sprint(s.value)
}
