package main

import (
	"context"
	"errors"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// windowOrBatch is the job of plain sums by key: of the window, whose batches a checkpoint keeps, or of each batch alone,
// which leaves nothing to keep. It starts at a batch time, unless that is zero.
func windowOrBatch(window bool, at time.Time, opts ...dstream.ContextOption) (*pairJob, ready, error) {
	j := &pairJob{driver: newDriver(1, opts...), in: newSliceSource[records, pair](1), out: newSink[pair](1)}
	if !at.IsZero() {
		j.now = at
		j.clock.Set(at)
	}
	in := dstream.From(j.ssc, "records", source.Source[pair](j.in))
	by := dstream.NumPartitions(1)
	sums := dstream.ReduceByKey(in, sumOf, by)
	if window {
		sums = dstream.ReduceByKeyAndWindow(in, sumOf, windowLength, interval, by, dstream.Name("window"))
	}
	dstream.ForeachRDD(sums, j.out.collect)
	from, cpu := time.Now(), cpuTime()
	if err := j.ssc.Start(); err != nil {
		return nil, ready{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := j.hooks.WaitStarted(ctx); err != nil {
		return nil, ready{}, errors.Join(err, j.close())
	}
	return j, ready{time.Since(from), cpuTime() - cpu}, nil
}

// measureWindowLog compares the bytes that a window adds to a commit with what a batch adds to the window, its sums by key
// as their codec writes them. Beside it: the processor time of a batch with and without the window's log, and that of a start
// which reads 60 batches of the log, against reading and reducing the records of 60 batches again, which is what
// computing the window anew would take at least, from a source in memory.
func measureWindowLog(o options) (s sample, err error) {
	p, err := newPlace()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	d := newData(o, fewKeys, windowRecords)
	c, err := codec.For[pair]()
	if err != nil {
		return s, err
	}
	var row []byte
	var with, without traffic
	logged, err := p.options(&with)
	if err != nil {
		return s, err
	}
	window, _, err := windowOrBatch(true, time.Time{}, logged)
	if err != nil {
		return s, err
	}
	inMemory, _, err := windowOrBatch(true, time.Time{})
	if err != nil {
		return s, err
	}
	other, err := newPlace()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, other.remove()) }()
	plain, err := other.options(&without)
	if err != nil {
		return s, err
	}
	alone, _, err := windowOrBatch(false, time.Time{}, plain)
	if err != nil {
		return s, err
	}
	sides := []*pairJob{window, inMemory, alone}
	batches := windowBatches * (1 + o.runs)
	var least, bytes, bytesAlone []float64
	cpu := make([][]float64, len(sides))
	for i := range batches {
		in := d.next()
		before, beforeAlone := with.commits(), without.commits()
		for k, j := range sides {
			from := cpuTime()
			if err := j.batch(in); err != nil {
				return s, err
			}
			if i > windowBatches {
				cpu[k] = append(cpu[k], float64(cpuTime()-from)/1e6)
			}
		}
		if i > windowBatches {
			rows := 0
			for _, kv := range alone.out[0] { // the sums of the batch
				if row, err = c.Append(row[:0], kv); err != nil {
					return s, err
				}
				rows += len(row)
			}
			least = append(least, float64(rows))
			bytes = append(bytes, float64(with.commits()-before))
			bytesAlone = append(bytesAlone, float64(without.commits()-beforeAlone))
		}
	}
	at := window.now
	for _, j := range sides {
		if err := j.close(); err != nil {
			return s, err
		}
	}
	var start []float64
	for range o.runs {
		logged, err := p.options(&traffic{})
		if err != nil {
			return s, err
		}
		again, took, err := windowOrBatch(true, at, logged)
		if err != nil {
			return s, err
		}
		start = append(start, float64(took.cpu)/1e6)
		if err := again.close(); err != nil {
			return s, err
		}
	}
	s.Figures = map[string]float64{
		"ratio":                       (median(bytes) - median(bytesAlone)) / median(least),
		"commit_bytes":                median(bytes),
		"commit_bytes_without_window": median(bytesAlone),
		"snapshot_bytes_per_batch":    float64(with.snapshots.Load()) / float64(batches),
		"batch_cpu_ms":                median(cpu[0]),
		"batch_cpu_ms_in_memory":      median(cpu[1]),
		"start_cpu_ms":                median(start),
		"recompute_at_least_cpu_ms":   windowBatches * median(cpu[2]),
		"records_per_batch":           float64(d.perBatch),
		"batches_of_the_window":       windowBatches,
	}
	return s, nil
}
