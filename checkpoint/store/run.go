package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
)

// Run works until ctx ends, and then returns nil when all its goroutines have
// ended; a snapshot that is being written then is given up. It begins with one
// listing of the root, for what earlier runs left behind; after that it lists
// nothing.
func (m *Maintainer) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer m.unpin()
	defer wg.Wait()
	m.tellBad()
	trash := make(chan struct{}, 1)
	wg.Go(func() { m.clean(ctx, trash) })
	for ctx.Err() == nil {
		for {
			job, ok := m.next()
			if !ok {
				break
			}
			wg.Go(func() {
				m.write(ctx, job, NoticeSnapshot)
				m.poke()
			})
		}
		select {
		case trash <- struct{}{}:
		default:
		}
		m.sleep(ctx, m.wake)
	}
	return nil
}

// sleep waits for a poke, for the time of the next retry, or for the interval.
func (m *Maintainer) sleep(ctx context.Context, poked <-chan struct{}) {
	m.mu.Lock()
	wait := m.ledger.wait(m.now(), int64(m.c.Interval))
	m.mu.Unlock()
	t := m.c.Clock.NewTimer(time.Duration(wait))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-poked:
	case <-t.C():
	}
}

// Round does all that is due now, one thing after the other, and returns. It is
// what Run does, for those who have no goroutine for it. The error is that of
// ctx.
func (m *Maintainer) Round(ctx context.Context) error {
	m.tellBad()
	for ctx.Err() == nil {
		job, ok := m.next()
		if !ok {
			break
		}
		m.write(ctx, job, NoticeSnapshot)
	}
	m.sweep(ctx)
	m.empty(ctx)
	return context.Cause(ctx)
}

// job is a snapshot that is to be written.
type job struct {
	id  Partition
	pin *Pinned // nil: the newest version
}

// next takes the snapshot that is most due.
func (m *Maintainer) next() (job, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.ledger.next(m.now(), func(id Partition) bool { return m.units[id.Operator] != nil })
	if !ok {
		return job{}, false
	}
	return m.take(id), true
}

// take hands the pin of a partition over to a writer. mu is held.
func (m *Maintainer) take(id Partition) job {
	j := job{id: id, pin: m.exact[id]}
	delete(m.exact, id)
	m.ledger.accounts[id].exact = false
	return j
}

// write writes a snapshot and enters how it ended. kind is what a success is
// told as.
func (m *Maintainer) write(ctx context.Context, j job, kind NoticeKind) {
	w, err := m.attempt(ctx, j)
	m.mu.Lock()
	var f *file
	if w.Name != "" {
		f = &file{version: w.Version, name: w.Name, size: w.Size}
	}
	if f != nil && kind == NoticeSnapshot && m.ledger.accounts[j.id].remake {
		kind = NoticeSnapshotRepaired
	}
	if errors.Is(err, errEarly) {
		m.ledger.later(j.id)
		err = nil
	} else {
		m.ledger.done(j.id, f, err != nil, m.now(), int64(m.c.Interval))
	}
	if err == nil {
		m.ok(Notice{Kind: NoticeSnapshotFailed, Partition: j.id})
	}
	if f != nil && kind == NoticeSnapshotForced {
		m.ledger.stats.Forced++
	}
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil:
		m.fail(Notice{Kind: NoticeSnapshotFailed, Partition: j.id, Version: w.Version, Err: err})
	case f != nil:
		m.tell(Notice{Kind: kind, Partition: j.id, Version: w.Version, Name: w.Name, Size: w.Size})
	}
}

// errEarly: the newest version was pinned before its commit was told.
var errEarly = errors.New("the version is not told yet")

// attempt pins, writes and releases. Nothing is written, and w has no name, if
// the pinned version has its snapshot already.
func (m *Maintainer) attempt(ctx context.Context, j job) (w Written, err error) {
	p := j.pin
	if p == nil {
		newest, err := m.units[j.id.Operator].Pin(j.id.Partition)
		if err != nil {
			return w, err
		}
		p = &newest
	}
	defer p.Release()
	m.mu.Lock()
	told, a := m.ledger.newest, m.ledger.accounts[j.id]
	have := p.Version == a.last || p.Version <= a.above && !sabotage.On("snapshot-rewritten")
	m.mu.Unlock()
	w.Version = p.Version
	switch {
	case p.Version > told:
		return w, errEarly // its run may still turn out not to be the owner
	case have:
		return w, nil
	}
	out, err := p.Write(ctx)
	if err != nil {
		return w, err
	}
	return out, nil
}

// BeforeCommit is called before each commit. It returns at once unless the
// chain of a partition would pass twice its policy's interval: then it waits
// for the snapshot of that partition that is being written, and writes one if
// that was too old, or if none is under way. That one fails is no error of it
// and does not hold the commit up any longer; only ctx's end is.
func (m *Maintainer) BeforeCommit(ctx context.Context) error {
	tried := map[Partition]bool{}
	for ctx.Err() == nil {
		m.mu.Lock()
		if !m.ledger.tooLong() || sabotage.On("not-forced") {
			m.mu.Unlock()
			return nil
		}
		var jobs []job
		for _, id := range m.ledger.forced(m.now()) {
			if m.units[id.Operator] != nil && !tried[id] {
				tried[id] = true
				m.ledger.begin(m.ledger.accounts[id])
				jobs = append(jobs, m.take(id))
			}
		}
		waiting, changed := m.ledger.waiting(), m.changed
		m.mu.Unlock()
		switch {
		case len(jobs) > 0:
			m.force(ctx, jobs)
		case !waiting:
			return nil
		default:
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
	return context.Cause(ctx)
}

// force writes snapshots for which a commit waits, side by side.
func (m *Maintainer) force(ctx context.Context, jobs []job) {
	begun := make([]bool, len(jobs))
	_ = pool.Run(ctx, m.c.Workers, len(jobs), func(ctx context.Context, _, i int) error {
		begun[i] = true
		m.write(ctx, jobs[i], NoticeSnapshotForced)
		return nil
	})
	for i, j := range jobs {
		if !begun[i] {
			m.drop(j)
		}
	}
}

// drop gives a job back that ctx's end kept from being begun.
func (m *Maintainer) drop(j job) {
	if j.pin != nil {
		j.pin.Release()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.done(j.id, nil, false, 0, 0)
}

// unpin releases the versions that are still to be written when Run ends.
func (m *Maintainer) unpin() {
	m.mu.Lock()
	pins := m.exact
	m.exact = map[Partition]*Pinned{}
	for id := range pins {
		m.ledger.accounts[id].exact = false
	}
	m.mu.Unlock()
	for _, p := range pins {
		p.Release()
	}
}
