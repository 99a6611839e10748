package statemap

import "iter"

// Entry is a state with the time of its last update.
type Entry[S any] struct {
	State S
	Time  int64 // unix nanoseconds, as given to Put, Set or Touch
}

// DeltaEntry is what a version did to one key.
type DeltaEntry[K comparable, S any] struct {
	Key     K
	State   S     // zero if Removed
	Time    int64 // of the update, or of the state that was removed
	Removed bool  // a tombstone: the key had a state before the version and has none in it
}

// Map is a handle on one version of a table. The zero value is not usable:
// see New, Empty, Import and Copy.
//
// Methods that write (Put, Remove, Resolve, Apply, Copy, Abort, Seal and the
// slot calls) belong to one goroutine at a time, the table's writer. All
// others, and Release and Compact of a sealed version, may be called by any
// goroutine at any time.
type Map[K comparable, S any] struct {
	h engine[K, S] // nil: the empty map
}

// engine is a handle with the stored form of the keys hidden: one indirect
// call per block, never one per record.
type engine[K comparable, S any] interface {
	lookup(k K) (S, int64, bool, error)
	put(k K, s S, t int64) error
	remove(k K) error
	resolve(m *Map[K, S], b *Block[K, S], hashes []uint64, keys []K) error
	apply(m *Map[K, S], b *Block[K, S]) error

	copy() (engine[K, S], error)
	abort() error
	seal()
	isSealed() bool
	release()
	err() error
	loopErr() error
	chainLength() int
	compact() error
	threshold() int

	all(before int64, limited bool) iter.Seq2[K, Entry[S]]
	sorted(compare func(a, b K) int) iter.Seq2[K, Entry[S]]
	delta() (iter.Seq[DeltaEntry[K, S]], error)
	deltaLen() int
	changes(yield func(*Change[K, S]) bool) error
	export() (Dump[K, S], error)
	debugString() string

	slotAt(slot uint32, own bool) (K, S, int64, bool)
	slotTime(slot uint32) (int64, bool)
	putSlot(slot uint32, s S, t int64) error
	removeSlot(slot uint32) error
	inserted(yield func(slot uint32, t int64) bool)
	allSlots(yield func(slot uint32, t int64) bool)
	layout() uint64
	slotCount() int

	length() int
	approxSize() int
	heapBytes() int64
	hash(k K) uint64
}

// Empty gives the immutable empty map: it has no keys, Put is ErrEmptyMap,
// Remove does nothing and Copy returns the map itself.
func Empty[K comparable, S any]() *Map[K, S] { return &Map[K, S]{} }

// Get gives the state of k in this version.
func (m *Map[K, S]) Get(k K) (S, bool, error) {
	s, _, ok, err := m.Lookup(k)
	return s, ok, err
}

// Lookup is Get with the update time.
func (m *Map[K, S]) Lookup(k K) (s S, t int64, ok bool, err error) {
	if m.h == nil {
		return s, 0, false, nil
	}
	return m.h.lookup(k)
}

// Put gives k the state s with update time t (unix nanoseconds). The map keeps
// a copy of the key; s is kept as it is. Errors: ErrEmptyMap, ErrSealed,
// ErrReleased, ErrNaN, ErrFull.
func (m *Map[K, S]) Put(k K, s S, t int64) error {
	if m.h == nil {
		return ErrEmptyMap
	}
	return m.h.put(k, s, t)
}

// Remove takes k out of this version; an absent key is fine and leaves no
// trace. Errors: ErrSealed, ErrReleased.
func (m *Map[K, S]) Remove(k K) error {
	if m.h == nil {
		return nil
	}
	return m.h.remove(k)
}

// Len is the number of keys that have a state in this version; 0 after Release.
func (m *Map[K, S]) Len() int {
	if m.h == nil {
		return 0
	}
	return m.h.length()
}

// ApproxSize is an upper bound of Len that counts removed keys which older
// versions still need; it is meant for allocation.
func (m *Map[K, S]) ApproxSize() int {
	if m.h == nil {
		return 0
	}
	return m.h.approxSize()
}

// All yields every key of this version with its state, in no stated order.
//
// The iterator pins the version: a Release during the loop takes effect after
// it. The lock is taken for a few hundred entries at a time and is not held
// while the loop's body runs, so the body may use the map. Over an open
// version the loop sees each key at most once, with a state that it had at
// some time since the loop began. On a handle that was released before, it
// yields nothing, and if Abort comes in between it ends early: see Err.
func (m *Map[K, S]) All() iter.Seq2[K, Entry[S]] {
	if m.h == nil {
		return func(func(K, Entry[S]) bool) {}
	}
	return m.h.all(0, false)
}

// GetByTime is All restricted to entries whose update time is before t (strictly).
func (m *Map[K, S]) GetByTime(t int64) iter.Seq2[K, Entry[S]] {
	if m.h == nil {
		return func(func(K, Entry[S]) bool) {}
	}
	return m.h.all(t, true)
}

// Err is ErrReleased once the handle was released or aborted, ErrDeltaGone once
// a loop over Delta came too late for it, and nil otherwise. Asked after a loop
// over All or Delta it tells whether the loop was complete.
func (m *Map[K, S]) Err() error {
	if m.h == nil {
		return nil
	}
	return m.h.loopErr()
}

// Copy seals this version and begins the next one. From the newest version of
// the table it is O(1), but for the detaching of old versions (see
// Options.DeltaChainThreshold) and the move to a smaller table after most keys
// were removed. From an older version it clones that version into a table of
// its own. The empty map returns itself. Error: ErrReleased.
func (m *Map[K, S]) Copy() (*Map[K, S], error) {
	if m.h == nil {
		return m, nil
	}
	h, err := m.h.copy()
	if err != nil {
		return nil, err
	}
	return &Map[K, S]{h: h}, nil
}

// Abort takes back everything that this version did and releases the handle;
// the version before is then the newest again and can be copied again. It
// costs O(changes), works on sealed versions too, and ends iterators over this
// version. Errors: ErrNotNewest, ErrReleased.
func (m *Map[K, S]) Abort() error {
	if m.h == nil {
		return nil
	}
	return m.h.abort()
}

// Seal ends writing to this version.
func (m *Map[K, S]) Seal() {
	if m.h != nil {
		m.h.seal()
	}
}

// Sealed reports whether the version takes no more writes.
func (m *Map[K, S]) Sealed() bool { return m.h == nil || m.h.isSealed() }

// Release gives the handle up: what only it needed is dropped. It may be
// called again and by any goroutine. Releasing the newest version without a
// copy gives up its changes.
func (m *Map[K, S]) Release() {
	if m.h != nil {
		m.h.release()
	}
}

// DeltaChainLength is the number of versions between this one and the newest
// of its table: how far a read may have to walk.
func (m *Map[K, S]) DeltaChainLength() int {
	if m.h == nil {
		return 0
	}
	return m.h.chainLength()
}

// ShouldCompact reports whether DeltaChainLength has reached the threshold.
func (m *Map[K, S]) ShouldCompact() bool {
	return m.h != nil && m.h.chainLength() >= m.h.threshold()
}

// Compact moves this version at once into a table of its own, in which its
// chain length is 0. It does nothing for the newest version. Error: ErrReleased.
func (m *Map[K, S]) Compact() error {
	if m.h == nil {
		return nil
	}
	return m.h.compact()
}

// Delta yields what this version changed, each key once, in the order of first
// writes: keys that have a state now with it, keys that had one before and have
// none now as tombstones. Of a table's first version, made by New, these are
// all keys. It can be asked while the version is the newest of its table, or as
// long as an older handle of the table lives; else it is ErrDeltaGone. Pinning
// and locking are as for All.
func (m *Map[K, S]) Delta() (iter.Seq[DeltaEntry[K, S]], error) {
	if m.h == nil {
		return func(func(DeltaEntry[K, S]) bool) {}, nil
	}
	return m.h.delta()
}

// DeltaLen is an upper bound of the number of entries that Delta yields (it
// counts keys that came and went within the version); 0 if Delta is an error.
func (m *Map[K, S]) DeltaLen() int {
	if m.h == nil {
		return 0
	}
	return m.h.deltaLen()
}

// Resolve looks up to BlockSize records up and readies b for Load, Set, Delete
// and Touch. hashes[i] must be Options.Hash (or Map.Hash) of keys[i]. The two
// slices are kept, unchanged by both sides, until Apply. Nothing is changed
// and no lock is held afterwards, so any code may run before Apply; but
// between Resolve and Apply the map must not be written to by other means
// (Apply would be ErrBlock), and a block that is not to be applied is simply
// resolved anew. Errors: ErrEmptyMap, ErrSealed, ErrReleased, ErrBlock, ErrNaN.
func (m *Map[K, S]) Resolve(b *Block[K, S], hashes []uint64, keys []K) error {
	if m.h == nil {
		return ErrEmptyMap
	}
	return m.h.resolve(m, b, hashes, keys)
}

// Apply writes what the records of b did, in record order, under the lock.
// Errors (nothing is written then): ErrBlock, ErrSealed, ErrReleased, ErrFull.
func (m *Map[K, S]) Apply(b *Block[K, S]) error {
	if m.h == nil {
		return ErrEmptyMap
	}
	return m.h.apply(m, b)
}

// Hash gives the hash by which the table finds k: Options.Hash, or the table's
// own if that is nil.
func (m *Map[K, S]) Hash(k K) uint64 {
	if m.h == nil {
		return 0
	}
	return m.h.hash(k)
}

// HeapBytes is the memory that the table of this version uses, shared with the
// other versions of the same table. What states point to is not counted.
func (m *Map[K, S]) HeapBytes() int64 {
	if m.h == nil {
		return 0
	}
	return m.h.heapBytes()
}

// DebugString lists the oldest version that this one's chain still reaches,
// and below it, indented by depth, what each later one changed.
func (m *Map[K, S]) DebugString() string {
	if m.h == nil {
		return ""
	}
	return m.h.debugString()
}
