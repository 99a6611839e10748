package statemap

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
)

// table holds the versions first-1 … cur of a map: cur in the slots, the ones
// before through the undo lists of first … cur.
//
// Who may touch what: slots, index, arena and free lists are changed only by
// the writer, under mu's write lock; so the writer reads them without a lock
// and all others under the read lock. Undo lists, versions, handles and pins
// are changed by anyone under the write lock and read under either.
type table[K comparable, SK, S any] struct {
	form form[K]
	opts Options[K]
	seed maphash.Seed

	mu sync.RWMutex
	slotStore[SK, S]
	index
	arena arena
	cur   uint32 // the newest version
	first uint32 // the oldest version whose undo list is kept; cur+1 if there is none
	root  bool   // version 1 is New's: nothing came before it, so it needs no undo

	versions []version[S] // of first … cur
	pool     undoPool[S]
	handles  []*handle[K, SK, S] // live or pinned, ascending by version
	pending  []uint32            // slots whose removed keys no version needs; freed at the next Copy

	detaching bool                      // a detach of old handles is under way
	locked    bool                      // the write lock is held by a writer's change; checked by invariants
	seq       uint64                    // counts the writer's changes, to find stale blocks; the writer's own
	layout    uint64                    // see Map.Layout
	id        uint64                    // differs between tables of one layout, too
	layouts   *atomic.Uint64            // source of both numbers, of the whole lineage
	order     atomic.Pointer[slotOrder] // of the last Sorted
	limit     uint32                    // slots at most; maxSlots but in tests
	hook      func()                    // tests only: called within Apply's critical section
}

// form is what is to be known about the types of a table; found once by reflection.
type form[K comparable] struct {
	arena     bool      // K is a string kind and is stored as a keyRef
	strings   []uintptr // offsets of the strings within other kinds of K
	statePtrs bool      // S holds pointers
}

func newTable[K comparable, SK, S any](f form[K], o Options[K], capacity int) *table[K, SK, S] {
	t := &table[K, SK, S]{form: f, opts: o, seed: maphash.MakeSeed(), cur: 1, first: 2, limit: maxSlots}
	t.index.init(capacity)
	return t
}

// like makes an empty table of the same lineage, whose version v has no list.
func (t *table[K, SK, S]) like(v uint32, capacity int) *table[K, SK, S] {
	nt := newTable[K, SK, S](t.form, t.opts, capacity)
	nt.cur, nt.first, nt.layouts, nt.limit = v, v+1, t.layouts, t.limit
	nt.id = nt.layouts.Add(1)
	return nt
}

func (t *table[K, SK, S]) lock() {
	if sabotage.On("lock-dropped") {
		return
	}
	t.mu.Lock()
	t.locked = true
}

func (t *table[K, SK, S]) unlock() {
	if sabotage.On("lock-dropped") {
		return
	}
	t.locked = false
	t.mu.Unlock()
}

func (t *table[K, SK, S]) hash(k K) uint64 {
	if t.opts.Hash != nil {
		return t.opts.Hash(k)
	}
	return maphash.Comparable(t.seed, k)
}

func (t *table[K, SK, S]) strongHash(k K) uint64 { return maphash.Comparable(t.seed, k) }

// keyIs reports whether a slot's key is k.
func (t *table[K, SK, S]) keyIs(s *slot[SK, S], k K) bool {
	if t.form.arena {
		return t.arena.equal(*(*keyRef)(unsafe.Pointer(&s.key)), *(*string)(unsafe.Pointer(&k)))
	}
	return *(*K)(unsafe.Pointer(&s.key)) == k
}

// keyOf gives a slot's key. A string is a view into the arena: it must not
// outlive the lock, or the writer's call.
func (t *table[K, SK, S]) keyOf(s *slot[SK, S]) (k K) {
	if t.form.arena {
		*(*string)(unsafe.Pointer(&k)) = t.arena.bytes(*(*keyRef)(unsafe.Pointer(&s.key)))
		return k
	}
	return *(*K)(unsafe.Pointer(&s.key))
}

func (t *table[K, SK, S]) setKey(s *slot[SK, S], k K) {
	if t.form.arena {
		*(*keyRef)(unsafe.Pointer(&s.key)) = t.arena.add(*(*string)(unsafe.Pointer(&k)))
		return
	}
	*(*K)(unsafe.Pointer(&s.key)) = t.form.clone(k)
}

// find gives the slot of k plus 1, or 0. h is k's hash.
func (t *table[K, SK, S]) find(h uint64, k K) uint32 {
	x := mix(h ^ t.opts.Secret)
	seg := &t.segs[x>>segShift]
	if seg.strong {
		x = t.strongHash(k)
	}
	for i := x & 0xFFFFFFFF & seg.mask; ; i = (i + 1) & seg.mask {
		v := seg.cells[i]
		if v == 0 {
			return 0
		}
		if uint32(v>>32) == uint32(x) && t.keyIs(t.at(uint32(v)-1), k) {
			return uint32(v)
		}
	}
}

// insert makes a slot for k, which has none. The slot is still free (meta 0)
// for all versions until write.
func (t *table[K, SK, S]) insert(h uint64, k K) uint32 {
	invariants.Check(t.locked, "statemap: insert without the lock")
	n := t.alloc()
	t.setKey(t.at(n), k)
	t.indexAdd(h, k, n)
	return n
}

func (t *table[K, SK, S]) indexAdd(h uint64, k K, n uint32) {
	x := mix(h ^ t.opts.Secret)
	seg := &t.segs[x>>segShift]
	if seg.strong {
		x = t.strongHash(k)
	}
	if seg.add(x, n) {
		t.strengthen(seg)
	}
}

// strengthen turns a segment to the seeded hash, which nobody outside can collide.
func (t *table[K, SK, S]) strengthen(seg *segment) {
	old := seg.cells
	seg.strong = true
	seg.cells = make([]uint64, len(old))
	for _, v := range old {
		if v != 0 {
			x := t.strongHash(t.keyOf(t.at(uint32(v) - 1)))
			seg.place(x<<32 | v&0xFFFFFFFF)
		}
	}
}

// discard frees a slot, its key and its index cell. undoing takes back the
// latest insert that is not yet taken back.
func (t *table[K, SK, S]) discard(n uint32, undoing bool) {
	s := t.at(n)
	k := t.keyOf(s)
	x := mix(t.hash(k) ^ t.opts.Secret)
	seg := &t.segs[x>>segShift]
	if seg.strong {
		x = t.strongHash(k)
	}
	found := seg.del(x, n)
	invariants.Check(found, "statemap: slot %d is not in the index", n)
	if t.form.arena {
		if r := *(*keyRef)(unsafe.Pointer(&s.key)); undoing {
			t.arena.rewind(r)
		} else {
			t.arena.del(r)
		}
	}
	t.dealloc(n, undoing)
}

// write gives slot n a state in version cur, or takes it away, and keeps what
// stood there if it is the version's first write to the slot. keep leaves the
// state and changes only the time. It reports by how much the number of live
// keys changed.
func (t *table[K, SK, S]) write(n uint32, s S, tm int64, live uint32, keep bool) int {
	invariants.Check(t.locked, "statemap: write without the lock")
	sl := t.at(n)
	was := sl.meta & metaLive
	if live == 0 && (was != 0 || sl.meta>>metaShift != t.cur) {
		v := t.version(t.cur)
		v.dels = append(v.dels, n)
	}
	if sl.meta>>metaShift != t.cur && !t.isRoot() {
		t.save(n, sl)
	}
	own := uint32(metaOwn)
	if keep {
		own = 0 // the state is still the one that older versions see …
		if sl.meta>>metaShift == t.cur {
			own = sl.meta & metaOwn // … unless this version has written it before
		}
	} else {
		sl.state = s
	}
	sl.time = tm
	sl.meta = t.cur<<metaShift | own | live
	return int(live) - int(was)
}

// save appends what stands in slot n to the newest version's undo list.
func (t *table[K, SK, S]) save(n uint32, sl *slot[SK, S]) {
	if sabotage.On("no-undo") {
		return
	}
	l := &t.versions[len(t.versions)-1].list
	i := l.n
	if i&undoMask == 0 {
		l.chunks = append(l.chunks, t.pool.get())
	}
	r := l.at(i)
	r.state, r.time, r.slot, r.meta, r.undo = sl.state, sl.time, n, sl.meta, sl.undo
	l.n = i + 1
	sl.undo = i
}

// isRoot reports whether the newest version is one that nothing came before.
func (t *table[K, SK, S]) isRoot() bool { return t.root && t.cur == 1 }

// version gives what is kept of v, which must be in first … cur.
func (t *table[K, SK, S]) version(v uint32) *version[S] { return &t.versions[v-t.first] }

// asOf gives what stood in a slot when v was the newest version. The pointer
// is good while the lock is held. Lists of all versions after v must be kept.
func (t *table[K, SK, S]) asOf(sl *slot[SK, S], v uint32) (s *S, tm int64, meta, undo uint32) {
	s, tm, meta, undo = &sl.state, sl.time, sl.meta, sl.undo
	for meta>>metaShift > v {
		r := t.version(meta >> metaShift).list.at(undo)
		s, tm, meta, undo = &r.state, r.time, r.meta, r.undo
	}
	if sabotage.On("tombstone-falls-through") && meta != 0 && meta&1 == 0 && meta>>metaShift >= t.first {
		r := t.version(meta >> metaShift).list.at(undo)
		s, tm, meta, undo = &r.state, r.time, r.meta, r.undo
	}
	return s, tm, meta, undo
}
