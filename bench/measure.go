package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// A cost is what one run of one side took, per record.
type cost struct {
	Wall   float64 `json:"wall"`   // nanoseconds
	CPU    float64 `json:"cpu"`    // nanoseconds of the whole process, system time included
	Allocs float64 `json:"allocs"` // heap objects
}

// cores says how many cores were kept busy.
func (c cost) cores() float64 { return c.CPU / c.Wall }

// A sample is what one process measured: the runs of both sides, or named figures.
type sample struct {
	Ours    []cost             `json:"ours,omitempty"`
	Base    []cost             `json:"base,omitempty"`
	Figures map[string]float64 `json:"figures,omitempty"`
}

// A side takes batches of records; it is our code or a baseline.
type side interface {
	batch(in records) error
}

// cpuTime is the processor time of the process so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the call has no failure for RUSAGE_SELF
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// meter times one piece of work that handles n records. The garbage of what came before is collected first.
func meter(n int, work func() error) (cost, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, wall := cpuTime(), time.Now()
	if err := work(); err != nil {
		return cost{}, err
	}
	took, used := time.Since(wall), cpuTime()-cpu
	runtime.ReadMemStats(&after)
	per := 1 / float64(n)
	return cost{Wall: float64(took) * per, CPU: float64(used) * per, Allocs: float64(after.Mallocs-before.Mallocs) * per}, nil
}

// interleave runs both sides over the same fresh batches, in alternating order.
func interleave(o options, d *data, batches int, ours, base side) (sample, error) {
	var s sample
	stop, err := profile(o)
	if err != nil {
		return s, err
	}
	defer stop()
	for run := range o.runs {
		in := make([]records, batches)
		for i := range in {
			in[i] = d.next()
		}
		for turn := range 2 {
			which, to := ours, &s.Ours
			if (run+turn)%2 == 1 {
				which, to = base, &s.Base
			}
			c, err := meter(batches*d.perBatch, func() error {
				for _, b := range in {
					if err := which.batch(b); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return s, err
			}
			*to = append(*to, c)
		}
	}
	return s, nil
}

// meter is meter with a profile of its own for this side and run, if profiles are asked for.
func (o options) meter(side string, run, n int, work func() error) (cost, error) {
	if o.profile != "" {
		o.profile = fmt.Sprintf("%s.%s.%d", o.profile, side, run)
	}
	stop, err := profile(o)
	if err != nil {
		return cost{}, err
	}
	defer stop()
	return meter(n, work)
}

// profile starts a CPU profile if one is asked for.
func profile(o options) (stop func(), err error) {
	if o.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(o.profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, nil
}

// timed gives the wall time of some work in milliseconds.
func timed(work func() error) (float64, error) {
	from := time.Now()
	err := work()
	return float64(time.Since(from)) / 1e6, err
}
