package store

import (
	"errors"
	"fmt"

	"github.com/statemill/statemill/checkpoint/statefile"
)

var (
	// ErrNotCommitted is returned for a snapshot of a version that no commit
	// names.
	ErrNotCommitted = errors.New("the version is not committed")
	// ErrTaken is returned when the name of a file is taken by other content: a
	// run has written the same epoch twice under one term, or the file was
	// damaged right after it was written.
	ErrTaken = errors.New("the name is taken by other content; start again under the next term")
	// ErrNotLoadable is the class of [*LoadError].
	ErrNotLoadable = errors.New("the version cannot be loaded")
)

// FileError says what failed with the files of a partition.
type FileError struct {
	Operator  string
	Partition int
	Version   uint64
	Op        string // "write" or "snapshot"
	Err       error
}

// Error names operator, partition, version and cause.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s version %d of operator %s partition %d: %v", e.Op, e.Version, e.Operator, e.Partition, e.Err)
}

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }

func (o *Operator[K, S]) fault(part int, version uint64, op string, err error) error {
	if err == nil {
		return nil
	}
	return &FileError{Operator: o.c.Operator.Name, Partition: part, Version: version, Op: op, Err: err}
}

// LoadError says that a version cannot be loaded: a file that it needs is
// missing or damaged, and no snapshot stands above it; or the program cannot read
// a state of it (statefile.ErrDecode).
type LoadError struct {
	Operator  string
	Partition int
	Version   uint64 // that was asked for
	File      string // the file at fault, below the root; "" if none is known
	At        uint64 // the version that the file makes
	Tried     []Bad  // snapshots that were tried before, newest first
	Err       error
}

// Bad is a snapshot that could not be used.
type Bad struct {
	File    string // below the root
	Version uint64
	Err     error
}

// Error names operator, partition, version, the file and the snapshots tried.
func (e *LoadError) Error() string {
	s := fmt.Sprintf("load version %d of operator %s partition %d: ", e.Version, e.Operator, e.Partition)
	if e.File != "" {
		s += fmt.Sprintf("%s, which makes version %d: ", e.File, e.At)
	}
	s += e.Err.Error()
	for _, b := range e.Tried {
		s += fmt.Sprintf("; snapshot %s is of no use either: %v", b.File, b.Err)
	}
	if errors.Is(e.Err, statefile.ErrDecode) {
		return s // the files are whole
	}
	return s + "; restore the file from a copy, or go back to a version before it by `statemill fork -version`"
}

// Is makes every LoadError an ErrNotLoadable.
func (e *LoadError) Is(target error) bool { return target == ErrNotLoadable }

// Unwrap gives the cause.
func (e *LoadError) Unwrap() error { return e.Err }
