package dstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// Stream is a *DStream[T], or something that embeds one. Operators are
// functions that take a Stream; only this package's types are one.
type Stream[T any] interface{ stream() *DStream[T] }

// DStream is a sequence of RDDs, one per batch. It belongs to one context.
type DStream[T any] struct{ node *node }

func (d *DStream[T]) stream() *DStream[T] { return d }

// Named names the stream: in messages, and for the test kit, which captures an
// output without a name of its own by its stream's. It returns the stream.
func (d *DStream[T]) Named(name string) *DStream[T] {
	d.change("Named", func(n *node) error {
		if name == "" {
			return errors.New("the name is empty")
		}
		if n.op != nil || n.src != nil {
			return fmt.Errorf("a %s has its name from its constructor: it cannot be renamed to %q", n.kind, name)
		}
		n.name = name
		return nil
	})
	return d
}

// Cache keeps the stream's records in memory until the batch is forgotten, so
// that Slice can read them. (A stream that is read more than once is kept
// anyhow.) It returns the stream.
func (d *DStream[T]) Cache() *DStream[T] {
	d.change("Cache", func(n *node) error { n.cached = true; return nil })
	return d
}

// Remember keeps the stream's records for at least dur, for Slice. Default: the
// context's (WithRemember), else one interval. The longest of several calls counts.
// It returns the stream.
func (d *DStream[T]) Remember(dur time.Duration) *DStream[T] {
	d.change("Remember", func(n *node) error {
		n.remember = max(n.remember, dur)
		if sabotage.On("remember-shortens") {
			n.remember = dur
		}
		return positive(dur, "the remember duration")
	})
	return d
}

// Checkpoint says how often the state behind the stream shall be written as a whole: a
// positive multiple of the slide. Windows have such state: of an inverse one it is its
// results, and with a checkpoint the batches of any window. (Stateful operators have a
// Checkpoint of their own.) On other streams it is a fault. It returns the stream.
func (d *DStream[T]) Checkpoint(interval time.Duration) *DStream[T] {
	d.change("Checkpoint", func(n *node) error {
		if err := positive(interval, "the checkpoint interval"); err != nil {
			return err
		}
		window := false
		for _, m := range n.ssc.nodes {
			if m.seen() != n || m.op == nil && m.lookback == 0 {
				continue
			}
			window = true
			if op, ok := m.op.(interface{ checkpointInterval() *time.Duration }); ok {
				*op.checkpointInterval() = interval
			}
		}
		if !window || sabotage.On("window-without-state") {
			return ErrNoState
		}
		return checkpointMultiple(interval, n.slide)
	})
	return d
}

// Name is the stream's name, or one made of its operator and number.
func (d *DStream[T]) Name() string {
	if d == nil || d.node == nil {
		return ""
	}
	return d.node.label()
}

// SlideDuration is the interval between two RDDs of the stream.
func (d *DStream[T]) SlideDuration() time.Duration {
	if d == nil || d.node == nil {
		return 0
	}
	return d.node.slide
}

// change sets something of the stream, which is legal until the start.
func (d *DStream[T]) change(call string, set func(*node) error) {
	if d == nil || d.node == nil || d.node.ssc == nil {
		return
	}
	n := d.node
	n.ssc.mu.Lock()
	defer n.ssc.mu.Unlock()
	if err := n.ssc.late(); err != nil {
		n.ssc.lateFault(caller(), "DStream."+call, fmt.Errorf("the stream %q cannot be changed any more: %w", n.label(), err))
		return
	}
	if err := set(n); err != nil {
		n.ssc.faults = append(n.ssc.faults, &Fault{Caller: caller(), Call: "dstream.DStream." + call, Err: err})
	}
}

// nodeOf gives the node of a stream, nil if there is none.
func nodeOf[T any](in Stream[T]) (n *node) {
	// A nil pointer to a struct that embeds a *DStream panics in stream(): that
	// is a nil stream like any other, and reported as one.
	defer func() {
		if recover() != nil {
			n = nil
		}
	}()
	if in == nil {
		return nil
	}
	if d := in.stream(); d != nil {
		return d.node
	}
	return nil
}

// bind makes the typed stream of a node: build gives the RDD of a batch.
func bind[T any](n *node, build func(b *batchRun) (*rdd.RDD[T], error)) *DStream[T] {
	n.build = func(b *batchRun) (any, error) {
		r, err := build(b)
		if invariants.Enabled && err == nil { // else rdd.Local would run it: no policy, no retries
			invariants.Check(r.Executor() == rdd.Executor(b.run.exec), "dstream: the RDD of %q is not run by the run's executor", n.label())
		}
		return r, err
	}
	n.empty = func() any { return rdd.Parallelize[T](nil, 1) }
	n.keep = func(r any) (any, func()) {
		kept := rdd.Keep(r.(*rdd.RDD[T]))
		return kept, kept.Release
	}
	return &DStream[T]{node: n}
}

// rddOf gives the RDD of a parent in a batch.
func rddOf[T any](b *batchRun, n *node) (*rdd.RDD[T], error) {
	r, err := b.get(n)
	if err != nil {
		return nil, err
	}
	return r.(*rdd.RDD[T]), nil
}

// derive adds a stream that is computed from the RDD of one parent.
func derive[T, U any](in Stream[T], kind string, isNil bool, f func(n *node, b *batchRun, r *rdd.RDD[T]) (*rdd.RDD[U], error)) *DStream[U] {
	p := nodeOf(in)
	n := newNode(nil, kind, p)
	n.check(nilFunction(isNil))
	return bind(n, func(b *batchRun) (*rdd.RDD[U], error) {
		r, err := rddOf[T](b, p)
		if err != nil {
			return nil, err
		}
		return f(n, b, r)
	})
}

// narrow is derive for operators that cannot fail to be built.
func narrow[T, U any](in Stream[T], kind string, isNil bool, f func(n *node, r *rdd.RDD[T]) *rdd.RDD[U]) *DStream[U] {
	return derive(in, kind, isNil, func(n *node, _ *batchRun, r *rdd.RDD[T]) (*rdd.RDD[U], error) {
		return f(n, rdd.Within(r, n.label())).Named(n.label()), nil // errors name the user's stream
	})
}
