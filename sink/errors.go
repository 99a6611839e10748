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

var (
	// ErrDamaged says that a file of a sink is not what was written; the error
	// that wraps it is a *DamagedError. Trying again does not help.
	ErrDamaged = errors.New("sink: damaged")
	// ErrFormat says that a newer version wrote a file; the error that wraps it is
	// a *FormatError.
	ErrFormat = errors.New("sink: format of a newer version")
)

// DamagedError is a file of a sink that is not what was written.
type DamagedError struct {
	// Path is the file's name in its store.
	Path string
	// Reason says what is wrong.
	Reason string
}

// Error names the file and what is wrong with it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("sink: %s is damaged: %s", e.Path, e.Reason)
}

// Unwrap gives ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Permanent says that trying again does not help.
func (e *DamagedError) Permanent() bool { return true }

// FormatError is a file that a newer version wrote.
type FormatError struct {
	// Path is the file's name in its store, Format its format number.
	Path   string
	Format int
}

// Error names the file and both formats.
func (e *FormatError) Error() string {
	return fmt.Sprintf("sink: %s has format %d, this version reads up to %d: use the version that wrote it", e.Path, e.Format, EntryFormat)
}

// Unwrap gives ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

// Permanent says that trying again does not help.
func (e *FormatError) Permanent() bool { return true }

// EncodeError is a row that a sink's Encode refused.
type EncodeError struct {
	// Output and Partition say where the row is, Row is its index there, from 0.
	Output    string
	Partition int
	Row       int
	// Err is what Encode returned.
	Err error
}

// Error names the row.
func (e *EncodeError) Error() string {
	return fmt.Sprintf("output %s: partition %d: row %d: encode: %v", e.Output, e.Partition, e.Row, e.Err)
}

// Unwrap gives what Encode returned.
func (e *EncodeError) Unwrap() error { return e.Err }

// Permanent says that trying again does not help.
func (e *EncodeError) Permanent() bool { return true }

// lastingError is a failure that trying again does not help against.
type lastingError struct{ error }

// Unwrap gives the failure.
func (e *lastingError) Unwrap() error { return e.error }

// Permanent says so.
func (e *lastingError) Permanent() bool { return true }

// permanentError is an error that trying again does not help against.
type permanentError string

func (e permanentError) Error() string { return string(e) }

// Permanent says so.
func (e permanentError) Permanent() bool { return true }
