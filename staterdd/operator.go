package staterdd

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// Options are what an Operator needs from its surroundings. The zero value is good for tests.
type Options struct {
	// Parallelism is the number of partitions when the Spec gives none; less than 1 means 1.
	Parallelism int
	// Slide is the interval of the operator's stream. It gives the default checkpoint interval
	// and the grain of the expiry index; 0 means one second.
	Slide time.Duration
	// Grid gives the newest of the operator's times that is not after a batch time, for streams
	// that do not have one in every batch; nil means the batch time itself. TimeoutScan(AtCheckpoint)
	// counts by these times, so that it does not matter in which batch a run began anew.
	Grid func(int64) int64
	// Secret is mixed into the hashes of the state maps; take a random number per run.
	Secret uint64
	// Background runs the copying of old versions into tables of their own; nil means at once.
	Background func(func())
	// NoAutoDetach leaves pinned old versions in the newest table for ever.
	NoAutoDetach bool
	// BlockSize is the number of records looked up together, 1 to statemap.BlockSize; 0 means
	// statemap.BlockSize. It makes no difference to the result.
	BlockSize int
	// Meter, if it is not nil, is told every few thousand records, by the task of a partition,
	// how much memory its map takes and how many keys it has. Its error fails the task.
	Meter func(partition int, heapBytes, keys int64) error
	// Now tells the time by which Stats measures; nil: it does not.
	Now func() time.Time
	// Executor runs the actions of the datasets; nil means rdd.Local.
	Executor rdd.Executor
}

// Operator runs a Spec: it makes version after version of a MapWithStateRDD. It keeps nothing of
// a version, only scratch memory for each partition. Batches of one operator must not overlap.
type Operator[K comparable, V, S, M any] struct {
	name        string
	fn          function[K, V, S, M]
	partitioner partitioner.Partitioner[K]
	key         *codec.Key[K]
	hash        func(K) uint64
	checkKeys   bool // some keys are not keys at all: NaN
	clone       func(S) (S, error)
	touched     bool
	equality    equality[S]
	initial     func(yield func(K, S) bool)
	timeout     int64 // 0: none
	scan        ScanPolicy
	checkpoint  int64 // nanoseconds
	slide       int64
	grid        func(int64) int64
	maps        statemap.Options[K]
	blockSize   int
	exec        rdd.Executor
	meter       func(partition int, heapBytes, keys int64) error
	now         func() time.Time
	outputs     *chunkPool[M]
	parts       []*Partition[K, V, S, M]
}

// defaultSlides is the default checkpoint interval in slides.
const defaultSlides = 10

// NewOperator makes the operator of a Spec. Its error joins all faults of the Spec.
func NewOperator[K comparable, V, S, M any](spec Spec[K, V, S, M], o Options) (*Operator[K, V, S, M], error) {
	name := spec.name
	if name == "" {
		name = "mapWithState"
	}
	if faults := spec.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("operator %s: %w", name, errors.Join(faults...))
	}
	if o.BlockSize < 0 || o.BlockSize > statemap.BlockSize {
		return nil, fmt.Errorf("operator %s: block size %d: give 1 to %d", name, o.BlockSize, statemap.BlockSize)
	}
	key, err := codec.KeyFor[K]()
	if err != nil {
		return nil, fmt.Errorf("operator %s: key type: %w", name, err)
	}
	clone, err := spec.cloner()
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", name, err)
	}
	op := &Operator[K, V, S, M]{
		name: name, fn: spec.fn, partitioner: spec.PartitionerOr(max(o.Parallelism, 1)),
		key: key, hash: key.HashFunc(), checkKeys: key.NeedsCheck(), clone: clone, initial: spec.initial,
		touched: spec.touched, equality: spec.equality(),
		timeout: int64(spec.timeout), scan: spec.scan, checkpoint: int64(spec.checkpoint),
		slide: int64(o.Slide), blockSize: o.BlockSize, exec: o.Executor, meter: o.Meter, outputs: &chunkPool[M]{},
	}
	op.grid = o.Grid
	if op.now = o.Now; op.now == nil {
		op.now = func() time.Time { return time.Time{} }
	}
	if op.slide <= 0 {
		op.slide = int64(time.Second)
	}
	if op.checkpoint == 0 {
		op.checkpoint = defaultSlides * min(op.slide, math.MaxInt64/defaultSlides)
	}
	if op.blockSize == 0 {
		op.blockSize = statemap.BlockSize
	}
	op.maps = statemap.Options[K]{
		DeltaChainThreshold: spec.threshold, Hash: op.hash, Secret: o.Secret,
		Background: o.Background, NoAutoDetach: o.NoAutoDetach,
	}
	op.parts = make([]*Partition[K, V, S, M], op.partitioner.Partitions())
	for i := range op.parts {
		op.parts[i] = newPartition(op, i)
	}
	return op, nil
}

// Name is the operator's name, "mapWithState" if none was given.
func (op *Operator[K, V, S, M]) Name() string { return op.name }

// Partitioner says which partition holds a key.
func (op *Operator[K, V, S, M]) Partitioner() partitioner.Partitioner[K] { return op.partitioner }

// keyed tells deadlines from idle timeouts.
func (op *Operator[K, V, S, M]) keyed() bool { return op.fn.kind == kindKeyed }

// updates tells an operator that groups its data by key.
func (op *Operator[K, V, S, M]) updates() bool { return op.fn.kind == kindUpdate }

// indexed reports whether keys of the operator can become due at all.
func (op *Operator[K, V, S, M]) indexed() bool { return op.keyed() || op.timeout > 0 }

// gridTime is the operator's own time at a batch time.
func (op *Operator[K, V, S, M]) gridTime(t int64) int64 {
	if op.grid == nil || sabotage.On("scan-by-batch-time") {
		return t
	}
	return op.grid(t)
}

// fail gives an error of this operator about one partition.
func (op *Operator[K, V, S, M]) fail(partition int, err error) error {
	return fmt.Errorf("operator %s partition %d: %w", op.name, partition, err)
}
