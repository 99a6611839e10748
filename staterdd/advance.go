package staterdd

import (
	"errors"
	"fmt"

	"github.com/statemill/statemill/rdd"
)

// ErrBatchTime: a batch whose time is not later than that of the batch before.
var ErrBatchTime = errors.New("batch times must grow")

// Advance makes the version after prev: data are the batch's records (nil: none), laid out by
// the operator's partitioner. Nothing runs before the stage does; each of its tasks updates one
// partition and may run again. When the stage is done the driver calls Seal; if the epoch is
// given up, Abort.
//
// prev must be sealed and have the operator's partitioner, as must data (D2: ErrPartitioner). It
// is not changed and must be held until the new version is sealed or aborted. Advancing from a
// version that has a successor already clones its maps.
func (op *Operator[K, V, S, M]) Advance(prev *MapWithStateRDD[K, S, M], data *rdd.Shuffled[K, V], batch Batch) (*MapWithStateRDD[K, S, M], *rdd.Stage, error) {
	if err := op.checkAdvance(prev, data, batch); err != nil {
		return nil, nil, fmt.Errorf("operator %s epoch %d: %w", op.name, batch.Epoch, err)
	}
	next := newRDD[K, S, M](op.name, op.keyed(), op.partitioner, batch)
	next.outputs, next.exec = op.outputs, op.exec
	for i, l := range prev.lines {
		if l.newest != prev.records[i].StateMap {
			l = &lineage[K, S]{newest: prev.records[i].StateMap} // a fork
		}
		next.lines[i] = l
	}
	prevTime := prev.time
	switch { // there was no batch yet
	case prev.first && op.grid != nil:
		prevTime -= op.slide // it was made for the first slide, which may be over
	case prev.first:
		prevTime = min(prevTime, next.time-op.slide)
	}
	var deps []*rdd.Stage
	if data != nil {
		deps = []*rdd.Stage{data.Stage()}
	}
	next.stage = rdd.NewStage(rdd.StageConfig{
		Name: op.name, Deps: deps, Tasks: len(next.records),
		Run: func(t *rdd.Task) error { return op.run(t, prev, next, data, prevTime) },
	})
	return next, next.stage, nil
}

func (op *Operator[K, V, S, M]) checkAdvance(prev *MapWithStateRDD[K, S, M], data *rdd.Shuffled[K, V], batch Batch) error {
	switch {
	case prev == nil:
		return fmt.Errorf("%w: there is no version to advance from; make one by Initial", ErrNotSealed)
	case !prev.Sealed():
		return fmt.Errorf("%w: epoch %d", ErrNotSealed, prev.batch.Epoch)
	case !prev.partitioner.Equal(op.partitioner):
		return fmt.Errorf("%w: the state lies by %s, the operator's is %s; lay the state out anew by Restore", ErrPartitioner, prev.partitioner, op.partitioner)
	case nanos(batch.Time) < prev.time || nanos(batch.Time) == prev.time && !prev.first:
		return fmt.Errorf("%w: %s after %s", ErrBatchTime, fromNanos(nanos(batch.Time)), fromNanos(prev.time))
	}
	for i, l := range prev.lines {
		if l.open != nil && l.newest == prev.records[i].StateMap {
			return fmt.Errorf("%w: a version after epoch %d is being built; seal or abort it first", ErrOverlap, prev.batch.Epoch)
		}
	}
	if err := prev.state.Err(); err != nil {
		return err
	}
	if data == nil {
		return nil
	}
	if err := data.Err(); err != nil {
		return err
	}
	if !op.partitioner.Equal(data.Partitioner()) {
		return fmt.Errorf("%w: the data lie by %s, the state by %s; use the same for both", ErrPartitioner, data.Partitioner(), op.partitioner)
	}
	return nil
}

// run is one attempt of one task: it discards what an earlier attempt wrote and begins anew.
func (op *Operator[K, V, S, M]) run(t *rdd.Task, prev, next *MapWithStateRDD[K, S, M], data *rdd.Shuffled[K, V], prevTime int64) error {
	i := t.Partition
	switch next.status.Load() {
	case sealed:
		return next.fault(ErrSealed) // R3
	case aborted:
		return next.fault(rdd.ErrReleased)
	}
	p := op.parts[i]
	next.done[i].Store(false)
	op.outputs.put(next.records[i].Mapped)
	next.records[i] = Record[K, S, M]{}
	if err := p.begin(t, next.lines[i], prev.records[i].StateMap, next.batch, prevTime); err != nil {
		return err
	}
	defer p.end()
	began := op.now()
	if err := p.beforeData(); err != nil {
		return err
	}
	if data != nil {
		read := p.rows
		if op.updates() {
			read = p.gather
		}
		if err := data.Read(t, i, read); err != nil {
			return err
		}
	}
	read := op.now()
	if err := p.afterData(); err != nil {
		return err
	}
	next.records[i] = p.record()
	s := &next.records[i].Stats
	s.Updates, s.Removals = read.Sub(began), op.now().Sub(read)
	next.done[i].Store(true)
	return nil
}
