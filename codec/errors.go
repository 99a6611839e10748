package codec

import (
	"errors"
	"reflect"
)

var (
	// ErrNaN is the fault of a key that holds a float that is not a number: it
	// equals nothing, not even itself. It is an error of the record.
	ErrNaN = errors.New("key holds NaN, which equals no key")
	// ErrCorrupt is the class of all decoding faults: bytes that no encoder of
	// the type has written.
	ErrCorrupt = errors.New("corrupt encoding")
	// ErrDepth is the fault of a value nested deeper than 1000 levels, such as
	// a pointer cycle.
	ErrDepth = errors.New("value nested deeper than 1000 levels")
)

// TypeError says why a type can have no codec, or cannot be a key. It is found
// when the codec is built, before any record.
type TypeError struct {
	// Type is the type that was asked for.
	Type string
	// Field is the path to the part at fault, such as "Owner.tags[]"; empty
	// when it is the type itself.
	Field string
	// Reason says what is wrong with it and what to do.
	Reason string
}

// Error names type, field, reason and what to do.
func (e *TypeError) Error() string {
	if e.Field == "" {
		return "codec: " + e.Type + ": " + e.Reason
	}
	return "codec: " + e.Type + ": field " + e.Field + ": " + e.Reason
}

func typeError(t reflect.Type, path, reason string) error {
	return &TypeError{Type: t.String(), Field: path, Reason: reason}
}
