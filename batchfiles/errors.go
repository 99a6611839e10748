package batchfiles

import (
	"errors"
	"fmt"

	"github.com/statemill/statemill/vfs"
)

var (
	// ErrDiffers says that a batch is there already, in whole or in part, with other
	// bytes; the error that wraps it is a *DiffersError.
	ErrDiffers = errors.New("batchfiles: the batch was saved with other content")
	// ErrUnfinished says that a folder has no _SUCCESS, so that what is in it is not to
	// be trusted.
	ErrUnfinished = errors.New("batchfiles: the batch is not complete")
	// ErrDamaged says that a file is not what was written; the error that wraps it is a
	// *DamagedError.
	ErrDamaged = errors.New("batchfiles: damaged")
	// ErrFormat says that a newer version wrote a batch.
	ErrFormat = errors.New("batchfiles: format of a newer version")
)

// DiffersError is a file that is there and is not what a save would write. Nothing was
// changed.
type DiffersError struct {
	// Path is the file's name in its store.
	Path string
	// Reason says what is different.
	Reason string
}

// Error names the file, what is different, and what to do.
func (e *DiffersError) Error() string {
	return fmt.Sprintf("save %s: it is there with other content (%s): the batch came out another way than before, or something else "+
		"saves under this name: go on with the old program, or move the folder away and save again", e.Path, e.Reason)
}

// Unwrap gives ErrDiffers.
func (e *DiffersError) Unwrap() error { return ErrDiffers }

// Permanent says that trying again does not help.
func (e *DiffersError) Permanent() bool { return true }

// DamagedError is a file of a batch that is not what was written.
type DamagedError struct {
	// Path is the file's name in its store.
	Path string
	// Reason says what is wrong.
	Reason string
}

// Error names the file and what is wrong with it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("batchfiles: %s is damaged: %s", e.Path, e.Reason)
}

// Unwrap gives ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Permanent says that trying again does not help.
func (e *DamagedError) Permanent() bool { return true }

// FileError is a call to the store that failed. The same save or read may succeed
// later.
type FileError struct {
	// Path is the file's name in its store, Doing what was tried.
	Path  string
	Doing string
	// Err is the cause.
	Err error
}

// Error names what was tried, the file and the cause.
func (e *FileError) Error() string { return fmt.Sprintf("%s %s: %v", e.Doing, e.Path, e.Err) }

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Permanent says whether trying again cannot help.
func (e *FileError) Permanent() bool { return errors.Is(e.Err, vfs.ErrNoLinks) }
