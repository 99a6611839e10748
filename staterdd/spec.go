package staterdd

import (
	"iter"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// ScanPolicy says in which batches idle keys are looked for.
type ScanPolicy uint8

const (
	// EveryBatch times keys out in the first batch after their timeout. The default.
	EveryBatch ScanPolicy = iota
	// AtCheckpoint is Spark's rule: keys are timed out only in batches in which a multiple of the
	// checkpoint interval has passed since the batch before.
	AtCheckpoint
)

// function is one user function in one of its shapes.
type function[K comparable, V, S, M any] struct {
	kind  kind
	plain func(K, rdd.Option[V], *State[S]) M
	timed func(time.Time, K, rdd.Option[V], *State[S]) (M, bool)
	err   func(time.Time, K, rdd.Option[V], *State[S]) (M, bool, error)
	keyed func(*Call[S, M], K, rdd.Option[V]) error

	update func(Batch, K, []V, rdd.Option[S]) (rdd.Option[S], error)
	pair   func(K, S) M // what an update operator gives of a live key
}

// kind is the shape of a user function.
type kind uint8

const (
	kindPlain kind = iota
	kindTimed
	kindErr
	kindKeyed
	kindUpdate
)

func (f function[K, V, S, M]) missing() bool {
	switch f.kind {
	case kindPlain:
		return f.plain == nil
	case kindTimed:
		return f.timed == nil
	case kindErr:
		return f.err == nil
	case kindUpdate:
		return f.update == nil
	default:
		return f.keyed == nil
	}
}

// Spec says what a stateful operator over keys K with values V, state S and outputs M does. It
// is a value: every method returns a changed copy. Of two calls that set the same thing the
// later one wins; NumPartitions and Partitioner set the same thing, and so do Immutable and Clone.
// Bad settings are kept and reported by Validate, all together.
type Spec[K comparable, V, S, M any] struct {
	fn      function[K, V, S, M]
	name    string
	initial iter.Seq2[K, S]

	timeout      time.Duration
	timeoutGiven bool
	scan         ScanPolicy
	checkpoint   time.Duration
	checkGiven   bool

	parts       int
	partsGiven  bool
	partitioner partitioner.Partitioner[K]
	partGiven   bool

	immutable  bool
	clone      func(S) S
	cloneGiven bool

	threshold      int
	thresholdGiven bool

	codec      codec.Codec[S]
	codecGiven bool

	touched   bool // of an update operator: only keys with data are called
	same      func(a, b S) bool
	sameGiven bool
}

// Function makes a Spec from the short form: exactly one output per call, the final call for an
// idle key included. The value is None only in that call.
func Function[K comparable, V, S, M any](f func(key K, value rdd.Option[V], state *State[S]) M) Spec[K, V, S, M] {
	return Spec[K, V, S, M]{fn: function[K, V, S, M]{kind: kindPlain, plain: f}}
}

// FunctionTime makes a Spec from the long form: it gets the batch time (UTC) and emits its
// output only if it also returns true.
func FunctionTime[K comparable, V, S, M any](f func(batch time.Time, key K, value rdd.Option[V], state *State[S]) (M, bool)) Spec[K, V, S, M] {
	return Spec[K, V, S, M]{fn: function[K, V, S, M]{kind: kindTimed, timed: f}}
}

// FunctionErr is FunctionTime for functions that can fail: an error fails the record.
func FunctionErr[K comparable, V, S, M any](f func(batch time.Time, key K, value rdd.Option[V], state *State[S]) (M, bool, error)) Spec[K, V, S, M] {
	return Spec[K, V, S, M]{fn: function[K, V, S, M]{kind: kindErr, err: f}}
}

// Keyed makes a Spec from a keyed function: any number of outputs per call and a deadline per
// key instead of an idle timeout (see Call).
func Keyed[K comparable, V, S, M any](f func(call *Call[S, M], key K, value rdd.Option[V]) error) Spec[K, V, S, M] {
	return Spec[K, V, S, M]{fn: function[K, V, S, M]{kind: kindKeyed, keyed: f}}
}

// Named names the operator: in errors, metrics, tests, and in the durable state, by which it is
// found again.
func (s Spec[K, V, S, M]) Named(name string) Spec[K, V, S, M] {
	s.name = name
	return s
}

// Timeout removes keys that had no record for longer than idle (> 0) after one final call.
// Default: keys stay for ever.
func (s Spec[K, V, S, M]) Timeout(idle time.Duration) Spec[K, V, S, M] {
	s.timeout, s.timeoutGiven = idle, true
	return s
}

// InitialState gives the state before the first batch. Of equal keys the later wins. The
// sequence is read once, when the operator starts without older state; the keys' time is the
// first batch's and the function is not called for them.
func (s Spec[K, V, S, M]) InitialState(state iter.Seq2[K, S]) Spec[K, V, S, M] {
	s.initial = state
	return s
}

// NumPartitions is Partitioner with the stable hash partitioner over n (≥ 1) partitions.
func (s Spec[K, V, S, M]) NumPartitions(n int) Spec[K, V, S, M] {
	s.parts, s.partsGiven = n, true
	s.partitioner, s.partGiven = nil, false
	return s
}

// Partitioner says which partition holds a key. Default: the stable hash partitioner over the
// context's parallelism.
func (s Spec[K, V, S, M]) Partitioner(p partitioner.Partitioner[K]) Spec[K, V, S, M] {
	s.partitioner, s.partGiven = p, true
	s.parts, s.partsGiven = 0, false
	return s
}

// Immutable promises that no function changes a state value in place, so that no private copies
// are needed. It makes no difference for an S without references.
func (s Spec[K, V, S, M]) Immutable() Spec[K, V, S, M] {
	s.immutable, s.clone, s.cloneGiven = true, nil, false
	return s
}

// Clone gives the function that makes the private copies of an S with references. Default: a
// round trip through the codec of S.
func (s Spec[K, V, S, M]) Clone(f func(S) S) Spec[K, V, S, M] {
	s.immutable, s.clone, s.cloneGiven = false, f, true
	return s
}

// TimeoutScan says in which batches idle keys are looked for. Default: EveryBatch.
func (s Spec[K, V, S, M]) TimeoutScan(p ScanPolicy) Spec[K, V, S, M] {
	s.scan = p
	return s
}

// CheckpointInterval is the interval of AtCheckpoint; given explicitly it also makes full
// snapshots at those batch times. It must be a positive multiple of the slide, which the
// stream checks. Default: 10 slides.
func (s Spec[K, V, S, M]) CheckpointInterval(d time.Duration) Spec[K, V, S, M] {
	s.checkpoint, s.checkGiven = d, true
	return s
}

// DeltaChainThreshold (≥ 1) is how many versions a pinned older version may trail the newest
// before it moves to a table of its own. Default: 20.
func (s Spec[K, V, S, M]) DeltaChainThreshold(n int) Spec[K, V, S, M] {
	s.threshold, s.thresholdGiven = n, true
	return s
}

// Codec gives the codec by which states are stored, and by which private copies are made unless
// Clone or Immutable says otherwise. Default: codec.For.
func (s Spec[K, V, S, M]) Codec(c codec.Codec[S]) Spec[K, V, S, M] {
	s.codec, s.codecGiven = c, true
	return s
}
