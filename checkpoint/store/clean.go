package store

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

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
	if swept || m.start == 0 {
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
	states, err := m.c.Store.List(ctx, "state/")
	if err != nil {
		return err
	}
	if err := m.found(ctx, states); err != nil {
		return err
	}
	for _, folder := range []string{"offsets/", "commits/"} {
		docs, err := m.c.Store.List(ctx, folder)
		if err != nil {
			return err
		}
		m.mu.Lock()
		for _, o := range docs {
			if n, ok := numberOf(o.Name, folder); ok && n < m.ledger.floor && n <= m.start {
				m.ledger.junk(o.Name)
			}
		}
		m.mu.Unlock()
	}
	for _, folder := range []string{"state/", "offsets/", "commits/"} {
		left, err := m.c.Store.Leftovers(ctx, folder)
		if err != nil {
			return err
		}
		m.mu.Lock()
		for _, l := range left {
			if n, ok := versionOf(l.Target); ok && n <= m.start && l.Tag != m.c.Tag {
				m.ledger.junk(l.Name)
			}
		}
		m.mu.Unlock()
	}
	return nil
}

// found enters the state files of earlier runs. Of several deltas of one version
// of a partition its commit names one; the others are those of attempts that
// lost (P5 b). Files of versions after the newest commit belong to an epoch that
// may still be adopted: they are left alone.
func (m *Maintainer) found(ctx context.Context, list []vfs.Object) error {
	type place struct {
		id      Partition
		version uint64
	}
	deltas := map[place][]vfs.Object{}
	m.mu.Lock()
	for _, o := range list {
		n, ok := checkpoint.ParseStateName(o.Name)
		if !ok || n.Version > m.start {
			continue
		}
		id := Partition{n.Number, n.Layout, n.Part}
		if n.Kind == statefile.Delta {
			at := place{id, n.Version}
			deltas[at] = append(deltas[at], o)
		}
		m.ledger.found(id, file{version: n.Version, name: o.Name, size: o.Size, whole: n.Kind == statefile.Snapshot})
	}
	floor := m.ledger.floor
	m.mu.Unlock()
	for at, objects := range deltas {
		if len(objects) < 2 || at.version < floor {
			continue
		}
		c, err := m.c.Root.Commit(ctx, at.version)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without its commit nothing is known, so all stay
		}
		if err != nil {
			return err
		}
		pc, ok := partitionOf(c, at.id)
		if !ok {
			continue
		}
		m.mu.Lock()
		for _, o := range objects {
			if !strings.HasSuffix(o.Name, "/"+pc.File) {
				m.ledger.orphan(at.id, o.Name)
			}
		}
		m.mu.Unlock()
	}
	return nil
}

func numberOf(name, folder string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, folder), 10, 64)
	return n, err == nil
}

// versionOf gives the version that a file belongs to.
func versionOf(name string) (uint64, bool) {
	if n, ok := checkpoint.ParseStateName(name); ok {
		return n.Version, true
	}
	for _, folder := range []string{"offsets/", "commits/"} {
		if strings.HasPrefix(name, folder) {
			return numberOf(name, folder)
		}
	}
	return 0, false
}
