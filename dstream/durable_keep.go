package dstream

import (
	"context"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
)

// keep starts maintenance: snapshots and clean-up, beside the batches.
func (d *durable) keep(loads []store.LoadStats) error {
	d.stopKeeping()
	o, policy := &d.cfg.opts, d.policy()
	cfg := store.MaintainerConfig{
		Store: d.store, Root: d.session.Root(), Clock: d.r.clock,
		Term: d.start.Term, Tag: d.id, Counts: d.counts && len(d.units) > 0, Policy: policy, Retain: o.MinSnapshotsToRetain,
		Interval: o.MaintenanceInterval, Workers: d.r.workers, Notice: d.maintenance,
	}
	for _, n := range d.r.ops {
		u := n.op.unit(d.r)
		u.Number = d.start.Operators[d.place[n.label()]].Number
		u.Policy = policy.With(u.Policy)
		cfg.Units = append(cfg.Units, u)
	}
	keeper, err := store.NewMaintainer(cfg, d.start.Commit, loads)
	if err != nil {
		return err
	}
	d.keeper = keeper
	if d.inline() {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.keeping.Go(func() { _ = keeper.Run(ctx) }) // its faults are in its Stats, and told as notices
	return nil
}

// policy says when snapshots are due, an operator's own interval apart.
func (d *durable) policy() store.Policy {
	policy := store.EveryVersions(store.DefaultEveryVersions)
	if n := d.cfg.opts.SnapshotVersions; n > 0 {
		policy = store.EveryVersions(uint64(n))
	}
	if !d.cfg.opts.NoSnapshotBySize {
		policy = policy.With(store.BySize(store.DefaultBySize))
	}
	return policy
}

// inline says that maintenance is done between the epochs instead of beside them:
// in tests, whose every run then makes the same calls in the same order.
func (d *durable) inline() bool { return d.r.harness != nil && d.r.harness.MaintainsInline() }

// stopKeeping ends maintenance and waits for it.
func (d *durable) stopKeeping() {
	if d.stop == nil {
		return
	}
	d.stop()
	d.keeping.Wait()
	d.stop = nil
}

// maintenance is told what maintenance has met, on its goroutines.
func (d *durable) maintenance(n store.Notice) {
	switch n.Kind {
	case store.NoticeSnapshot, store.NoticeSnapshotForced, store.NoticeSnapshotBad:
		return // counted, or told by the load
	}
	name := ""
	for _, op := range d.start.Operators {
		if op.Number == n.Partition.Operator {
			name = op.Name
		}
	}
	d.notice(Notice{Kind: checkpoint.NoticeSnapshot, Operator: name, Err: n.Err, Text: n.String()})
}

// mostNotices bounds what is kept for a listener that is not called for long.
const mostNotices = 1000

// notice keeps a notice until the driver tells it.
func (d *durable) notice(n Notice) {
	if n.Kind == checkpoint.NoticeRetry {
		d.r.exec.troubles.failed("checkpoint", d.r.clock.Now(), n.Err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.notices) < mostNotices {
		d.notices = append(d.notices, n)
	}
}

// tellNotices tells the listeners what has come up since.
func (d *durable) tellNotices() error {
	d.mu.Lock()
	told := d.notices
	d.notices = nil
	d.mu.Unlock()
	if len(told) == 0 {
		return nil
	}
	return d.r.listen(func(l *Listener) {
		for _, n := range told {
			if l.Notice != nil {
				l.Notice(n)
			}
		}
	})
}

// progress completes the checkpoint's part of an epoch's progress.
func (d *durable) progress() CheckpointProgress {
	p, s := d.files, d.keeper.Stats()
	p.Root, p.Run, p.Term = d.start.Root, d.id, d.start.Term
	p.Snapshots, p.SnapshotBytes, p.SnapshotsFailed, p.SnapshotsForced = s.Snapshots, s.SnapshotBytes, s.Failed, s.Forced
	p.Deleted, p.ChainMax, p.Floor = s.Deleted, s.ChainMax, s.Floor
	return p
}
