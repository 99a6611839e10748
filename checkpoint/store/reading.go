package store

import (
	"iter"
	"sync/atomic"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
)

// reading is a version for reading.
type reading[K comparable, S any] struct {
	p      *Provider[K, S]
	h      *held[K, S]
	m      *statemap.Map[K, S]
	closed atomic.Bool // the version may be in memory still, for others
}

// Version is the version that is read.
func (r *reading[K, S]) Version() uint64 { return r.h.version }

// Get gives the state of a key.
func (r *reading[K, S]) Get(k K) (e statemap.Entry[S], ok bool, err error) {
	if r.closed.Load() && !sabotage.On("closed-reader-reads") {
		return e, false, statemap.ErrReleased
	}
	return r.p.get(r.m, k)
}

// Iterate yields all keys.
func (r *reading[K, S]) Iterate() iter.Seq2[K, statemap.Entry[S]] { return r.Prefix(nil) }

// Prefix yields the keys whose canonical bytes begin with prefix.
func (r *reading[K, S]) Prefix(prefix []byte) iter.Seq2[K, statemap.Entry[S]] {
	all := r.p.all(r.m, prefix)
	return func(yield func(K, statemap.Entry[S]) bool) {
		if !r.closed.Load() {
			all(yield)
		}
	}
}

// Metrics tells about the version and the store.
func (r *reading[K, S]) Metrics() Metrics {
	out := r.p.metrics()
	out.Keys, out.VersionBytes = int64(r.m.Len()), r.m.HeapBytes()
	return out
}

// Close gives the version back.
func (r *reading[K, S]) Close() {
	if r.closed.CompareAndSwap(false, true) {
		r.p.release(r.h)
	}
}
