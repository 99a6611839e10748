package store

import (
	"context"
	"reflect"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/statemap"
)

// Store gives a handle on a version.
func (p *Provider[K, S]) Store(ctx context.Context, version uint64) (Handle[K, S], error) {
	base, err := p.acquire(ctx, version, false)
	if err != nil {
		return nil, err
	}
	m, inPlace, err := p.lend(base)
	if err != nil {
		p.release(base)
		return nil, err
	}
	return &handle[K, S]{p: p, base: base, m: m, inPlace: inPlace}, nil
}

// ReadStore gives a version for reading.
func (p *Provider[K, S]) ReadStore(ctx context.Context, version uint64) (Reader[K, S], error) {
	h, err := p.acquire(ctx, version, false)
	if err != nil {
		return nil, err
	}
	return &reading[K, S]{p: p, h: h, m: h.m}, nil
}

// handle is a version under construction. m is a chain of inner versions: each
// iterator seals one, so that it does not see what comes later.
type handle[K comparable, S any] struct {
	p       *Provider[K, S]
	base    *held[K, S]
	m       *statemap.Map[K, S]
	inPlace bool

	views   []*statemap.Map[K, S] // sealed inner versions, oldest first
	writes  int                   // since the last of them
	touched []K                   // keys changed in them, in order of first writes
	seen    map[K]struct{}
	running int // iterations

	time      int64 // greatest that was put
	done      bool
	closed    bool
	committed uint64 // 0: not
}

// Version is the version that the handle began from.
func (h *handle[K, S]) Version() uint64 { return h.base.version }

// HasCommitted tells that Commit has succeeded.
func (h *handle[K, S]) HasCommitted() bool { return h.committed > 0 }

// Get gives the state of a key.
func (h *handle[K, S]) Get(k K) (e statemap.Entry[S], ok bool, err error) {
	if h.over() {
		return e, false, statemap.ErrReleased
	}
	return h.p.get(h.m, k)
}

// over reports whether there is nothing to read any more: it was aborted or closed, or
// its commit failed. (Its version may be in memory still, for others.)
func (h *handle[K, S]) over() bool { return h.closed || h.done && h.committed == 0 }

func (p *Provider[K, S]) get(m *statemap.Map[K, S], k K) (e statemap.Entry[S], ok bool, err error) {
	e.State, e.Time, ok, err = m.Lookup(k)
	if ok && p.clone != nil {
		e.State, err = p.clone(e.State)
	}
	return e, ok && err == nil, err
}

// Put gives a key a state.
func (h *handle[K, S]) Put(k K, s S, t int64) error {
	if h.done {
		return ErrDone
	}
	if h.p.isNil && reflect.ValueOf(&s).Elem().IsNil() {
		return ErrNil
	}
	if h.p.key.NeedsCheck() {
		if err := h.p.key.Check(k); err != nil {
			return err
		}
	}
	if h.p.clone != nil {
		var err error
		if s, err = h.p.clone(s); err != nil {
			return err
		}
	}
	h.writes++
	h.time = max(h.time, t)
	return h.m.Put(k, s, t)
}

// Remove removes a key.
func (h *handle[K, S]) Remove(k K) error {
	if h.done {
		return ErrDone
	}
	h.writes++
	return h.m.Remove(k)
}

// Abort gives the changes up.
func (h *handle[K, S]) Abort() error {
	if h.done {
		return nil
	}
	h.done = true
	h.undo()
	h.leave()
	return nil
}

// Close aborts an open handle, and gives the version of a committed one back.
func (h *handle[K, S]) Close() {
	_ = h.Abort()
	if h.committed > 0 && !h.closed {
		h.p.release(h.base)
	}
	h.closed = true
}

// undo takes back the inner versions, newest first. Under an iteration they are
// only let go, so that it comes to its end; the next handle then copies.
func (h *handle[K, S]) undo() {
	if h.running > 0 && len(h.views) > 0 {
		h.m.Release()
		for _, v := range h.views {
			v.Release()
		}
		h.m, h.views = h.views[len(h.views)-1], nil
		if h.inPlace {
			h.p.mu.Lock()
			h.base.head = false
			h.p.mu.Unlock()
		}
		return
	}
	_ = h.m.Abort()
	for i := len(h.views) - 1; i >= 0; i-- {
		_ = h.views[i].Abort()
	}
	h.views = nil
}

// leave gives the base back.
func (h *handle[K, S]) leave() {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.inPlace {
		h.base.lent = false
	}
	h.p.unref(h.base)
}

// Metrics tells about the handle's keys and the store.
func (h *handle[K, S]) Metrics() Metrics {
	out := h.p.metrics()
	out.Keys, out.VersionBytes = int64(h.m.Len()), h.m.HeapBytes()
	return out
}

// Commit makes the next version.
func (h *handle[K, S]) Commit(ctx context.Context) (uint64, error) {
	if h.done {
		return 0, ErrDone
	}
	h.done = true
	n := h.base.version + 1
	c, err := h.p.write(ctx, h, n)
	if err != nil {
		h.undo()
		h.leave()
		return 0, &CommitError{Store: h.p.c.Name, Version: n, Err: err}
	}
	h.committed = n
	h.enter(c)
	return n, nil
}

// enter makes the handle's map the newest version in memory.
func (h *handle[K, S]) enter(c *checkpoint.Commit) {
	h.m.Seal()
	for _, v := range h.views {
		v.Release()
	}
	h.views, h.touched, h.seen = nil, nil, nil
	p := h.p
	p.mu.Lock()
	if h.inPlace {
		h.base.head = false
	}
	p.commit = c
	next := &held[K, S]{version: c.Epoch, m: h.m, refs: 1, head: true}
	p.keep(next)
	p.mu.Unlock()
	h.leave()
	h.base = next // the handle's own reference
}
