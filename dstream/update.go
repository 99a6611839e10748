package dstream

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/statemill/statemill/staterdd"
)

// UpdateStateByKey keeps state per key: f is called once in every batch for every
// key that has state or data, with the batch's values of the key in order (none for
// a key without data) and the state before, and returns the state after; None
// removes the key. The stream gives all keys with their state after each batch,
// partition after partition, and within each in the order of the keys' canonical
// bytes: with one partition that is the order of all. Over a window f is called, and
// the stream gives something, at the window's slides alone.
//
// Its cost grows with the number of keys, also in a batch without data;
// MapWithState's does not. What is written to a checkpoint grows with what f changes:
// a state that comes back equal is not written (see SameState).
//
// Options: Name (needed with a checkpoint), NumPartitions or PartitionedBy,
// InitialState, SameState. For all that a StateSpec can say (Immutable, Clone,
// Codec …) give MapWithState a spec made by UpdateFunction.
func UpdateStateByKey[K comparable, V, S any](in Stream[Pair[K, V]], f func(values []V, state Option[S]) Option[S], opts ...OpOption) *MapWithStateDStream[K, S, Pair[K, S]] {
	return addUpdate(in, staterdd.Update[K](f), opts)
}

// UpdateStateByKeyTime is UpdateStateByKey with a function that also gets the batch
// time and the key.
func UpdateStateByKeyTime[K comparable, V, S any](in Stream[Pair[K, V]], f func(batch time.Time, key K, values []V, state Option[S]) Option[S], opts ...OpOption) *MapWithStateDStream[K, S, Pair[K, S]] {
	return addUpdate(in, staterdd.UpdateTime(f), opts)
}

// UpdateStateByKeyErr is UpdateStateByKeyTime with a function that can fail: an error
// fails the call (see WithRecordPolicy); where it is skipped, the key stays as it was.
func UpdateStateByKeyErr[K comparable, V, S any](in Stream[Pair[K, V]], f func(batch time.Time, key K, values []V, state Option[S]) (Option[S], error), opts ...OpOption) *MapWithStateDStream[K, S, Pair[K, S]] {
	return addUpdate(in, staterdd.UpdateErr(f), opts)
}

// UpdateFunction makes a StateSpec of the function of UpdateStateByKeyErr, for
// MapWithState, which then does what UpdateStateByKey does.
func UpdateFunction[K comparable, V, S any](f func(batch time.Time, key K, values []V, state Option[S]) (Option[S], error)) StateSpec[K, V, S, Pair[K, S]] {
	return staterdd.UpdateErr(f)
}

// InitialState gives an UpdateStateByKey the state before its first batch, in which
// the function is called for these keys too. Of equal keys the later one wins. The
// sequence is read once, when the operator starts without older state.
func InitialState[K comparable, S any](state iter.Seq2[K, S]) OpOption {
	return func(c *opConfig) { c.initial, c.initialSet = state, true }
}

// SameState says when a state that an UpdateStateByKey's function returns counts as
// unchanged, and is not written. Default: types without references compare by ==,
// others by what they are stored as.
func SameState[S any](same func(before, after S) bool) OpOption {
	return func(c *opConfig) { c.same, c.sameSet = same, true }
}

func addUpdate[K comparable, V, S any](in Stream[Pair[K, V]], spec StateSpec[K, V, S, Pair[K, S]], opts []OpOption) *MapWithStateDStream[K, S, Pair[K, S]] {
	const kind = "UpdateStateByKey"
	spec, faults := updateSpec(kind, spec, opts)
	d := addStateful(in, kind, spec)
	d.remembers = true
	d.node.check(faults...)
	return d
}

// updateSpec reads the options into the spec.
func updateSpec[K comparable, V, S any](kind string, spec StateSpec[K, V, S, Pair[K, S]], opts []OpOption) (StateSpec[K, V, S, Pair[K, S]], []error) {
	var c opConfig
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	initial, isInitial := c.initial.(iter.Seq2[K, S])
	same, isSame := c.same.(func(before, after S) bool)
	c, faults := readOptions(kind, slices.Concat(opts, []OpOption{ofUpdate}), true, true)
	spec = spec.Named(c.name)
	switch given, ok := c.partitioner.(Partitioner[K]); {
	case c.partitionsSet && c.partitions > 0:
		spec = spec.NumPartitions(c.partitions)
	case !c.partitioned:
	case c.partitioner == nil:
		faults = append(faults, errors.New("the partitioner is nil"))
	case !ok:
		faults = append(faults, fmt.Errorf("the partitioner %v is not for keys of type %v", c.partitioner, reflect.TypeFor[K]()))
	default:
		spec = spec.Partitioner(given)
	}
	switch {
	case !c.initialSet:
	case !isInitial:
		faults = append(faults, fmt.Errorf("the initial state is %T: want keys of type %v and states of type %v", c.initial, reflect.TypeFor[K](), reflect.TypeFor[S]()))
	case initial == nil:
		faults = append(faults, errors.New("the initial state is nil"))
	default:
		spec = spec.InitialState(initial)
	}
	switch {
	case !c.sameSet:
	case !isSame:
		faults = append(faults, fmt.Errorf("SameState is given a %T: want one for states of type %v", c.same, reflect.TypeFor[S]()))
	default:
		spec = spec.Same(same)
	}
	return spec, faults
}

// ofUpdate lets readOptions accept what only updates have.
func ofUpdate(c *opConfig) { c.ofUpdate = true }
