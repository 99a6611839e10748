package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
)

var (
	// ErrDone is returned by writes and Commit of a handle that was committed or
	// aborted, or whose commit failed.
	ErrDone = errors.New("cannot put, remove or commit after the handle was committed or aborted: open another one")
	// ErrNil is returned for a state that is a nil pointer, map or slice.
	ErrNil = errors.New("cannot put a nil state: remove the key, or put an empty one")
	// ErrExists is returned by the commit of a version that exists: nothing is
	// ever replaced.
	ErrExists = errors.New("the version exists already: nothing is replaced; open a handle on the newest version")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the store is closed")
)

// VersionError says that a version cannot be opened: it is none, does not exist
// yet, or is no longer kept.
type VersionError struct {
	Store   string
	Version uint64
	// Newest is the newest version, Oldest the oldest that is kept.
	Newest, Oldest uint64
}

// Error names the store and the numbers.
func (e *VersionError) Error() string {
	switch {
	case e.Version > math.MaxInt64:
		return fmt.Sprintf("store %s: unexpected version %d: it must not be negative", e.Store, int64(e.Version))
	case e.Version > e.Newest:
		return fmt.Sprintf("store %s: version %d does not exist: there is no commits/%d, the newest version is %d", e.Store, e.Version, e.Version, e.Newest)
	}
	return fmt.Sprintf("store %s: version %d is no longer kept: the oldest is %d", e.Store, e.Version, e.Oldest)
}

// Is makes it an fs.ErrNotExist, unless the number is none.
func (e *VersionError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Version <= math.MaxInt64
}

// CommitError says that a version was not committed, or that it is not known
// whether it was: Newest tells.
type CommitError struct {
	Store   string
	Version uint64
	Err     error
}

// Error names store, version and cause.
func (e *CommitError) Error() string {
	return fmt.Sprintf("store %s: cannot commit version %d: %v", e.Store, e.Version, e.Err)
}

// Unwrap gives the cause.
func (e *CommitError) Unwrap() error { return e.Err }
