package dstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/rdd"
)

// Transform gives the RDD that f makes of each batch's RDD. f runs
// once a batch, on one goroutine, while the batch is set up; it may run actions on r, but
// must not start anything that outlives it. t is the batch time.
func Transform[T, U any](in Stream[T], f func(t time.Time, r *rdd.RDD[T]) (*rdd.RDD[U], error)) *DStream[U] {
	p := nodeOf(in)
	return transform("Transform", f == nil, []*node{p}, func(n *node, b *batchRun) (*rdd.RDD[U], error) {
		r, err := rddOf[T](b, p)
		if err != nil {
			return nil, err
		}
		return f(b.batch.Time, rdd.Within(r, n.label()))
	})
}

// TransformWith is Transform of two streams: f gets the RDDs of both in the batch.
func TransformWith[T, U, W any](a Stream[T], b Stream[U], f func(t time.Time, a *rdd.RDD[T], b *rdd.RDD[U]) (*rdd.RDD[W], error)) *DStream[W] {
	p, q := nodeOf(a), nodeOf(b)
	return transform("TransformWith", f == nil, []*node{p, q}, func(n *node, run *batchRun) (*rdd.RDD[W], error) {
		ra, aerr := rddOf[T](run, p)
		rb, berr := rddOf[U](run, q)
		if err := errors.Join(aerr, berr); err != nil {
			return nil, err
		}
		return f(run.batch.Time, rdd.Within(ra, n.label()), rdd.Within(rb, n.label()))
	})
}

// TransformAll is Transform of any number of streams of one type: f gets their
// RDDs in the batch, in the order of the streams. Streams of several types are
// brought to one by Map, or taken two by two by TransformWith.
func TransformAll[T, U any](in []Stream[T], f func(t time.Time, rs []*rdd.RDD[T]) (*rdd.RDD[U], error)) *DStream[U] {
	parents := make([]*node, len(in))
	for i, s := range in {
		parents[i] = nodeOf(s)
	}
	if len(in) == 0 {
		parents = []*node{nil} // without a stream there is no context: it is told like a nil one
	}
	return transform("TransformAll", f == nil, parents, func(n *node, b *batchRun) (*rdd.RDD[U], error) {
		rs, err := rddsOf[T](b, parents)
		if err != nil {
			return nil, err
		}
		for i, r := range rs {
			rs[i] = rdd.Within(r, n.label())
		}
		return f(b.batch.Time, rs)
	})
}

// transform adds a stream whose RDD user code makes, and makes sure that it is one.
func transform[U any](kind string, isNil bool, parents []*node, f func(n *node, b *batchRun) (*rdd.RDD[U], error)) *DStream[U] {
	n := newNode(nil, kind, parents...)
	n.check(nilFunction(isNil))
	for _, p := range parents {
		if p != nil {
			p.wantKept = true // f may read it any number of times
		}
	}
	return bind(n, func(b *batchRun) (*rdd.RDD[U], error) {
		out, err := call(n.label(), func() (*rdd.RDD[U], error) { return f(n, b) })
		if err == nil && out == nil {
			err = fmt.Errorf("the function of %q gave a nil RDD", n.label())
		}
		if err != nil {
			return nil, err
		}
		return out.WithExecutor(b.run.exec), nil
	})
}

// rddsOf gives the RDDs of several parents in a batch.
func rddsOf[T any](b *batchRun, parents []*node) ([]*rdd.RDD[T], error) {
	rs := make([]*rdd.RDD[T], len(parents))
	for i, p := range parents {
		r, err := rddOf[T](b, p)
		if err != nil {
			return nil, err
		}
		rs[i] = r
	}
	return rs, nil
}
