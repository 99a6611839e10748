// Package clock is the only place that reads the time of the machine.
//
// Everything else takes a [Clock]: [System] in production, [Manual] in tests,
// where time moves only when the test moves it. All times are in UTC and carry
// no monotonic part, so they can be compared, stored and printed alike on every
// machine. The package starts no goroutine of its own.
package clock

import "time"

// A Clock tells the time and makes timers. Its methods may be called from any
// goroutine.
type Clock interface {
	// Now returns the present time in UTC, without a monotonic part.
	Now() time.Time
	// NewTimer returns a timer that fires once, d after now; at once if d is
	// not positive. The caller stops it when it is no longer needed.
	NewTimer(d time.Duration) Timer
}

// A Timer fires once.
type Timer interface {
	// C delivers the time at which the timer fired, once.
	C() <-chan time.Time
	// Stop prevents the timer from firing. It reports whether it did: false
	// means that the timer had fired or was stopped before.
	Stop() bool
}

// System returns the clock of the machine.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now().UTC().Round(0) }

func (system) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.t.C }

func (t systemTimer) Stop() bool { return t.t.Stop() }
