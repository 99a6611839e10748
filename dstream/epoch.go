package dstream

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// errNotBegun: a stop came before the batch's plan was complete, so there is no
// batch to finish.
var errNotBegun = errors.New("the batch has not begun")

// runEpoch runs one batch from its plan to its commit. On an error nothing of it
// is left, but what plain outputs have sent out.
func (r *run) runEpoch(batch Batch, queued int) error {
	began := r.clock.Now()
	r.mu.Lock()
	r.last = batch
	r.mu.Unlock()
	b := newBatchRun(r, r.hard, batch)
	p := Progress{Batch: batch, Interval: r.ssc.cfg.interval, Queued: queued}
	lap := began
	phase := func(d *time.Duration) {
		now := r.clock.Now()
		*d = now.Sub(lap)
		lap = now
	}

	name, err := r.plan(batch)
	if err != nil {
		return r.giveUp(b, "plan", name, err)
	}
	phase(&p.Phases.Plan)
	if err := r.listen(func(l *Listener) {
		if l.BatchStarted != nil {
			l.BatchStarted(batch)
		}
	}); err != nil {
		return r.giveUp(b, "listener", "", err)
	}
	if name, err := r.compute(b); err != nil {
		return r.giveUp(b, "compute", name, err)
	}
	phase(&p.Phases.Compute)
	for _, n := range r.ops {
		p.Operators = append(p.Operators, n.op.progress())
	}
	if name, err := r.outputs(b, &p); err != nil {
		return r.giveUp(b, "output", name, err)
	}
	phase(&p.Phases.Output)
	r.commit(b, &p)
	name, err = r.committed()
	phase(&p.Phases.Commit)
	p.SchedulingDelay = began.Sub(batch.Time)
	p.ProcessingDelay = lap.Sub(began)
	p.TotalDelay = p.SchedulingDelay + p.ProcessingDelay
	r.mu.Lock()
	r.latest = &p
	r.mu.Unlock()
	if lerr := r.listen(func(l *Listener) {
		if l.BatchCompleted != nil {
			l.BatchCompleted(p)
		}
	}); err == nil && lerr != nil {
		err = lerr
	}
	if err != nil {
		return &BatchError{Batch: batch, Phase: "commit", Name: name, Err: err}
	}
	return nil
}

// plan asks every source what the batch shall read. A stop that comes meanwhile
// ends it: nothing has begun yet.
func (r *run) plan(batch Batch) (name string, err error) {
	ctx, cancel := context.WithCancel(r.hard)
	defer cancel()
	defer context.AfterFunc(r.soft, cancel)()
	limits := source.Limits{Records: r.ssc.cfg.maxRecords, PerPartition: r.ssc.cfg.perPartition(), Epoch: batch.Epoch}
	for _, in := range r.inputs {
		attempt := 0
		in.retries = 0
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
			if r.stopping() && r.hard.Err() == nil {
				err = errNotBegun
			}
			return in.name(), err
		}
	}
	return "", nil
}

// compute makes the RDDs of all outputs and stateful operators, runs the stages
// of the operators, and seals the new versions when all of them have succeeded.
func (r *run) compute(b *batchRun) (name string, err error) {
	defer b.computed()
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
		if err := rdd.Materialize(b.ctx, r.exec, n.op.stage()); err != nil {
			return n.label(), err
		}
		if sabotage.On("seal-before-all") {
			_ = n.op.seal()
			n.op.commit()
		}
	}
	for _, n := range r.ops {
		if err := n.op.seal(); err != nil {
			return n.label(), err
		}
	}
	return "", nil
}

// outputs runs the outputs in the order in which they were registered. A failed
// one runs again over the same kept records.
func (r *run) outputs(b *batchRun, p *Progress) (name string, err error) {
	for _, o := range r.ssc.outputs {
		began := r.clock.Now()
		done := OutputProgress{Name: o.label(), Kind: o.kind}
		for {
			err := r.output(b, o, done.Attempts)
			done.Attempts++
			if err == nil {
				break
			}
			if r.hard.Err() != nil {
				return o.label(), context.Cause(r.hard)
			}
			if lerr := r.listen(func(l *Listener) {
				if l.OutputFailed != nil {
					l.OutputFailed(b.batch, o.label(), err)
				}
			}); lerr != nil {
				return o.label(), errors.Join(err, lerr)
			}
			if done.Attempts > r.ssc.cfg.taskRetries {
				return o.label(), err
			}
		}
		done.Duration = r.clock.Now().Sub(began)
		p.Outputs = append(p.Outputs, done)
	}
	return "", nil
}

// output runs one attempt of an output.
func (r *run) output(b *batchRun, o *output, attempt int) error {
	if attempt > 0 && sabotage.On("output-recompute") {
		b.slots[o.node.id] = slot{}
	}
	return r.do("output "+o.label(), func() error {
		at := func(ctx context.Context) *outputContext { return &outputContext{ctx: ctx, attempt: attempt} }
		if r.harness == nil {
			return o.run(b, at(b.ctx))
		}
		return r.harness.Output(b.ctx, harness.OutputCall{
			Name: o.label(), Kind: o.kind, Epoch: b.batch.Epoch, Time: b.batch.Time, Attempt: attempt,
			Rows:       func(ctx context.Context) (any, error) { return o.rows(b, at(ctx)) },
			Partitions: func(ctx context.Context) (any, error) { return o.parts(b, at(ctx)) },
			Run:        func(ctx context.Context) error { return o.run(b, at(ctx)) },
		})
	})
}

// commit makes the batch's version the current one and forgets old batches.
func (r *run) commit(b *batchRun, p *Progress) {
	r.mu.Lock()
	for _, n := range r.ops {
		n.op.commit()
	}
	r.epoch, r.committedAt = b.batch.Epoch, b.batch.Time
	r.mu.Unlock()
	skipped, retried := r.exec.tally.take()
	for _, in := range r.inputs {
		s := in.progress()
		s.Retries += retried[s.Name]
		for k, n := range skipped {
			if k.stream == s.Name {
				s.Skipped += n
			}
		}
		p.InputRows += s.InputRows
		p.Sources = append(p.Sources, s)
		in.commit()
	}
	for _, n := range skipped {
		p.SkippedRecords += n
	}
	p.SkippedTicks = r.skipped
	r.remember(b)
}

// committed tells the sources that the batch is committed. It is: an error here
// ends the run, and takes nothing back.
func (r *run) committed() (name string, err error) {
	for _, in := range r.inputs {
		err := r.retry(r.hard, in, func() error { return in.src.Committed(r.hard, in.plan) })
		if err != nil {
			return in.name(), err
		}
	}
	return "", nil
}

// giveUp takes back everything of the batch: every partition of every operator,
// those that had succeeded too.
func (r *run) giveUp(b *batchRun, phase, name string, err error) error {
	for _, n := range r.ops {
		if sabotage.On("abort-only-failed") && n.op.stage() != nil && n.op.stage().State() == rdd.StageDone {
			_ = n.op.seal()
			n.op.commit()
			continue
		}
		if aerr := n.op.abort(); aerr != nil {
			err = errors.Join(err, aerr)
		}
	}
	b.dropAll()
	r.exec.tally.take()
	if errors.Is(err, errNotBegun) {
		return errNotBegun
	}
	if r.hard.Err() != nil {
		return context.Cause(r.hard)
	}
	failed := &BatchError{Batch: b.batch, Phase: phase, Name: name, Err: err}
	if lerr := r.listen(func(l *Listener) {
		if l.BatchFailed != nil {
			l.BatchFailed(b.batch, failed)
		}
	}); lerr != nil {
		failed.Err = errors.Join(failed.Err, lerr)
	}
	return failed
}

// remember keeps b, and forgets what has been remembered long enough.
func (r *run) remember(b *batchRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remembered = append(r.remembered, b)
	if sabotage.On("remember-forgotten") {
		return
	}
	longest := time.Duration(0)
	for _, n := range r.ssc.nodes {
		longest = max(longest, r.rememberOf(n))
		for _, old := range r.remembered {
			if !old.batch.Time.After(b.batch.Time.Add(-r.rememberOf(n))) {
				old.drop(n.id)
			}
		}
	}
	r.remembered = slices.DeleteFunc(r.remembered, func(old *batchRun) bool {
		if old.batch.Time.After(b.batch.Time.Add(-longest)) {
			return false
		}
		old.dropAll()
		return true
	})
}

// rememberOf is how long a stream's RDDs are kept.
func (r *run) rememberOf(n *node) time.Duration {
	return max(n.remember, r.ssc.cfg.remember, n.slide)
}
