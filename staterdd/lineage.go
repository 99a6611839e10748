package staterdd

import (
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/timeout"
)

// lineage is the writer's end of one partition's chain of versions, with the expiry index that
// goes with its newest version. It passes from each version to the next; at any time either
// one task or the driver uses it.
type lineage[K comparable, S any] struct {
	newest *statemap.Map[K, S] // the newest sealed version
	before *statemap.Map[K, S] // the one that newest was made from, for unseal
	open   *statemap.Map[K, S] // the version being built, or nil

	index  *timeout.Index // nil until the first batch of an operator with timeouts
	layout uint64         // of the table that the index's slots belong to
	stale  bool           // the index does not belong to newest any more

	order keyOrder // of an update operator
}

// begin discards an earlier attempt and opens the next version.
func (l *lineage[K, S]) begin(prev *statemap.Map[K, S]) (*statemap.Map[K, S], error) {
	if err := l.abort(); err != nil {
		return nil, err
	}
	m, err := prev.Copy()
	if err != nil {
		return nil, err
	}
	l.open = m
	return m, nil
}

// abort takes the version being built back, if there is one.
func (l *lineage[K, S]) abort() error {
	if l.open == nil {
		return nil
	}
	m := l.open
	l.open = nil
	if l.index != nil {
		l.index.Abort()
	}
	return m.Abort()
}

// seal makes the version being built the newest, and what its batch learned about due times
// part of the index.
func (l *lineage[K, S]) seal() {
	invariants.Check(l.open != nil, "staterdd: seal without an open version")
	l.open.Seal()
	l.before, l.newest, l.open = l.newest, l.open, nil
	if l.index != nil {
		l.index.Commit()
	}
}

// canUnseal reports whether m is the newest version and nothing was begun from it.
func (l *lineage[K, S]) canUnseal(m *statemap.Map[K, S]) bool { return l.newest == m && l.open == nil }

// unseal takes the newest version back although it was sealed.
func (l *lineage[K, S]) unseal(m *statemap.Map[K, S]) error {
	if !l.canUnseal(m) {
		return statemap.ErrNotNewest
	}
	if err := m.Abort(); err != nil {
		return err
	}
	l.newest, l.before = l.before, nil
	l.stale = true
	return nil
}
