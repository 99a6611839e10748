package batch

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt: the bytes are not what a broker writes.
	ErrCorrupt = errors.New("corrupt record batch")
	// ErrCRC: the checksum of a batch does not agree with its bytes.
	ErrCRC = errors.New("checksum of the record batch does not match")
	// ErrOldFormat: a message set of the format v0 or v1.
	ErrOldFormat = errors.New("message format from before Kafka 0.11")
	// ErrTooLarge: a batch inflates to more than the limit, or does with its headers.
	ErrTooLarge = errors.New("record batch inflates beyond the limit")
)

// Error is a batch that cannot be decoded.
type Error struct {
	Base int64 // offset of the batch's first record, as its header says
	Last int64 // of its last one, as far as its header can be read; else Base
	Why  string
	Err  error // one of the sentinels
}

func (e *Error) Error() string {
	return fmt.Sprintf("record batch at offset %d: %v: %s", e.Base, e.Err, e.Why)
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.Err }

func (d *Decoder) fail(err error, format string, args ...any) error {
	d.err = &Error{Base: d.base, Last: max(d.base, d.last), Why: fmt.Sprintf(format, args...), Err: err}
	d.rest, d.recs, d.left = nil, nil, 0
	return d.err
}
