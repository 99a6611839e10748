package store

import (
	"context"
	"iter"

	"github.com/statemill/statemill/statemap"
)

// Versions is a versioned store of keys and states: what [Provider] is, and what
// the suite in package storetest tests. Version N is immutable; version 0 is
// empty and exists nowhere. A handle on version N makes version N+1. Versions
// form one line: a version that exists is not made again.
type Versions[K comparable, S any] interface {
	// Store gives a private handle on a version, to make the next one from it.
	// Errors: *VersionError, and those of loading.
	Store(ctx context.Context, version uint64) (Handle[K, S], error)
	// ReadStore gives a version for reading. Errors as Store.
	ReadStore(ctx context.Context, version uint64) (Reader[K, S], error)
	// Newest is the newest version, 0 if there is none.
	Newest() uint64
	// Maintain writes the snapshots that are due and deletes what is no longer
	// needed. What fails there is counted, told and tried again later; the error
	// is that of ctx.
	Maintain(ctx context.Context) error
	// Close ends it. Handles that are open can still be read and aborted.
	Close() error
}

// Reader is a version for reading. It may be used from any goroutine. After Close
// Get is statemap.ErrReleased, and Iterate and Prefix yield nothing.
type Reader[K comparable, S any] interface {
	// Version is the version that is read.
	Version() uint64
	// Get gives the state of a key with its time. What it returns belongs to
	// the caller. Error: statemap.ErrReleased after Close.
	Get(k K) (e statemap.Entry[S], ok bool, err error)
	// Iterate yields all keys, in no stated order, as they are when it is
	// called: later changes are not seen. The iteration must begin before the
	// handle is closed, committed or aborted; one that has begun goes on.
	Iterate() iter.Seq2[K, statemap.Entry[S]]
	// Prefix is Iterate restricted to keys whose canonical bytes (codec.Key)
	// begin with prefix. It looks at every key.
	Prefix(prefix []byte) iter.Seq2[K, statemap.Entry[S]]
	// Metrics tells about the version and the store.
	Metrics() Metrics
	// Close gives the version back. It may be called again.
	Close()
}

// Handle is a version under construction. It belongs to one goroutine. It is
// open until Commit or Abort, whether they succeed or not; then its writes and
// Commit are ErrDone. Close aborts one that is open, and must be called in the
// end; until then a committed one can be read. One that was aborted, or whose commit
// failed, has no keys: it reads as a closed one.
type Handle[K comparable, S any] interface {
	Reader[K, S]
	// Put gives a key a state and a time, unix nanoseconds. Key and state are
	// copied. Errors: ErrDone, ErrNil, statemap.ErrNaN.
	Put(k K, s S, t int64) error
	// Remove removes a key; an absent one leaves no trace. Error: ErrDone.
	Remove(k K) error
	// Commit makes the next version of it, durable when it returns, and gives
	// its number. A version that changed nothing is one too. Errors: ErrDone,
	// ErrExists if the version has been made by another handle, and a
	// *CommitError with the cause.
	Commit(ctx context.Context) (uint64, error)
	// Abort gives the changes up. It may be called again, and after Commit it
	// changes nothing.
	Abort() error
	// HasCommitted tells that Commit has succeeded.
	HasCommitted() bool
}

// Metrics tells about one store.
type Metrics struct {
	// Keys of the version, and the bytes of memory that it takes.
	Keys         int64
	VersionBytes int64
	// MemoryBytes is what all versions that are kept in memory take.
	MemoryBytes int64
	// CacheHits and CacheMisses count versions that were found in memory, or
	// had to be loaded.
	CacheHits, CacheMisses int64
	// SnapshotsRepaired counts bad or lost snapshots that loads had to do
	// without, SnapshotsForced those that a commit had to wait for.
	SnapshotsRepaired, SnapshotsForced int64
	// LastSnapshot is the version of the last good snapshot, −1 if this
	// provider has neither written nor read one.
	LastSnapshot int64
}

// Add gives the metrics of two stores together: sums, and the lower of the two
// last snapshots.
func (m Metrics) Add(o Metrics) Metrics {
	return Metrics{
		Keys: m.Keys + o.Keys, VersionBytes: m.VersionBytes + o.VersionBytes, MemoryBytes: m.MemoryBytes + o.MemoryBytes,
		CacheHits: m.CacheHits + o.CacheHits, CacheMisses: m.CacheMisses + o.CacheMisses,
		SnapshotsRepaired: m.SnapshotsRepaired + o.SnapshotsRepaired, SnapshotsForced: m.SnapshotsForced + o.SnapshotsForced,
		LastSnapshot: min(m.LastSnapshot, o.LastSnapshot),
	}
}
