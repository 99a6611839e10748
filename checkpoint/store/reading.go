package store

import (
	"iter"
	"sync"

	"github.com/statemill/statemill/statemap"
)

// reading is a version for reading.
type reading[K comparable, S any] struct {
	p    *Provider[K, S]
	h    *held[K, S]
	m    *statemap.Map[K, S]
	once sync.Once
}

// Version is the version that is read.
func (r *reading[K, S]) Version() uint64 { return r.h.version }

// Get gives the state of a key.
func (r *reading[K, S]) Get(k K) (statemap.Entry[S], bool, error) { return r.p.get(r.m, k) }

// Iterate yields all keys.
func (r *reading[K, S]) Iterate() iter.Seq2[K, statemap.Entry[S]] { return r.p.all(r.m, nil) }

// Prefix yields the keys whose canonical bytes begin with prefix.
func (r *reading[K, S]) Prefix(prefix []byte) iter.Seq2[K, statemap.Entry[S]] {
	return r.p.all(r.m, prefix)
}

// Metrics tells about the version and the store.
func (r *reading[K, S]) Metrics() Metrics {
	out := r.p.metrics()
	out.Keys, out.VersionBytes = int64(r.m.Len()), r.m.HeapBytes()
	return out
}

// Close gives the version back.
func (r *reading[K, S]) Close() { r.once.Do(func() { r.p.release(r.h) }) }
