package dstream

import (
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/rates"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// DefaultInitialRate is what backpressure allows each source, in records per
// second, until it has seen enough to estimate (WithInitialRate).
const DefaultInitialRate = 1000.0

// BackpressureOption sets a parameter of WithBackpressure.
type BackpressureOption func(*rates.Config)

// PIDFactors weigh what the new rate is made of: the present error (the last rate
// less what the last batch really processed per second), the records that wait
// already (by the scheduling delay), and the change of the error. Each is at least
// 0. Default: 1, 0.2 and 0.
func PIDFactors(proportional, integral, derived float64) BackpressureOption {
	return func(c *rates.Config) { c.Proportional, c.Integral, c.Derived = proportional, integral, derived }
}

// MinRate is the least rate that backpressure sets, in records per second and
// source; more than 0. Default 100. Whatever it is, a batch may take one record.
func MinRate(recordsPerSecond float64) BackpressureOption {
	return func(c *rates.Config) { c.MinRate = recordsPerSecond }
}

// WithBackpressure makes the run take from each source what it can process: after
// every committed batch with records, a PID estimator (Spark's formula) sets the
// source's rate anew from the batch's records, processing delay and scheduling
// delay. A batch then takes at most rate × interval records of the source, shared
// by lag; the caps of WithMaxRecordsPerBatch and WithMaxRatePerPartition hold
// beside it. Until the first estimate, which is that of the second batch with
// records, WithInitialRate holds. SourceProgress.Rate has the rate in force.
//
// A rate is no part of the checkpoint: a new run begins with the initial rate.
// Default: no backpressure.
func WithBackpressure(opts ...BackpressureOption) ContextOption {
	return option("WithBackpressure", func(c *config) error {
		cfg := rates.Defaults(c.interval)
		for i, o := range opts {
			if o == nil {
				return fmt.Errorf("option %d is nil", i)
			}
			o(&cfg)
		}
		c.backpressure = &cfg
		if c.interval <= 0 {
			return nil // reported already
		}
		return cfg.Validate()
	})
}

// WithInitialRate is the rate of each source, in records per second, until
// WithBackpressure has estimated one; without that option it is a fault. More than
// 0; math.Inf(1) says that the first batches may take everything. Default
// DefaultInitialRate.
func WithInitialRate(recordsPerSecond float64) ContextOption {
	at := caller()
	return func(c *config) {
		c.initialRate, c.initialRateAt = recordsPerSecond, at
		if !(recordsPerSecond > 0) {
			c.fault(at, "dstream.WithInitialRate",
				fmt.Errorf("%v records per second: want more than 0, or math.Inf(1) for no limit", recordsPerSecond))
		}
	}
}

// WithMaxBytesPerBatch caps the bytes that a batch takes from each source, from the
// first batch on; what counts as a record's bytes is for the source to say. They are
// shared as records are. One record always goes, however large. Kafka has a cap of its
// own beside it (kafka.MaxBatchBytes), and judges sizes. Default Unlimited. 0 is
// refused: say Unlimited.
func WithMaxBytesPerBatch(n int64) ContextOption {
	return option("WithMaxBytesPerBatch", func(c *config) error {
		switch {
		case n == Unlimited:
			c.maxBytes = 0
		case n < 1:
			return fmt.Errorf("%d bytes per batch: want at least 1, or dstream.Unlimited", n)
		default:
			c.maxBytes = n
		}
		return nil
	})
}

// rateFaults finds an initial rate that nothing uses.
func (ssc *StreamingContext) rateFaults() []*Fault {
	c := &ssc.cfg
	if c.initialRateAt == "" || c.backpressure != nil {
		return nil
	}
	return []*Fault{{Caller: c.initialRateAt, Call: "dstream.WithInitialRate",
		Err: fmt.Errorf("the initial rate holds until backpressure sets one: add WithBackpressure, or use WithMaxRatePerPartition")}}
}

// pressure is the backpressure on one source of a run; nil without it. Whoever
// owns the input owns it.
type pressure struct {
	pid  *rates.PID
	rate float64 // in force, records per second; +Inf: no limit yet
}

// newPressure makes the backpressure on a source. The parameters have been checked.
func (c *config) newPressure() *pressure {
	if c.backpressure == nil {
		return nil
	}
	pid, err := rates.New(*c.backpressure)
	if err != nil {
		return nil // reported by Validate; no run begins
	}
	p := &pressure{pid: pid, rate: c.initialRate}
	if c.initialRateAt == "" {
		p.rate = DefaultInitialRate
	}
	return p
}

// bound lowers the limits of a plan to the rate in force.
func (p *pressure) bound(l source.Limits, interval time.Duration) source.Limits {
	if p == nil || math.IsInf(p.rate, 1) {
		return l
	}
	most := rates.Budget(p.rate, interval)
	if sabotage.On("low-rate-is-no-limit") {
		most = int64(p.rate * interval.Seconds())
	}
	if l.Records == 0 || most < l.Records {
		l.Records = most
	}
	return l
}

// inForce is the rate that a plan made now is bound by; 0 if none.
func (p *pressure) inForce() float64 {
	if p == nil || math.IsInf(p.rate, 1) {
		return 0
	}
	return p.rate
}

// batchDone takes in a committed batch.
func (p *pressure) batchDone(end time.Time, records int64, processing, scheduling time.Duration) {
	if p == nil {
		return
	}
	if rate, ok := p.pid.Estimate(end, records, processing, max(0, scheduling)); ok && !sabotage.On("estimate-not-used") {
		p.rate = rate
	}
}
