package statefile

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is the class of [*CorruptError].
	ErrCorrupt = errors.New("damaged state file")
	// ErrFormat is the class of [*FormatError].
	ErrFormat = errors.New("state file of a newer format")
	// ErrDecode is the class of [*DecodeError].
	ErrDecode = errors.New("a stored state that the program cannot read")
	// ErrMismatch is the class of [*MismatchError].
	ErrMismatch = errors.New("another state file than the one asked for")
	// ErrTooLarge is returned for a key and state that together take more than
	// a block can hold, which is 1 GiB.
	ErrTooLarge = errors.New("a key and its state take more than 1 GiB in a state file")
)

// CorruptError tells that a file's bytes are not what was written. Operator,
// partition and version are those that were asked for, else those of the
// file's own head, else empty.
type CorruptError struct {
	Path      string
	Operator  string
	Partition int
	Version   int64
	Offset    int64  // where in the file the fault was found; of a block: its frame
	Reason    string // what is wrong
	Err       error  // the cause, if the fault was found by another package; else nil
}

// Error names file, operator, partition, version, offset and reason.
func (e *CorruptError) Error() string {
	s := fmt.Sprintf("state file %s (operator %q, partition %d, version %d) is damaged at byte %d: %s",
		e.Path, e.Operator, e.Partition, e.Version, e.Offset, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes every CorruptError an [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// FormatError tells that a file, whose head is whole, has a format that this
// program does not know.
type FormatError struct {
	Path   string
	Format int64 // of the file
	Newest int64 // that this program reads
}

// Error names both numbers.
func (e *FormatError) Error() string {
	return fmt.Sprintf("state file %s has format %d, this program reads formats 1 to %d: use a newer release", e.Path, e.Format, e.Newest)
}

// Is makes every FormatError an [ErrFormat].
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// MismatchError tells that a file is whole, but is not the one that was asked
// for: another kind, operator, partition, version or codec, or another chain
// hash or checksum than the committed one.
type MismatchError struct {
	Path      string
	Operator  string // asked for
	Partition int
	Version   int64
	What      string // what differs
	Got, Want string
}

// Error names the file, what differs and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("state file %s is not that of operator %q, partition %d, version %d: its %s is %s, not %s",
		e.Path, e.Operator, e.Partition, e.Version, e.What, e.Got, e.Want)
}

// Is makes every MismatchError an [ErrMismatch].
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// DecodeError tells that a migration or a codec of the program fails on a state
// whose bytes are whole. No copy of the file and no other file with the same state
// helps, and neither does trying again.
type DecodeError struct {
	Path      string
	Operator  string
	Partition int
	Version   int64
	Key       string // as JSON, or its bytes in hexadecimal
	Err       error  // what the migration or codec returned, or its panic with the stack
}

// Error names operator, partition, key, file, cause and the next step.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("operator %q, partition %d: the state of key %s cannot be read by the program (state file %s, version %d, is whole): %v: correct the migration or the codec",
		e.Operator, e.Partition, e.Key, e.Path, e.Version, e.Err)
}

// Is makes every DecodeError an [ErrDecode].
func (e *DecodeError) Is(target error) bool { return target == ErrDecode }

// Unwrap gives the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// Permanent says that trying again is of no use.
func (e *DecodeError) Permanent() bool { return true }
