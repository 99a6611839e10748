package timeout

import "time"

// TrackerOptions say how a watermark follows event times.
type TrackerOptions struct {
	// Delay is how late an event may be: watermark = greatest event time − Delay.
	Delay time.Duration
	// IdleAfter is after how much time of empty fetches a partition no longer
	// holds the watermark back. 0 = never.
	IdleAfter time.Duration
	// MaxFuture is how far ahead of the clock an event may be. 0 = no bound.
	MaxFuture time.Duration
}

// Seen is what one task saw of one source partition in one epoch.
type Seen struct {
	Partition string
	Fetched   bool  // the partition was asked for records
	Records   int64 // that it gave
	Max       int64 // greatest event time within the bound, if Any
	Any       bool
	Future    int64 // events beyond the bound
}

// Tracker computes the watermark.
type Tracker struct{ o TrackerOptions }

// NewTracker checks the options.
func NewTracker(o TrackerOptions) (*Tracker, error) { return &Tracker{o: o}, nil }

// Advance takes in what an epoch saw.
func (t *Tracker) Advance(now int64, seen []Seen) (watermark int64, ok bool) { return 0, false }

// Watermark is the present watermark.
func (t *Tracker) Watermark() (watermark int64, ok bool) { return 0, false }
