package staterdd

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// Initial makes the version before the first batch from the Spec's initial state: batch is the
// time of the first batch, which all keys get (D5). No function is called. The initial state
// is read once per call.
func (op *Operator[K, V, S, M]) Initial(batch time.Time) (*MapWithStateRDD[K, S, M], error) {
	t := nanos(batch)
	if op.keyed() {
		t = noDeadline
	}
	return op.create(batch, func(yield func(Timed[K, S]) bool) {
		if op.initial == nil {
			return
		}
		op.initial(func(k K, s S) bool { return yield(Timed[K, S]{k, s, t}) })
	})
}

// Restore makes a version at the given batch time from states with their own times (D4), for
// example to lay state out by another partitioner.
func (op *Operator[K, V, S, M]) Restore(batch time.Time, states iter.Seq[Timed[K, S]]) (*MapWithStateRDD[K, S, M], error) {
	return op.create(batch, states)
}

func (op *Operator[K, V, S, M]) create(batch time.Time, states iter.Seq[Timed[K, S]]) (*MapWithStateRDD[K, S, M], error) {
	r, err := create[M](op.name, op.keyed(), op.partitioner, op.maps, batch, states)
	if err != nil {
		return nil, err
	}
	r.outputs, r.exec = op.outputs, op.exec
	return r, nil
}

// CreateFromPairs makes a first version from pairs, each with the given update time; of equal
// keys the later wins (D3). It has no outputs. The result has p's partitions even if there are
// no pairs. p is checked; errors of a key name it.
func CreateFromPairs[M any, K comparable, S any](pairs iter.Seq2[K, S], p partitioner.Partitioner[K], t time.Time) (*MapWithStateRDD[K, S, M], error) {
	at := nanos(t)
	return CreateFromStates[M](func(yield func(Timed[K, S]) bool) {
		pairs(func(k K, s S) bool { return yield(Timed[K, S]{k, s, at}) })
	}, p, t)
}

// CreateFromStates is CreateFromPairs for states that keep their own times (D4); t is the
// version's time.
func CreateFromStates[M any, K comparable, S any](states iter.Seq[Timed[K, S]], p partitioner.Partitioner[K], t time.Time) (*MapWithStateRDD[K, S, M], error) {
	key, err := codec.KeyFor[K]()
	if err != nil {
		return nil, fmt.Errorf("create state: key type: %w", err)
	}
	return create[M]("state", false, p, statemap.Options[K]{Hash: key.HashFunc()}, t, states)
}

func create[M any, K comparable, S any](name string, keyed bool, p partitioner.Partitioner[K], o statemap.Options[K], t time.Time, states iter.Seq[Timed[K, S]]) (*MapWithStateRDD[K, S, M], error) {
	if err := partitioner.Check(p); err != nil {
		return nil, fmt.Errorf("create state of %s: %w: %w", name, ErrPartitioner, err)
	}
	r := newRDD[K, S, M](name, keyed, p, Batch{Time: t})
	r.first, r.outputs = true, &chunkPool[M]{}
	for i := range r.records {
		m, err := statemap.New[K, S](o)
		if err != nil {
			return nil, fmt.Errorf("create state of %s: %w", name, err)
		}
		r.records[i].StateMap = m
		r.lines[i] = &lineage[K, S]{open: m}
		r.done[i].Store(true)
	}
	var fault error
	states(func(e Timed[K, S]) bool {
		fault = r.put(e)
		return fault == nil
	})
	if fault != nil {
		return nil, errors.Join(fault, r.Abort())
	}
	for i := range r.records {
		m := r.records[i].StateMap
		r.records[i].Stats = Stats{Keys: int64(m.Len()), HeapBytes: m.HeapBytes()}
	}
	return r, r.Seal()
}

// put stores one given state in its partition.
func (r *MapWithStateRDD[K, S, M]) put(e Timed[K, S]) error {
	i, err := partitioner.Of(r.partitioner, e.Key)
	if err == nil {
		err = r.records[i].StateMap.Put(e.Key, e.State, e.Time)
	}
	if err != nil {
		return &rdd.RecordError{Operator: r.name, Key: e.Key, Stream: "initial state", Err: err}
	}
	return nil
}
