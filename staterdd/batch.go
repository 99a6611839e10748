package staterdd

import "time"

// Batch tells a function which batch its call belongs to. It is the same for every record of
// the batch and for every rerun of it.
type Batch struct {
	// Epoch is the number of the batch: 1, 2, 3 …
	Epoch uint64
	// Time is the batch time, the end of the interval on its grid, in UTC.
	Time time.Time
	// Watermark is the event-time watermark in force, or the zero time when there is none.
	Watermark time.Time
}

// nanos returns t in unix nanoseconds, the unit of the core.
func nanos(t time.Time) int64 { return t.UnixNano() }

// fromNanos returns unix nanoseconds as a UTC time.
func fromNanos(t int64) time.Time { return time.Unix(0, t).UTC() }
