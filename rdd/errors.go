package rdd

import (
	"errors"
	"fmt"
	"runtime/debug"
)

var (
	// ErrReleased is returned when data is used after its last holder let it go.
	// It is final: Retain the dataset before the function it was given to returns.
	ErrReleased = errors.New("released: a dataset is valid until the function it was given to returns; Retain it to keep it longer")
	// ErrPartitions is returned when a number of partitions is less than 1.
	ErrPartitions = errors.New("the number of partitions must be at least 1")
	// ErrNoPartitioner is returned when a partitioner is missing.
	ErrNoPartitioner = errors.New("a partitioner is needed")

	errNil         = errors.New("the dataset is nil")
	errNilFunction = errors.New("the function is nil")

	// errStop ends the pushing of records early; it never leaves the package's actions.
	errStop = errors.New("rdd: stop")
)

// RecordError is the failure of one record in user code: an error or a panic
// (Err is then a *PanicError). In guarded mode it makes the record skipped,
// otherwise it ends the task.
type RecordError struct {
	// Operator is the operator at work, or what the task is for where that is none: an
	// action or a stage. Key is the record's key (nil if it has none).
	Operator string
	Key      any
	// Stream, Partition and Offset are the origin of the record.
	Stream    string
	Partition string
	Offset    int64
	// Err is what the user's code returned, or the *PanicError.
	Err error
	// Stack is where a panic was raised; nil for returned errors.
	Stack []byte
}

// Error names operator, key, origin and cause, and of a panic the line. A call without a record, such as
// that of a key that times out, has no origin.
func (e *RecordError) Error() string {
	key := ""
	if e.Key != nil {
		key = fmt.Sprintf(" key %v:", e.Key)
	}
	if e.Stream == "" {
		return fmt.Sprintf("%s:%s %v%s", e.Operator, key, e.Err, e.where())
	}
	return fmt.Sprintf("%s:%s record at %s/%s offset %d: %v%s", e.Operator, key, e.Stream, e.Partition, e.Offset, e.Err, e.where())
}

// where is the line of a panic, to be added to a text. The text of the panic itself does
// not have it: it is part of dead letters, which must not change with the program's lines.
func (e *RecordError) where() string {
	var p *PanicError
	if !errors.As(e.Err, &p) {
		return ""
	}
	if place := p.Place(); place != "" {
		return " (at " + place + ")"
	}
	return ""
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// PanicError is a panic that was recovered at the edge of a task.
type PanicError struct {
	Value  any
	Stack  []byte
	Origin Origin
}

// Error gives the panic's value; where it was raised is not part of it, see Place and Stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Fail gives the error that ends the record being worked on: a *RecordError with
// the cursor's origin. Cancellation, the end of early-ending actions and errors that are
// a *RecordError already go through as they are. key may be nil.
func (t *Task) Fail(operator string, key any, err error) error {
	if err == nil || err == errStop || t.Canceled(err) {
		return err
	}
	var re *RecordError
	if errors.As(err, &re) {
		return err
	}
	return &RecordError{
		Operator: operator, Key: key, Err: err,
		Stream: t.Origin.Stream, Partition: t.Origin.Partition, Offset: t.Origin.Offset,
	}
}

// panicked turns a recovered value into the record's error. Code that panics
// with the end of its context was cancelled.
func (t *Task) panicked(v any) error {
	if err, ok := v.(error); ok && t.Canceled(err) {
		return err
	}
	pe := &PanicError{Value: v, Stack: debug.Stack(), Origin: t.Origin}
	re := &RecordError{
		Operator: t.at(), Err: pe, Stack: pe.Stack,
		Stream: t.Origin.Stream, Partition: t.Origin.Partition, Offset: t.Origin.Offset,
	}
	if re.Operator == "" {
		re.Operator = t.Name
	}
	re.Key = t.key()
	return re
}

// key asks for the key at work; it may be asked in any state of the operator, so
// a panic only costs the key.
func (t *Task) key() (key any) {
	if t.Key == nil {
		return nil
	}
	defer func() { _ = recover() }()
	return t.Key()
}

// Protect runs f and turns a panic into a *RecordError that wraps a *PanicError
// with stack and origin. It is the one recover of a task; executors need not call
// it for stages and actions of this package.
func Protect(t *Task, f func(*Task) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = t.panicked(v)
		}
	}()
	return f(t)
}
