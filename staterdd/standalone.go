package staterdd

import (
	"context"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// NewPartition makes a Partition of the operator that stands alone, with empty state of its own:
// all keys are taken to belong to it. For each batch call Begin, then Update any number of
// times, Expire, and Seal or Abort.
func (op *Operator[K, V, S, M]) NewPartition() (*Partition[K, V, S, M], error) {
	m, err := statemap.New[K, S](op.maps)
	if err != nil {
		return nil, op.fail(0, err)
	}
	m.Seal()
	p := newPartition(op, 0)
	p.line = &lineage[K, S]{newest: m}
	return p, nil
}

// Begin opens the version of the batch.
func (p *Partition[K, V, S, M]) Begin(batch Batch) error {
	t := &rdd.Task{Ctx: context.Background(), Name: p.op.name}
	return p.begin(t, p.line, p.line.newest, batch, nanos(batch.Time)-p.op.slide)
}

// Update runs records given as columns of equal length. Their origin's offset is the index.
func (p *Partition[K, V, S, M]) Update(keys []K, values []V) error {
	if p.op.updates() {
		return p.gatherColumns(keys, values)
	}
	base := 0
	p.at = func(row int) { p.task.Origin = rdd.Origin{Offset: int64(base + row)} }
	defer p.locate()
	for base < len(keys) {
		n := min(p.op.blockSize, len(keys)-base)
		k := keys[base : base+n]
		h := p.hash[:n]
		hash := p.op.hash
		for i := range k {
			h[i] = hash(k[i])
		}
		if err := p.records(h, k, values[base:base+n]); err != nil {
			return err
		}
		base += n
	}
	p.settle()
	return nil
}

// UpdateRows runs the records of a row block of a shuffle.
func (p *Partition[K, V, S, M]) UpdateRows(r *rdd.Rows[K, V]) error {
	if p.op.updates() {
		return p.gather(r)
	}
	return p.rows(r)
}

// Expire makes the calls for the keys that have become due; those of an update function are
// all made here.
func (p *Partition[K, V, S, M]) Expire() error { return p.afterData() }

// Seal ends the batch and returns its record. The version before is released; the record's
// outputs are valid until Recycle.
func (p *Partition[K, V, S, M]) Seal() Record[K, S, M] {
	r := p.record()
	before := p.line.newest
	p.line.seal()
	before.Release()
	p.end()
	return r
}

// Recycle takes back the outputs of a record for later batches.
func (p *Partition[K, V, S, M]) Recycle(r Record[K, S, M]) { p.op.outputs.put(r.Mapped) }

// Abort takes the batch back.
func (p *Partition[K, V, S, M]) Abort() error {
	p.out.drop()
	p.end()
	return p.line.abort()
}
