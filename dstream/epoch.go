package dstream

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/core"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// errNotBegun: a stop came before the batch's plan was complete, so there is no
// batch to finish.
var errNotBegun = errors.New("the batch has not begun")

// epochRun is the running epoch. The hand owns it.
type epochRun struct {
	batch     Batch
	b         *batchRun
	progress  Progress
	began     time.Time
	lap       time.Time // when the running phase began
	prev      int64     // batch time of the epoch before
	sealed    bool
	committed bool
	unknown   bool // nobody can tell whether it is

	written map[*node]time.Duration // how long an operator's deltas took
}

// begin opens an epoch.
func (r *run) begin(b core.Batch) {
	batch := Batch{Epoch: b.Epoch, Time: time.Unix(0, b.Time).UTC()}
	now := r.clock.Now()
	r.cur = &epochRun{
		batch: batch, b: newBatchRun(r, r.hard, batch), began: now, lap: now, prev: b.Prev,
		progress: Progress{Batch: batch, Redo: b.Redo, Interval: r.ssc.cfg.interval},
		written:  map[*node]time.Duration{},
	}
	r.exec.troubles.forget()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = batch
}

// phase notes how long a phase took.
func (e *epochRun) phase(r *run, d *time.Duration) {
	now := r.clock.Now()
	*d = now.Sub(e.lap)
	e.lap = now
}

// plan asks every source what the batch shall read. A stop that comes meanwhile
// ends it: nothing has begun yet.
func (r *run) plan() (name string, err error) {
	batch := r.cur.batch
	ctx, cancel := context.WithCancel(r.hard)
	defer cancel()
	defer context.AfterFunc(r.halt, cancel)()
	limits := source.Limits{Records: r.ssc.cfg.maxRecords, PerPartition: r.ssc.cfg.perPartition(), Bytes: r.ssc.cfg.maxBytes, Epoch: batch.Epoch}
	for _, in := range r.inputs {
		attempt := 0
		in.retries = 0
		limits := in.pressure.bound(limits, r.ssc.cfg.interval)
		in.limit, in.limitBytes, in.rate = limits.Records, limits.Bytes, in.pressure.inForce()
		err := r.retry(ctx, in, func() error {
			if r.harness != nil {
				attempt++
				if err := r.harness.Plan(in.name(), batch.Epoch, attempt-1); err != nil {
					return err
				}
			}
			p, err := in.src.Plan(ctx, limits)
			if err != nil {
				return err
			}
			return in.begin(p)
		})
		if err != nil {
			if r.halt.Err() != nil && r.hard.Err() == nil {
				err = errNotBegun
			}
			return in.name(), err
		}
	}
	if r.durable != nil {
		began := r.clock.Now()
		if err := r.durable.plan(r.hard, r.cur.prev); err != nil {
			return "checkpoint", err
		}
		r.cur.progress.Phases.PlanCommit = r.clock.Now().Sub(began)
	}
	return r.batchStarted()
}

// batchStarted tells that the batch is planned.
func (r *run) batchStarted() (name string, err error) {
	e := r.cur
	e.phase(r, &e.progress.Phases.Plan)
	return "listener", r.listen(func(l *Listener) {
		if l.BatchRedone != nil && e.progress.Redo {
			l.BatchRedone(e.batch)
		}
		if l.BatchStarted != nil {
			l.BatchStarted(e.batch)
		}
	})
}

// redo computes an epoch that an earlier run has planned: the sources are not
// asked again.
func (r *run) redo() (name string, err error) {
	if err := r.durable.redo(); err != nil {
		return "checkpoint", err
	}
	if name, err := r.batchStarted(); err != nil {
		return name, err
	}
	return r.compute()
}

// compute makes the RDDs of all outputs and stateful operators, and runs the
// stages of the operators.
func (r *run) compute() (name string, err error) {
	b := r.cur.b
	defer b.computed()
	r.computing()
	for _, n := range r.ops {
		if _, err := b.get(n); err != nil {
			return n.label(), err
		}
	}
	for _, o := range r.ssc.outputs {
		if _, err := b.get(o.node); err != nil {
			return o.node.label(), err
		}
	}
	for _, n := range r.ops {
		if stage := n.op.stage(); stage != nil { // it is due
			if err := rdd.Materialize(b.ctx, r.exec, stage); err != nil {
				return n.label(), err
			}
		}
		if sabotage.On("seal-before-all") {
			n.op.commit()
		}
		if err := r.measure(n); err != nil {
			return n.label(), err
		}
		if r.durable != nil {
			began := r.clock.Now()
			if err := r.durable.deltas(b.ctx, n); err != nil {
				return n.label(), err
			}
			r.cur.written[n] = r.clock.Now().Sub(began)
		}
	}
	if name, err := b.keepForWindows(); err != nil {
		return name, err
	}
	r.cur.phase(r, &r.cur.progress.Phases.Compute)
	return "", nil
}

// seal makes sure that version N is whole: all partitions of all operators have
// succeeded (R2).
func (r *run) seal() (name string, err error) {
	e := r.cur
	for _, n := range r.ops {
		if err := n.op.sealed(); err != nil {
			return n.label(), err
		}
	}
	e.sealed = true
	for _, n := range r.ops {
		p := n.op.progress()
		p.Commit = e.written[n]
		if r.meter != nil {
			p.MemoryBytes = r.meter.bytes(n)
		}
		e.progress.Operators = append(e.progress.Operators, p)
	}
	return "", nil
}

// rollBack takes back everything of the running epoch (R4): every partition of
// every operator, those that had succeeded too.
func (r *run) rollBack(cause error) {
	e := r.cur
	if e == nil || e.committed {
		return
	}
	if r.durable != nil {
		r.broken = errors.Join(r.broken, r.durable.aborted(cause))
	}
	e.b.over.Store(true)
	for _, n := range r.ops {
		if sabotage.On("abort-only-failed") && n.op.stage() != nil && n.op.stage().State() == rdd.StageDone {
			n.op.commit()
			continue
		}
		if err := n.op.abort(); err != nil {
			r.broken = errors.Join(r.broken, err)
		}
	}
	e.b.dropAll()
	r.exec.tally.take()
	r.ssc.counting.drop()
}

// forget lets go of what every stream has remembered long enough: batches with
// a time not after the newest one's minus the stream's remember duration.
func (r *run) forget() {
	if sabotage.On("remember-forgotten") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	longest := time.Duration(0)
	old := func(b *batchRun, d time.Duration) bool { return !b.batch.Time.After(r.committedAt.Add(-d)) }
	for _, n := range r.ssc.nodes {
		d := r.rememberOf(n)
		longest = max(longest, d)
		for _, b := range r.remembered {
			if old(b, d) {
				b.drop(n.id)
			}
		}
	}
	r.remembered = slices.DeleteFunc(r.remembered, func(b *batchRun) bool { return old(b, longest) })
}

// rememberOf is how long a stream's RDDs are kept.
func (r *run) rememberOf(n *node) time.Duration {
	return max(n.remember, r.ssc.cfg.remember, n.slide, n.needed)
}
