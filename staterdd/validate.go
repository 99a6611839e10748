package staterdd

import (
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
)

var (
	// ErrNoFunction: a Spec was made from a nil function.
	ErrNoFunction = errors.New("the function is nil")
	// ErrTimeout: a timeout that is not positive, or one for a keyed function.
	ErrTimeout = errors.New("bad timeout")
	// ErrScan: an unknown ScanPolicy, or one where there are no idle timeouts.
	ErrScan = errors.New("bad timeout scan policy")
	// ErrCheckpointInterval: a checkpoint interval that is not positive.
	ErrCheckpointInterval = errors.New("bad checkpoint interval")
	// ErrThreshold: a delta chain threshold below 1.
	ErrThreshold = errors.New("bad delta chain threshold")
	// ErrPartitioner: a number of partitions below 1, a nil or bad partitioner, or data that were
	// partitioned by another partitioner than the state.
	ErrPartitioner = errors.New("bad partitioner")
	// ErrClone: a nil clone function, or a state type that can be copied neither by its codec nor
	// by a given function.
	ErrClone = errors.New("state cannot be copied")
	// ErrCodec: a state type that cannot be stored, or a codec that does not keep what it is given.
	ErrCodec = errors.New("state cannot be stored")
)

// Validate returns all faults of the settings, none if the Spec can be run. It never panics.
func (s Spec[K, V, S, M]) Validate() []error {
	var faults []error
	add := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if s.fn.missing() {
		add(ErrNoFunction)
	}
	add(s.checkTimes())
	if s.thresholdGiven && s.threshold < 1 {
		add(fmt.Errorf("%w: %d: it must be at least 1", ErrThreshold, s.threshold))
	}
	add(s.checkPartitions())
	if _, err := codec.KeyFor[K](); err != nil {
		add(fmt.Errorf("key type: %w", err))
	}
	if _, err := s.cloner(); err != nil {
		add(err)
	}
	add(s.checkUpdate())
	if s.codecGiven {
		_, _, err := s.Stored()
		add(err)
	}
	return faults
}

// Stored returns the codec by which states are stored and the schema of what it stores. Its error
// is ErrCodec: a state that lives in memory only needs no codec, so Validate asks for it only if
// one was given.
func (s Spec[K, V, S, M]) Stored() (codec.Codec[S], codec.Schema, error) {
	if s.codecGiven && s.codec == nil {
		return nil, codec.Schema{}, fmt.Errorf("%w: the codec given is nil", ErrCodec)
	}
	c, schema, err := codec.Use(s.codec)
	if err != nil {
		return nil, codec.Schema{}, fmt.Errorf("%w: %w", ErrCodec, err)
	}
	return c, schema, nil
}

func (s Spec[K, V, S, M]) checkTimes() error {
	var faults []error
	if s.timeoutGiven {
		switch {
		case s.fn.kind == kindKeyed:
			faults = append(faults, fmt.Errorf("%w: a keyed function sets deadlines; it has no idle timeout", ErrTimeout))
		case s.fn.kind == kindUpdate:
			faults = append(faults, fmt.Errorf("%w: an update function is called in every batch and ends a key by returning none; it has no idle timeout", ErrTimeout))
		case s.timeout <= 0:
			faults = append(faults, fmt.Errorf("%w: %v: it must be positive; leave it out to keep keys for ever", ErrTimeout, s.timeout))
		}
	}
	switch {
	case s.scan > AtCheckpoint:
		faults = append(faults, fmt.Errorf("%w: %d: use EveryBatch or AtCheckpoint", ErrScan, s.scan))
	case s.scan == AtCheckpoint && s.fn.kind == kindUpdate:
		faults = append(faults, fmt.Errorf("%w: AtCheckpoint is for idle timeouts, which an update function does not have", ErrScan))
	case s.scan == AtCheckpoint && s.fn.kind == kindKeyed:
		faults = append(faults, fmt.Errorf("%w: AtCheckpoint is for idle timeouts; deadlines are looked at in every batch", ErrScan))
	}
	if s.checkGiven && s.checkpoint <= 0 {
		faults = append(faults, fmt.Errorf("%w: %v: it must be a positive multiple of the slide", ErrCheckpointInterval, s.checkpoint))
	}
	return errors.Join(faults...)
}

func (s Spec[K, V, S, M]) checkPartitions() error {
	switch {
	case s.partsGiven && s.parts < 1:
		return fmt.Errorf("%w: %d partitions: there must be at least 1", ErrPartitioner, s.parts)
	case s.partGiven && s.partitioner == nil:
		return fmt.Errorf("%w: it is nil; leave it out for the default", ErrPartitioner)
	case s.partGiven:
		if err := partitioner.Check(s.partitioner); err != nil {
			return fmt.Errorf("%w: %w", ErrPartitioner, err)
		}
	}
	return nil
}

// cloner returns what makes private copies, or nil when none are needed.
func (s Spec[K, V, S, M]) cloner() (func(S) (S, error), error) {
	if s.cloneGiven && s.clone == nil {
		return nil, fmt.Errorf("%w: the clone function is nil", ErrClone)
	}
	if s.immutable || !codec.HasRefs[S]() {
		return nil, nil
	}
	if f := s.clone; f != nil {
		return func(v S) (S, error) { return f(v), nil }, nil
	}
	if s.codec != nil {
		return codec.ClonerOf(s.codec), nil
	}
	f, err := codec.Cloner[S]()
	if err != nil {
		return nil, fmt.Errorf("%w: %w; give a function by Clone, or promise Immutable", ErrClone, err)
	}
	return f, nil
}

// Settings are the plain settings of a Spec, for those who build and describe operators.
type Settings struct {
	// Name is the operator's name, or "".
	Name string
	// Keyed tells a keyed function with deadlines from a function with an idle timeout.
	Keyed bool
	// Timeout is the idle timeout, 0 for none.
	Timeout time.Duration
	// Scan says in which batches idle keys are looked for.
	Scan ScanPolicy
	// CheckpointInterval is the interval that was given, 0 if none was.
	CheckpointInterval time.Duration
	// DeltaChainThreshold is the threshold that was given, 0 if none was.
	DeltaChainThreshold int
	// Partitions is the number of partitions that was given, by NumPartitions or by a
	// partitioner; 0 if none was.
	Partitions int
	// InitialState tells whether one was given.
	InitialState bool
}

// Settings returns the plain settings.
func (s Spec[K, V, S, M]) Settings() Settings {
	out := Settings{
		Name: s.name, Keyed: s.fn.kind == kindKeyed, Timeout: s.timeout, Scan: s.scan,
		CheckpointInterval: s.checkpoint, DeltaChainThreshold: s.threshold,
		Partitions: s.parts, InitialState: s.initial != nil,
	}
	if s.partGiven && s.partitioner != nil {
		out.Partitions = s.partitioner.Partitions()
	}
	return out
}

// PartitionerOr returns the partitioner in force: the one given, or the hash partitioner over
// the number given, or over n if neither was. It does not check it.
func (s Spec[K, V, S, M]) PartitionerOr(n int) partitioner.Partitioner[K] {
	switch {
	case s.partGiven && s.partitioner != nil:
		return s.partitioner
	case s.partsGiven:
		n = s.parts
	}
	return partitioner.Hash[K](n)
}
