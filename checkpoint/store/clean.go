package store

import (
	"context"
	"errors"
	"io/fs"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/vfs"
)

// clean deletes what the ledger gives up, beside the snapshots: neither waits
// for the other.
func (m *Maintainer) clean(ctx context.Context, more <-chan struct{}) {
	for ctx.Err() == nil {
		m.sweep(ctx)
		m.empty(ctx)
		m.sleep(ctx, more)
	}
}

// empty deletes names until none is left or one fails, which is tried again at
// the next look.
func (m *Maintainer) empty(ctx context.Context) {
	for ctx.Err() == nil {
		m.mu.Lock()
		name, ok := m.ledger.discard()
		m.mu.Unlock()
		if !ok {
			return
		}
		err := m.c.Store.Delete(ctx, name)
		m.mu.Lock()
		m.ledger.discarded(name, err != nil)
		if err == nil {
			m.ok(Notice{Kind: NoticeDeleteFailed, Name: name})
		}
		m.mu.Unlock()
		if err != nil {
			if ctx.Err() == nil {
				m.fail(Notice{Kind: NoticeDeleteFailed, Name: name, Err: err})
			}
			return
		}
	}
}

// tellBad tells, once, the snapshots that loads found bad.
func (m *Maintainer) tellBad() {
	m.mu.Lock()
	list := m.ledger.bad
	m.ledger.bad = nil
	m.mu.Unlock()
	for _, n := range list {
		m.tell(n)
	}
}

// sweep lists, once per run, what earlier runs left behind: files that were not
// deleted, snapshots that nobody names, and temporary files.
func (m *Maintainer) sweep(ctx context.Context) {
	m.mu.Lock()
	swept := m.swept
	m.mu.Unlock()
	if swept || m.start == nil {
		return // before the first commit nothing may be deleted
	}
	err := m.look(ctx)
	m.mu.Lock()
	if m.swept = err == nil; m.swept {
		m.ok(Notice{Kind: NoticeSweepFailed})
	}
	m.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		m.fail(Notice{Kind: NoticeSweepFailed, Err: err})
	}
}

func (m *Maintainer) look(ctx context.Context) error {
	folders := []string{"state/", "offsets/", "commits/"}
	if m.start.Counts() {
		folders = append(folders, "counts/")
	}
	for _, folder := range folders {
		list, err := m.c.Store.List(ctx, folder)
		if err != nil {
			return err
		}
		names := make([]string, len(list))
		for i, o := range list {
			names[i] = o.Name
		}
		commit, err := m.commits(ctx, names)
		if err != nil {
			return err
		}
		m.mu.Lock()
		for _, o := range list {
			m.found(o, commit)
		}
		m.mu.Unlock()
		left, err := m.c.Store.Leftovers(ctx, folder)
		if err != nil {
			return err
		}
		names = names[:0]
		for _, l := range left {
			names = append(names, l.Target, l.Target) // twice: so its commit is asked for
		}
		if commit, err = m.commits(ctx, names); err != nil {
			return err
		}
		m.mu.Lock()
		for _, l := range left {
			if checkpoint.DeletableLeftover(l.Target, l.Tag, m.c.Tag, m.start, commit) {
				m.ledger.junk(l.Name)
			}
		}
		m.mu.Unlock()
	}
	return nil
}

// commits reads the commits that must be known to judge files (P5 b): of the
// epochs of which a partition has two deltas. One alone is that of the commit,
// or one that is of no use and no harm until F passes it; so a start does not
// read all commits.
func (m *Maintainer) commits(ctx context.Context, names []string) (func(epoch uint64) *checkpoint.Commit, error) {
	type place struct {
		id      Partition
		version uint64
	}
	count := map[place]int{}
	known := map[uint64]*checkpoint.Commit{}
	for _, name := range names {
		n, ok := checkpoint.ParseStateName(name)
		if !ok || n.Kind != statefile.Delta || n.Version < m.start.Floor || n.Version > m.start.Epoch {
			continue
		}
		at := place{Partition{n.Number, n.Layout, n.Part}, n.Version}
		if count[at]++; count[at] != 2 || known[n.Version] != nil {
			continue
		}
		c, err := m.c.Root.Commit(ctx, n.Version)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without it nothing is known, so all stay
		}
		if err != nil {
			return nil, err
		}
		known[n.Version] = c
	}
	return func(epoch uint64) *checkpoint.Commit { return known[epoch] }, nil
}

// found enters what the listing showed. mu is held.
func (m *Maintainer) found(o vfs.Object, commit func(epoch uint64) *checkpoint.Commit) {
	if checkpoint.Deletable(o.Name, m.start, commit) {
		m.ledger.junk(o.Name)
		return
	}
	if epoch, _, ok := checkpoint.ParseCountsName(o.Name); ok {
		m.ledger.counted(epoch, o.Name)
		m.ledger.dropCounts() // one that was committed meanwhile
		return
	}
	n, ok := checkpoint.ParseStateName(o.Name)
	if !ok || n.Version > m.start.Epoch {
		return // of an epoch that may still be adopted, or one that is made now
	}
	m.ledger.found(Partition{n.Number, n.Layout, n.Part}, file{version: n.Version, name: o.Name, size: o.Size, whole: n.Kind == statefile.Snapshot})
}
