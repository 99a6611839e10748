package dstream

import (
	"context"
)

// commit makes the epoch durable and its versions the current ones, tells the
// sources, and reports. What a source then says ends the run, and takes nothing
// back.
func (r *run) commit() (name string, err error) {
	e := r.cur
	r.mu.Lock()
	if r.hard.Err() != nil { // see abortLate
		r.mu.Unlock()
		return "", context.Cause(r.hard)
	}
	if r.durable == nil {
		r.committedNow()
		r.mu.Unlock()
	} else {
		r.committing = true
		r.mu.Unlock()
		if err := r.commitDurably(); err != nil {
			return "checkpoint", err
		}
	}
	e.b.over.Store(true)
	for _, in := range r.inputs {
		in.commit()
		err := r.retry(r.hard, in, func() error { return in.src.Committed(r.hard, in.plan) })
		if err != nil {
			return in.name(), err
		}
	}
	e.phase(r, &e.progress.Phases.Commit)
	p := r.report()
	return "listener", r.listen(func(l *Listener) {
		if l.BatchCompleted != nil {
			l.BatchCompleted(p)
		}
	})
}

// committedNow makes the epoch the newest in memory; mu is held.
func (r *run) committedNow() {
	e := r.cur
	for _, n := range r.ops {
		n.op.commit()
	}
	e.progress.Counters = r.ssc.counting.committed()
	r.epoch, r.committedAt = e.batch.Epoch, e.batch.Time
	r.remembered = append(r.remembered, e.b)
	e.committed = true
}

// commitDurably writes the commit. A failure or an abort that comes meanwhile cannot
// unsay it: what is durable counts in memory, too.
func (r *run) commitDurably() error {
	e := r.cur
	c, err := r.durable.commit(r.hard)
	stands, unknown := err == nil, false
	if err != nil {
		stands, unknown = r.durable.fate()
	}
	r.mu.Lock()
	e.unknown = unknown
	r.committing = false
	if stands {
		r.committedNow()
	}
	r.mu.Unlock()
	if err == nil {
		r.durable.committedNow(c)
	}
	return err
}

// report completes the epoch's progress.
func (r *run) report() Progress {
	e := r.cur
	p := &e.progress
	bad, retried := r.exec.tally.take()
	for _, in := range r.inputs {
		s := in.progress()
		s.Retries += retried[s.Name]
		for _, k := range bad.skipped {
			if k.stream == s.Name {
				s.Skipped++
			}
		}
		s.DeadLetters = int64(len(e.b.letters[in.node]))
		p.InputRows += s.InputRows
		p.Sources = append(p.Sources, s)
	}
	p.SkippedRecords, p.DeadLetters = int64(len(bad.skipped)), int64(len(bad.letters))
	e.b.letters = nil // the batch may be remembered long
	if r.durable != nil {
		p.Checkpoint = r.durable.progress()
	}
	p.SchedulingDelay = e.began.Sub(e.batch.Time)
	p.ProcessingDelay = e.lap.Sub(e.began)
	p.TotalDelay = p.SchedulingDelay + p.ProcessingDelay
	r.exec.troubles.forget()
	for i, in := range r.inputs {
		in.pressure.batchDone(e.lap, p.Sources[i].InputRows, p.ProcessingDelay, p.SchedulingDelay)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.SkippedTicks, p.Queued, p.ClockHolds = int64(r.ticks.Skipped), r.ticks.Queued, r.holds
	r.latest = p
	return *p
}
