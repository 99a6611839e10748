package store

import (
	"context"
	"math"

	"github.com/statemill/statemill/checkpoint"
)

// write makes a handle's version durable, as an epoch of the root.
func (p *Provider[K, S]) write(ctx context.Context, h *handle[K, S], n uint64) (*checkpoint.Commit, error) {
	p.committing.Lock()
	defer p.committing.Unlock()
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	newest, op := p.commit, p.op
	p.mu.Unlock()
	if newest != nil && newest.Epoch >= n {
		return nil, ErrExists
	}
	if len(h.views) > 0 {
		if err := h.note(); err != nil {
			return nil, err
		}
	}
	m, err := p.maintainer(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.BeforeCommit(ctx); err != nil {
		return nil, err
	}
	c, err := p.epoch(ctx, h, n, newest, op)
	if err != nil {
		return nil, p.end(ctx, err)
	}
	p.pending = false
	m.Committed(c)
	p.count(m)
	return c, nil
}

// epoch takes the session through one epoch.
func (p *Provider[K, S]) epoch(ctx context.Context, h *handle[K, S], n uint64, newest *checkpoint.Commit, op *Operator[K, S]) (*checkpoint.Commit, error) {
	s := p.session
	time, prev := h.time, checkpoint.PartitionCommit{}
	plan := checkpoint.Plan{Time: time}
	if newest != nil {
		plan.Prev = newest.Time
		plan.Time = max(time, newest.Time+1)
		prev = newest.Operators[0].Partitions[0]
	}
	if p.pending {
		plan.Time = s.Start().Pending.Time // the epoch's for ever
	} else if err := s.Plan(ctx, plan); err != nil {
		return nil, err
	}
	if err := s.Deltas(ctx); err != nil {
		return nil, err
	}
	pc, err := op.write(ctx, 0, n, plan.Time, prev, int64(h.m.Len()), h.fill, false)
	if err != nil {
		return nil, err
	}
	if err := s.Outputs(); err != nil {
		return nil, err
	}
	return s.Commit(ctx, checkpoint.CommitInput{
		Operators: []checkpoint.OperatorCommit{{
			Number: op.c.Operator.Number, Layout: op.c.Operator.Layout, Partitions: []checkpoint.PartitionCommit{pc},
		}},
		Floor: p.maint.Floor(math.MaxUint64),
	})
}
