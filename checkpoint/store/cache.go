package store

import (
	"context"
	"math"

	"github.com/statemill/statemill/statemap"
)

// held is a version in memory. It is released when neither cache nor handles
// nor readers refer to it.
type held[K comparable, S any] struct {
	version uint64
	m       *statemap.Map[K, S] // sealed
	refs    int
	head    bool // it is the newest of its table: the next version can be made in place
	lent    bool // a handle is doing so
}

// acquire gives a version, from memory or from files, with a reference for the
// caller. With fresh it is loaded even if it is in memory.
func (p *Provider[K, S]) acquire(ctx context.Context, version uint64, fresh bool) (*held[K, S], error) {
	p.mu.Lock()
	if err := p.can(version); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	op := p.op
	if h := p.cached[version]; h != nil && !fresh {
		p.hits++
		h.refs++
		p.mu.Unlock()
		return h, nil
	}
	if version > 0 {
		p.misses++
	}
	p.mu.Unlock()

	h := &held[K, S]{version: version, refs: 1, head: true}
	var stats LoadStats
	var err error
	if version == 0 {
		h.m, err = newMap[K, S]()
	} else {
		h.m, stats, err = op.Load(ctx, 0, version, newMap[K, S], nil)
	}
	if err != nil {
		return nil, err
	}
	h.m.Seal()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad += int64(stats.Repaired)
	if version > 0 && version == p.newest() && op == p.op {
		p.load = &stats
	}
	if version > 0 && op == p.op && p.cached[version] == nil {
		p.keep(h)
	}
	return h, nil
}

// can refuses versions that do not exist or are no longer kept. mu is held.
func (p *Provider[K, S]) can(version uint64) error {
	if p.closed {
		return ErrClosed
	}
	e := &VersionError{Store: p.c.Name, Version: version, Newest: p.newest()}
	if version > math.MaxInt64 || version > e.Newest {
		return e
	}
	if p.commit != nil {
		e.Oldest = p.commit.Floor
	}
	if version > 0 && version < e.Oldest {
		return e
	}
	return nil
}

// keep puts a version into the cache, which holds the newest ones: in a full
// cache an older one than all that are there has no place. mu is held.
func (p *Provider[K, S]) keep(h *held[K, S]) {
	if p.c.Cache <= 0 || p.closed {
		return
	}
	if old := p.cached[h.version]; old != nil {
		p.unref(old)
	}
	p.cached[h.version] = h
	h.refs++
	for len(p.cached) > p.c.Cache {
		oldest := uint64(math.MaxUint64)
		for v := range p.cached {
			oldest = min(oldest, v)
		}
		p.unref(p.cached[oldest])
		delete(p.cached, oldest)
	}
}

// drop empties the cache. mu is held.
func (p *Provider[K, S]) drop() {
	for v, h := range p.cached {
		p.unref(h)
		delete(p.cached, v)
	}
	p.load = nil
}

// release gives a reference back.
func (p *Provider[K, S]) release(h *held[K, S]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unref(h)
}

func (p *Provider[K, S]) unref(h *held[K, S]) {
	if h.refs--; h.refs == 0 {
		h.m.Release()
	}
}

// lend gives an open map that continues a version: in place if nobody does, else
// a copy of all its keys.
func (p *Provider[K, S]) lend(h *held[K, S]) (m *statemap.Map[K, S], inPlace bool, err error) {
	p.mu.Lock()
	inPlace = h.head && !h.lent
	h.lent = h.lent || inPlace
	p.mu.Unlock()
	if inPlace {
		m, err = h.m.Copy()
		return m, true, err
	}
	// Reading needs no coordination with the table's writer; copying would.
	all, err := newMap[K, S]()
	if err != nil {
		return nil, false, err
	}
	for k, e := range h.m.All() {
		if err := all.Put(k, e.State, e.Time); err != nil {
			return nil, false, err
		}
	}
	if err := h.m.Err(); err != nil {
		return nil, false, err
	}
	m, err = all.Copy()
	all.Release()
	return m, false, err
}

// metrics are those of the store, without the version's.
func (p *Provider[K, S]) metrics() (m Metrics) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m = Metrics{CacheHits: p.hits, CacheMisses: p.misses, SnapshotsRepaired: p.bad, LastSnapshot: -1}
	for _, h := range p.cached {
		if h.head { // others share its table
			m.MemoryBytes += h.m.HeapBytes()
		}
	}
	m.SnapshotsForced = p.forced + p.stats.Forced
	for _, v := range p.stats.Last {
		if v > 0 {
			m.LastSnapshot = int64(v)
		}
	}
	return m
}
