package source

import (
	"errors"
	"fmt"
)

var (
	// ErrNotOpen: the source was used before Open or after Close.
	ErrNotOpen = errors.New("source is not open")
	// ErrOpened: the source was opened before. A source made from a reader or a
	// connection serves one run.
	ErrOpened = errors.New("source was opened before: make a new one for each run")
	// ErrNotReplayable: the records were read from something that cannot be read
	// twice, by another run. They are lost; to go on without them, start from a
	// new checkpoint, or keep the input in a file or in Kafka.
	ErrNotReplayable = errors.New("records cannot be read again")
)

// RangeError is a range that the source cannot deliver: it never planned it, or
// what it names is no longer there.
type RangeError struct {
	Source string // which source
	Range  Range
	Why    string
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: cannot read partition %q, offsets [%d, %d): %s", e.Source, e.Range.Partition, e.Range.From, e.Range.Until, e.Why)
}

// Permanent says that reading it again is of no use.
func (e *RangeError) Permanent() bool { return true }

// ChangedError is an input that is no longer what the plan was made for.
type ChangedError struct {
	Source string
	What   string // what changed, from what to what, and the next step
}

func (e *ChangedError) Error() string { return fmt.Sprintf("%s: %s", e.Source, e.What) }

// Permanent says that planning or reading again is of no use.
func (e *ChangedError) Permanent() bool { return true }

// LineTooLongError is a line beyond the source's MaxLine.
type LineTooLongError struct {
	Source string // file or reader
	Offset int64  // where the line begins: a byte of the file, or a line number
	Max    int    // the limit in bytes
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("%s: the line at offset %d is longer than %d bytes: raise MaxLine or mend the input", e.Source, e.Offset, e.Max)
}

// Permanent says that reading the line again is of no use.
func (e *LineTooLongError) Permanent() bool { return true }
