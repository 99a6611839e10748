package main

import (
	"time"

	"github.com/statemill/statemill/dstream"
)

// The window of the comparison covers 60 batches and is given in every batch.
const (
	windowBatches = 60
	windowLength  = windowBatches * interval
	windowRecords = 20_000 // a batch
	windowRun     = 10     // batches in a run
)

// newWindow is the job of sums by key over the window: merged anew from all its batches, or going on from the window
// before by what comes and what leaves, with keys dropped whose records have all left.
func newWindow(inverse bool, length time.Duration) (*pairJob, error) {
	return newPairJob(1, func(in dstream.Stream[pair]) dstream.Stream[pair] {
		if !inverse {
			return dstream.ReduceByKeyAndWindow(in, sumOf, length, interval, dstream.NumPartitions(1))
		}
		some := func(_ string, n int64) bool { return n != 0 }
		return dstream.ReduceByKeyAndWindowInverse(in, sumOf, without, some, length, interval, dstream.NumPartitions(1))
	})
}

// measureWindow compares the inverse window with the plain one, both full.
func measureWindow(o options) (sample, error) {
	d := newData(o, fewKeys, windowRecords)
	ours, err := newWindow(true, windowLength)
	if err != nil {
		return sample{}, err
	}
	base, err := newWindow(false, windowLength)
	if err != nil {
		return sample{}, err
	}
	for range windowBatches + 2 {
		in := d.next()
		if err := ours.batch(in); err != nil {
			return sample{}, err
		}
		if err := base.batch(in); err != nil {
			return sample{}, err
		}
	}
	s, err := interleave(o, d, windowRun, ours, base)
	if err != nil {
		return s, err
	}
	if err := ours.close(); err != nil {
		return s, err
	}
	return s, base.close()
}
