package vfs

import "errors"

// ErrLocked says that somebody else holds a lock; the error that wraps it is a
// [*LockedError].
var ErrLocked = errors.New("locked by another holder")

// LockedError is returned by FS.Lock for a lock that is held.
type LockedError struct {
	// Path is the name of the lock.
	Path string
	// Holder is what the holder told about itself when it took the lock. It is
	// empty or an earlier holder's for the instant between taking a lock and
	// writing the text.
	Holder string
}

// Error names the lock and its holder.
func (e *LockedError) Error() string {
	if e.Holder == "" {
		return "lock " + e.Path + ": " + ErrLocked.Error()
	}
	return "lock " + e.Path + ": " + ErrLocked.Error() + ": " + e.Holder
}

// Unwrap gives ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }
