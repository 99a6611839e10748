package staterdd

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

var (
	// ErrNotSealed: a version was read, or built upon, before Seal.
	ErrNotSealed = errors.New("the state version is not sealed")
	// ErrSealed: a version was to be computed or sealed again.
	ErrSealed = errors.New("the state version is sealed already")
	// ErrIncomplete: Seal before all partitions have succeeded.
	ErrIncomplete = errors.New("not all partitions of the state version have succeeded")
)

// The life of a version.
const (
	building int32 = iota
	sealed
	aborted
)

// MapWithStateRDD is one version of an operator's state with the outputs of its batch, a Record
// per partition. Its stage builds it; then the driver seals it, or aborts it if the epoch is
// given up. Sealed, it never changes and can be read by any goroutine until it is released.
//
// Version and outputs have lives of their own: Mapped and Snapshots give datasets that can be
// retained separately. The owner keeps the newest version until it has advanced from it.
type MapWithStateRDD[K comparable, S, M any] struct {
	name        string
	keyed       bool
	partitioner partitioner.Partitioner[K]
	batch       Batch
	time        int64
	first       bool // made from given state, not by a batch
	lines       []*lineage[K, S]
	records     []Record[K, S, M]
	done        []atomic.Bool
	outputs     *chunkPool[M]
	status      atomic.Int32
	stage       *rdd.Stage // nil for a first version
	exec        rdd.Executor
	state       *rdd.Life
	mapped      *rdd.Life
}

func newRDD[K comparable, S, M any](name string, keyed bool, p partitioner.Partitioner[K], batch Batch) *MapWithStateRDD[K, S, M] {
	n := p.Partitions()
	r := &MapWithStateRDD[K, S, M]{
		name: name, keyed: keyed, partitioner: p, batch: batch, time: nanos(batch.Time),
		lines: make([]*lineage[K, S], n), records: make([]Record[K, S, M], n), done: make([]atomic.Bool, n),
	}
	r.state = rdd.NewLife("state of "+name, r.freeState)
	r.mapped = rdd.NewLife("outputs of "+name, r.freeMapped)
	return r
}

// Records are the partitions' records; valid while the version is held. The slice is not to be
// changed.
func (r *MapWithStateRDD[K, S, M]) Records() []Record[K, S, M] { return r.records }

// Partitioner says which partition holds a key.
func (r *MapWithStateRDD[K, S, M]) Partitioner() partitioner.Partitioner[K] { return r.partitioner }

// Partitions is the number of partitions.
func (r *MapWithStateRDD[K, S, M]) Partitions() int { return len(r.records) }

// Batch is the batch that built the version; its epoch is 0 for a first version.
func (r *MapWithStateRDD[K, S, M]) Batch() Batch { return r.batch }

// Time is the version's batch time in unix nanoseconds.
func (r *MapWithStateRDD[K, S, M]) Time() int64 { return r.time }

// Keyed tells whether entry times are deadlines (see UnpackDeadline).
func (r *MapWithStateRDD[K, S, M]) Keyed() bool { return r.keyed }

// Stage builds the version; nil for a first version.
func (r *MapWithStateRDD[K, S, M]) Stage() *rdd.Stage { return r.stage }

// Sealed reports whether the version is complete and final.
func (r *MapWithStateRDD[K, S, M]) Sealed() bool { return r.status.Load() == sealed }

// Stats sums up what the batch did.
func (r *MapWithStateRDD[K, S, M]) Stats() Stats {
	var s Stats
	for i := range r.records {
		s.add(r.records[i].Stats)
	}
	return s
}

// Seal makes the version final: R2, it needs all partitions to have succeeded (ErrIncomplete).
// Driver only.
func (r *MapWithStateRDD[K, S, M]) Seal() error {
	switch r.status.Load() {
	case sealed:
		return r.fault(ErrSealed)
	case aborted:
		return r.fault(statemap.ErrReleased)
	}
	for i := range r.done {
		if !r.done[i].Load() {
			return r.fault(fmt.Errorf("partition %d of %d: %w; abort the version", i, len(r.done), ErrIncomplete))
		}
	}
	for _, l := range r.lines {
		l.seal()
	}
	r.status.Store(sealed)
	return nil
}

// Abort takes back every partition, those that had succeeded too (R4), sealed or not, so that
// the version before can be advanced again. A version that has a successor cannot be aborted.
// Driver only, and not while the stage runs. Calling it again does nothing.
func (r *MapWithStateRDD[K, S, M]) Abort() error {
	was := r.status.Load()
	if was == aborted {
		return nil
	}
	for i, l := range r.lines { // first, so that no partition is taken back alone
		if was == sealed && !l.canUnseal(r.records[i].StateMap) {
			return r.fault(fmt.Errorf("partition %d: %w: abort its successor first", i, statemap.ErrNotNewest))
		}
	}
	var faults []error
	for i, l := range r.lines {
		var err error
		if was == sealed {
			err = l.unseal(r.records[i].StateMap)
		} else {
			err = l.abort()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("partition %d: %w", i, err))
		}
	}
	if len(faults) > 0 {
		return r.fault(errors.Join(faults...))
	}
	r.status.Store(aborted)
	r.state.Close()
	r.mapped.Close()
	return nil
}

// Retain keeps version and outputs until one more Release; ErrReleased if it is too late.
func (r *MapWithStateRDD[K, S, M]) Retain() error {
	if err := r.state.Retain(); err != nil {
		return err
	}
	if err := r.mapped.Retain(); err != nil {
		r.state.Release()
		return err
	}
	return nil
}

// Release gives one Retain back, or lets version and outputs go for the owner. It may be called
// by any goroutine. What is released answers rdd.ErrReleased and never other data (R5).
func (r *MapWithStateRDD[K, S, M]) Release() {
	r.state.Release()
	r.mapped.Release()
}

// ReleaseState lets the state go and keeps the outputs (R7). It counts as the state's half of
// a Release.
func (r *MapWithStateRDD[K, S, M]) ReleaseState() { r.state.Release() }

// ReleaseMapped lets the outputs go and keeps the state. It counts as the outputs' half of a
// Release.
func (r *MapWithStateRDD[K, S, M]) ReleaseMapped() { r.mapped.Release() }

func (r *MapWithStateRDD[K, S, M]) freeState() {
	for i := range r.records {
		if m := r.records[i].StateMap; m != nil {
			m.Release()
		}
	}
}

func (r *MapWithStateRDD[K, S, M]) freeMapped() {
	for i := range r.records {
		r.outputs.put(r.records[i].Mapped)
		r.records[i].Mapped = nil
	}
}

// fault names the version in an error.
func (r *MapWithStateRDD[K, S, M]) fault(err error) error {
	return fmt.Errorf("operator %s epoch %d: %w", r.name, r.batch.Epoch, err)
}
