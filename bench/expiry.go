package main

import (
	"fmt"
	"time"
)

// A timeoutCase is a steady state of idle timeouts: n keys that came evenly over T batches, so that n/T hints fall due in
// every batch. Either all these keys expire, or none, as every key had a record since (then their hints move).
type timeoutCase struct {
	keys, batches int
	expire        bool
}

// work is what the pass should cost at most: expired keys + n/T.
func (c timeoutCase) work() float64 {
	visited := float64(c.keys) / float64(c.batches)
	if c.expire {
		return 2 * visited
	}
	return visited
}

func (c timeoutCase) String() string {
	return fmt.Sprintf("n%d_T%d_expire_%t", c.keys, c.batches, c.expire)
}

// measureExpiry compares the cost of the expiry pass with the linear expectation: the same number of due hints among ten
// times the keys must cost the same, ten times the hints must cost ten times as much. The figure is the worst of these
// quotients. A scan of all keys would give 10 for the first kind.
func measureExpiry(o options) (sample, error) {
	small, n := 100, manyKeys
	if o.quick {
		small, n = 10, manyKeys/100
	}
	figures := map[string]float64{}
	for _, expire := range []bool{true, false} {
		few := timeoutCase{n / 10, small, expire}  // n/T = 1000
		many := timeoutCase{n, 10 * small, expire} // n/T = 1000, ten times the keys
		more := timeoutCase{n, small, expire}      // n/T = 10,000
		times := map[timeoutCase]float64{}
		for _, c := range []timeoutCase{few, many, more} {
			ms, err := c.measure(o)
			if err != nil {
				return sample{}, err
			}
			times[c] = ms
			figures["ms_per_batch_"+c.String()] = ms
			figures["ns_per_unit_"+c.String()] = ms * 1e6 / c.work()
		}
		quotient := times[many] / times[few]
		growth := times[more] / times[many] / (more.work() / many.work())
		figures[fmt.Sprintf("ten_times_the_keys_expire_%t", expire)] = quotient
		figures[fmt.Sprintf("ten_times_the_hints_expire_%t", expire)] = growth
		figures["ratio"] = max(figures["ratio"], quotient, growth)
	}
	return sample{Figures: figures}, nil
}

// measure gives the milliseconds of processor time of a batch without records in the steady state.
func (c timeoutCase) measure(o options) (float64, error) {
	s, err := newStepper(time.Duration(c.batches) * interval)
	if err != nil {
		return 0, err
	}
	d := newData(options{}, c.keys, c.keys/c.batches)
	keys := d.all()
	for _, in := range keys.chunks(d.perBatch) {
		if err := s.step(in); err != nil {
			return 0, err
		}
	}
	if !c.expire {
		if err := s.step(keys); err != nil {
			return 0, err
		}
	}
	// The first keys fall due two batches after the load; from then on every batch has its share.
	for range 3 {
		if err := s.step(records{}); err != nil {
			return 0, err
		}
	}
	batches := min(c.batches-5, 10*o.runs)
	cost, err := meter(batches, func() error {
		for range batches {
			if err := s.step(records{}); err != nil {
				return err
			}
		}
		return nil
	})
	return cost.CPU / 1e6, err
}
