package dstream

import (
	"errors"
	"runtime"

	"github.com/statemill/statemill/rdd"
)

// Parallelize makes a dataset of a slice, which must not change while it is
// used: for Constant, and for the bodies of Transform and ForeachRDD. It has as
// many partitions as the context's parallelism, unless NumPartitions is given.
// Give it where the rows of an exactly-once output lie as those of the dataset do: an epoch that
// another machine redoes must come out in the same partitions.
func Parallelize[T any](ssc *StreamingContext, records []T, opts ...OpOption) *rdd.RDD[T] {
	o, faults := opOptions("Parallelize", opts, false, true)
	workers := runtime.GOMAXPROCS(0)
	if ssc != nil {
		ssc.mu.Lock()
		for _, err := range faults {
			ssc.faults = append(ssc.faults, &Fault{Caller: caller(), Call: "dstream.Parallelize", Err: err})
		}
		if ssc.cfg.parallelism > 0 {
			workers = ssc.cfg.parallelism
		}
		ssc.mu.Unlock()
	}
	return rdd.Parallelize(records, o.parts(workers))
}

// Constant is a stream that gives the same dataset in every batch, for joining
// a stream with a fixed table. What an operator by key has to move of it is moved once a run.
// r must stay readable for the whole run.
func Constant[T any](ssc *StreamingContext, r *rdd.RDD[T]) *DStream[T] {
	n := newNode(ssc, "Constant")
	n.stable, n.constant = true, true
	switch {
	case r == nil:
		n.fault(errors.New("the dataset is nil"))
	default:
		n.check(r.Err())
	}
	return bind(n, func(b *batchRun) (*rdd.RDD[T], error) { return r.WithExecutor(b.run.exec), nil })
}
