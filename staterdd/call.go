package staterdd

import (
	"math"
	"time"
)

// Call is one call of a keyed function. Like State it is reused for all calls of a partition
// and valid only during the call.
//
// A keyed function is called for every record with its value, and without a value for a key
// whose deadline lies strictly before the batch time, after the data of the batch. A record
// leaves the key's deadline as it is unless the call sets or clears it; Remove takes it away
// with the state. A deadline call has used its deadline up: after it the state is removed
// unless the call updates it or sets a new deadline. A deadline may stand without state.
type Call[S, M any] struct {
	// Batch is the batch of the call.
	Batch Batch
	// State is the state of the key. Update and Remove are legal in deadline calls too.
	State *State[S]

	out      []M
	deadline int64 // unix nanoseconds, or noDeadline
	set      bool  // SetDeadline or ClearDeadline was called
}

// Emit appends an output; outputs keep their order.
func (c *Call[S, M]) Emit(m M) { c.out = append(c.out, m) }

// SetDeadline asks for one call without a value in the first batch whose time is later than t.
// It replaces the key's deadline. Instants before 1970 count as 1970.
func (c *Call[S, M]) SetDeadline(t time.Time) {
	c.deadline, c.set = clampDeadline(t), true
}

// ClearDeadline takes the key's deadline away.
func (c *Call[S, M]) ClearDeadline() { c.deadline, c.set = noDeadline, true }

// Deadline returns the key's deadline (UTC), which in a deadline call is the one that passed,
// and whether there is one.
func (c *Call[S, M]) Deadline() (time.Time, bool) {
	if c.deadline == noDeadline {
		return time.Time{}, false
	}
	return fromNanos(c.deadline), true
}

// A keyed operator's entry carries its deadline where other operators carry the update time, so
// that deadlines are versioned, undone and stored with the state at no cost. State without a
// deadline has noDeadline; a deadline d without state is written as ^d, which is negative.
const noDeadline = math.MaxInt64

func clampDeadline(t time.Time) int64 {
	switch {
	case t.Year() < 1970:
		return 0
	case t.Year() > 2261: // the nanoseconds end in 2262
		return noDeadline - 1
	}
	return max(t.UnixNano(), 0)
}

// packDeadline gives the entry time for a deadline with or without state.
func packDeadline(deadline int64, hasState bool) int64 {
	if hasState {
		return deadline
	}
	return ^deadline
}

// UnpackDeadline reads the entry time of a keyed operator: its deadline in unix nanoseconds, if
// there is one, and whether the entry has state.
func UnpackDeadline(t int64) (deadline int64, hasDeadline, hasState bool) {
	if t < 0 {
		return ^t, true, false
	}
	return t, t != noDeadline, true
}
