package dstream

import (
	"time"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/staterdd"
)

// Pair is a key and a value.
type Pair[K, V any] = rdd.Pair[K, V]

// Option is a value that may be absent.
type Option[T any] = rdd.Option[T]

// RDD is the immutable partitioned dataset of one batch of a stream.
type RDD[T any] = rdd.RDD[T]

// State is the handle on the state of one key, valid during one call.
type State[S any] = staterdd.State[S]

// StateSpec says what a stateful operator does: function, name, timeout,
// initial state, partitions. It is a value; its methods return changed copies.
type StateSpec[K comparable, V, S, M any] = staterdd.Spec[K, V, S, M]

// ScanPolicy says in which batches idle keys are looked for.
type ScanPolicy = staterdd.ScanPolicy

// The scan policies of StateSpec.TimeoutScan: EveryBatch is the default;
// AtCheckpoint is Spark's rule.
const (
	EveryBatch   = staterdd.EveryBatch
	AtCheckpoint = staterdd.AtCheckpoint
)

// Partitioner decides which partition a key lives in.
type Partitioner[K comparable] = partitioner.Partitioner[K]

// KV makes a Pair.
func KV[K, V any](k K, v V) Pair[K, V] { return rdd.KV(k, v) }

// Some makes an Option that holds v.
func Some[T any](v T) Option[T] { return rdd.Some(v) }

// None makes an empty Option.
func None[T any]() Option[T] { return rdd.None[T]() }

// Function makes a StateSpec of Spark's short form: f is called for every
// record, and once with no value when an idle key times out; what it returns is
// always emitted.
func Function[K comparable, V, S, M any](f func(K, Option[V], *State[S]) M) StateSpec[K, V, S, M] {
	return staterdd.Function(f)
}

// FunctionTime makes a StateSpec of Spark's long form: f gets the batch time,
// and says whether its result is emitted.
func FunctionTime[K comparable, V, S, M any](f func(time.Time, K, Option[V], *State[S]) (M, bool)) StateSpec[K, V, S, M] {
	return staterdd.FunctionTime(f)
}

// FunctionErr is FunctionTime for functions that can fail: an error fails the
// record (see WithRecordPolicy).
func FunctionErr[K comparable, V, S, M any](f func(time.Time, K, Option[V], *State[S]) (M, bool, error)) StateSpec[K, V, S, M] {
	return staterdd.FunctionErr(f)
}
