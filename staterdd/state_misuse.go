package staterdd

import "errors"

//lint:file-ignore ST1005 the texts of misuses are those that Spark users know

// Misuses of a State. The texts are those that Spark users know, hence the capital letters.
var (
	// ErrStateNotSet: Get without state. Test Exists first, or use Lookup, Option or OrElse.
	ErrStateNotSet = errors.New("State is not set")
	// ErrUpdateRemoved: Update after Remove in the same call. The next record of the key may update.
	ErrUpdateRemoved = errors.New("Cannot update the state after it has been removed")
	// ErrUpdateTimingOut: Update in the final call for an idle key.
	ErrUpdateTimingOut = errors.New("Cannot update the state that is timing out")
	// ErrRemoveTimingOut: Remove in the final call for an idle key; it is removed anyway.
	ErrRemoveTimingOut = errors.New("Cannot remove the state that is timing out")
	// ErrRemoveTwice: a second Remove in one call.
	ErrRemoveTwice = errors.New("Cannot remove the state that has already been removed")
	// ErrStateClosed: a handle was kept and used when no call was running. Copy what is needed
	// out of the handle during the call.
	ErrStateClosed = errors.New("state handle used outside the call it belongs to")
)

// The slow paths stand out of line so that the methods that call them can be inlined; an illegal
// Update or Remove only sets a flag, for the same reason.

// fault records the first misuse of a call.
//
//go:noinline
func (s *State[S]) fault(err error) {
	if s.flags&stateFaulted == 0 {
		s.err = err
		s.flags |= stateFaulted
	}
}

func (s *State[S]) getError() error {
	if s.flags&stateClosed != 0 {
		return ErrStateClosed
	}
	if s.flags&stateSet == 0 {
		return ErrStateNotSet
	}
	return nil
}

// The errors of an illegal Update or Remove can be told at the end of the call: Remove marks the
// handle until then, and a handle that is timing out or closed stays so.

// updateError looks for the removal first (A4).
func (s *State[S]) updateError() error {
	switch {
	case s.flags&stateClosed != 0:
		return ErrStateClosed
	case s.flags&stateRemoved != 0:
		return ErrUpdateRemoved
	case s.flags&stateTimingOut != 0:
		return ErrUpdateTimingOut
	}
	return nil
}

// removeError looks for the timeout first (A5).
func (s *State[S]) removeError() error {
	switch {
	case s.flags&stateClosed != 0:
		return ErrStateClosed
	case s.flags&stateTimingOut != 0:
		return ErrRemoveTimingOut
	case s.flags&stateRemoved != 0:
		return ErrRemoveTwice
	}
	return nil
}

// own makes the value the call's own before the function sees it: a change in place must not
// reach the older versions, which share it.
func (s *State[S]) own() error {
	if s.flags&stateShared == 0 {
		return nil
	}
	v, err := s.clone(s.value)
	if err != nil {
		return err
	}
	s.value = v
	s.flags &^= stateShared
	return nil
}

//go:noinline
func (s *State[S]) getSlow() S {
	err := s.getError()
	if err == nil {
		err = s.own()
	}
	if err != nil {
		s.fault(err)
		var zero S
		return zero
	}
	return s.value
}

// ready makes a shared value the call's own, and records the use of a closed handle. If that
// fails there is no value: the record fails anyway.
//
//go:noinline
func (s *State[S]) ready() {
	err := error(ErrStateClosed)
	if s.flags&stateClosed == 0 {
		err = s.own()
	}
	if err != nil {
		var zero S
		s.value = zero
		s.flags &^= stateSet | stateShared
		s.fault(err)
	}
}

//go:noinline
func (s *State[S]) orElseSlow(d S) S {
	if v, ok := s.Lookup(); ok {
		return v
	}
	return d
}

// close ends the last call of a run of calls; later use is a misuse. The value goes, so that
// an idle handle pins nothing of the state.
func (s *State[S]) close() {
	var zero S
	s.value, s.flags, s.err = zero, stateClosed, nil
}

// kept returns the misuse of a closed handle, once: some function kept the handle.
func (s *State[S]) kept() error {
	err := s.Err()
	if err != nil {
		s.close()
	}
	return err
}
