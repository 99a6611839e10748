package sink

import (
	"errors"
	"fmt"
)

var (
	// ErrNotOwner says that a run of a greater term has been at the unit.
	ErrNotOwner = errors.New("sink: a newer run writes here")
	// ErrFenced says that the run's hold on the unit is gone, by a newer run or
	// by a timeout.
	ErrFenced = errors.New("sink: fenced, or a transaction took too long")
	// ErrUnknown says that nobody can tell whether a commit succeeded; only the
	// memory can, after another fence.
	ErrUnknown = errors.New("sink: outcome of the commit is unknown")
	// ErrEpoch says that the unit has the epoch, or a later one, already; the
	// error that wraps it is an *EpochError.
	ErrEpoch = errors.New("sink: the epoch is written already")
	// ErrMisuse says that calls came in an order that the contract does not allow.
	ErrMisuse = errors.New("sink: call out of order")
)

// EpochError is a commit that would not move the memory forward.
type EpochError struct {
	// Unit is the unit's name.
	Unit string
	// Epoch is the one to be written, Have the one that the unit has.
	Epoch, Have uint64
}

// Error names unit and epochs.
func (e *EpochError) Error() string {
	return fmt.Sprintf("sink %s: epoch %d cannot be written: the sink has epoch %d already", e.Unit, e.Epoch, e.Have)
}

// Unwrap gives ErrEpoch.
func (e *EpochError) Unwrap() error { return ErrEpoch }

// NotOwnerError is a unit that a newer run has taken.
type NotOwnerError struct {
	// Unit is the unit's name.
	Unit string
	// Term is that of this run, Newer the one that was found.
	Term, Newer uint64
}

// Error names unit and terms.
func (e *NotOwnerError) Error() string {
	return fmt.Sprintf("sink %s: run of term %d found term %d: a newer run writes here, this one must end", e.Unit, e.Term, e.Newer)
}

// Unwrap gives ErrNotOwner.
func (e *NotOwnerError) Unwrap() error { return ErrNotOwner }
