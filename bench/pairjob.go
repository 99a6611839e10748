package main

import (
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// A pair is a record, and a result, of the jobs of one operator.
type pair = dstream.Pair[string, int64]

// A pairJob is the job of one operator: slices of records → the operator → its results appended by partition.
type pairJob struct {
	driver
	in  *sliceSource[records, pair]
	out sink[pair]
}

// newPairJob starts the job with as many source partitions, partitions and workers.
func newPairJob(parallelism int, operator func(in dstream.Stream[pair]) dstream.Stream[pair], opts ...dstream.ContextOption) (*pairJob, error) {
	j := &pairJob{driver: newDriver(parallelism, opts...), in: newSliceSource[records, pair](parallelism), out: newSink[pair](parallelism)}
	in := dstream.From(j.ssc, "records", source.Source[pair](j.in))
	dstream.ForeachRDD(operator(in), j.out.collect)
	return j, j.ssc.Start()
}

func (j *pairJob) batch(in records) error {
	j.in.put(in)
	return j.tick()
}

// sumOf and without are the functions of the sums of a window.
func sumOf(a, b int64) int64 { return a + b }

func without(a, b int64) int64 { return a - b }
