// Package rates estimates how many records per second a job can take, from what
// its last batches took: the backpressure of a run.
//
// [PID] is the one estimator: Spark's formula (semantics I2), number for number.
// It is plain arithmetic: it reads no clock, keeps no lock and starts nothing;
// one goroutine owns it. What a rate of records per second means for the plan of
// a batch is said by [Budget], which never makes "no limit" out of a small rate.
package rates

import (
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
)

// Defaults of a PID's parameters.
const (
	DefaultProportional = 1.0
	DefaultIntegral     = 0.2
	DefaultDerived      = 0.0
	DefaultMinRate      = 100.0
)

// Config are the parameters of a PID. Take [Defaults] and change what is needed:
// zero is a meaning of its own here.
type Config struct {
	// Interval is the batch interval, > 0.
	Interval time.Duration
	// Proportional weighs the present error, that is the last rate less what the
	// last batch really processed; ≥ 0.
	Proportional float64
	// Integral weighs the records that wait already, by the scheduling delay; ≥ 0.
	Integral float64
	// Derived weighs the change of the error; ≥ 0. It smooths, but follows noise.
	Derived float64
	// MinRate is the least rate ever given, in records per second; > 0.
	MinRate float64
}

// Defaults are the parameters that Spark starts with.
func Defaults(interval time.Duration) Config {
	return Config{
		Interval: interval, Proportional: DefaultProportional, Integral: DefaultIntegral,
		Derived: DefaultDerived, MinRate: DefaultMinRate,
	}
}

// Validate says what is wrong with the parameters.
func (c Config) Validate() error {
	if c.Interval <= 0 {
		return fmt.Errorf("rate estimator: the batch interval is %v: it must be positive", c.Interval)
	}
	for _, p := range []struct {
		name  string
		value float64
	}{{"proportional", c.Proportional}, {"integral", c.Integral}, {"derived", c.Derived}} {
		if !(p.value >= 0) || math.IsInf(p.value, 1) {
			return fmt.Errorf("rate estimator: the %s factor is %v: it must be a number of at least 0", p.name, p.value)
		}
	}
	if !(c.MinRate > 0) || math.IsInf(c.MinRate, 1) {
		return fmt.Errorf("rate estimator: the least rate is %v records/s: it must be positive", c.MinRate)
	}
	return nil
}

// PID is the estimator of one input.
type PID struct {
	cfg   Config
	began bool
	time  time.Time
	rate  float64
	err   float64
}

// New makes an estimator; the error is that of Config.Validate.
func New(c Config) (*PID, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &PID{cfg: c}, nil
}

// Estimate takes in a batch that has ended: when, how many records, how long it
// was processed and how long it had waited before. It gives the new rate in
// records per second, at least MinRate.
//
// ok is false, and nothing is taken in, if the batch says nothing: the end is not
// after the last one, or there were no records or no processing time. It is false
// too for the first batch that says something, which only sets the start.
func (p *PID) Estimate(end time.Time, records int64, processing, scheduling time.Duration) (rate float64, ok bool) {
	if p.began && !end.After(p.time) || records <= 0 || processing <= 0 {
		return 0, false
	}
	processed := float64(records) / processing.Seconds()
	if !p.began {
		p.began, p.time, p.rate, p.err = true, end, processed, 0
		return 0, false
	}
	since := end.Sub(p.time).Seconds()
	fault := p.rate - processed
	// Records that wait because of the delay, per interval: the sum of all errors
	// so far, seen from the other side.
	waiting := scheduling.Seconds() * processed / p.cfg.Interval.Seconds()
	change := (fault - p.err) / since
	rate = p.rate - p.cfg.Proportional*fault - p.cfg.Integral*waiting - p.cfg.Derived*change
	if !(rate > p.cfg.MinRate) { // also for what is no number
		rate = p.cfg.MinRate
	}
	p.time, p.rate, p.err = end, rate, fault
	return rate, true
}

// Records is rate × interval: how many records a batch of the given interval may have at
// a rate in records per second, before it is rounded down. A rate that was made by
// dividing a number of records by the interval gives that number again and not the one
// below it: what the division and this multiplication round off is made up for.
func Records(rate float64, interval time.Duration) float64 {
	const ulp = 1.0 / (1 << 52)
	if sabotage.On("rate-just-below") {
		return rate * interval.Seconds()
	}
	return rate * interval.Seconds() * (1 + ulp)
}

// Budget is how many records a batch of the given interval may have at a rate in
// records per second. It is at least 1, so that a low rate never stands still and
// never becomes "no limit" (report 36).
func Budget(rate float64, interval time.Duration) int64 {
	n := Records(rate, interval)
	switch {
	case !(n >= 1):
		return 1
	case n >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(n)
}
