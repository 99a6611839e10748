package statemap

import (
	"iter"
	"slices"
	"strings"
	"unsafe"
)

// slotOrder is the order of a table's keys, as slots. It is a hint for the next
// one: keys that came since are sorted alone and put in between. It never changes.
type slotOrder struct {
	slots []uint32
	table uint64 // what it was made in …
	state uint64 // … and the table's count of slots given and freed
	frees uint64
}

// Sorted is All in the order of compare, which must be a total order of the keys
// and the same one in all calls for maps of one lineage. The order is kept with
// the table, in 4 bytes a key: later versions sort what came since.
func (m *Map[K, S]) Sorted(compare func(a, b K) int) iter.Seq2[K, Entry[S]] {
	if m.h == nil {
		return func(func(K, Entry[S]) bool) {}
	}
	return m.h.sorted(compare)
}

func (h *handle[K, SK, S]) sorted(compare func(a, b K) int) iter.Seq2[K, Entry[S]] {
	return func(yield func(K, Entry[S]) bool) {
		if !h.pin(false) {
			return
		}
		defer h.unpin(false)
		var sc scan[K, S]
		for slots := range slices.Chunk(h.inOrder(compare), scanLen) {
			if !h.readThese(&sc, slots) {
				return
			}
			for i := range sc.items {
				if e := &sc.items[i]; !yield(e.Key, Entry[S]{State: e.State, Time: e.Time}) {
					return
				}
			}
		}
	}
}

// readThese reads those of the given slots that are live into sc. It is not ok if
// the version is aborted.
func (h *handle[K, SK, S]) readThese(sc *scan[K, S], slots []uint32) (ok bool) {
	sc.reset()
	t := h.rlock(true)
	if t == nil {
		return false
	}
	defer t.mu.RUnlock()
	for _, n := range slots {
		if n >= t.n {
			continue
		}
		sl := t.at(n)
		if s, tm, meta, _ := t.asOf(sl, h.v); meta&metaLive != 0 {
			sc.add(n, DeltaEntry[K, S]{Key: t.keyOf(sl), State: *s, Time: tm})
		}
	}
	sc.own(&t.form)
	return true
}

// inOrder gives at least the slots that are live in this pinned version, in the
// order of their keys; none if it is aborted.
//
// It orders all slots that have a key, so that what is made for one version is good
// for the next. Between two chunks a writer may free such slots and give them other
// keys: then only those that are live in the version are ordered, which stay as
// they are while it is pinned.
func (h *handle[K, SK, S]) inOrder(compare func(a, b K) int) []uint32 {
	var slots []uint32
	for _, liveOnly := range []bool{false, true} {
		t := h.rlock(true)
		if t == nil {
			return nil
		}
		var was slotOrder
		if o := t.order.Load(); o != nil {
			was = *o
		}
		now := slotOrder{table: t.id, state: t.given + t.frees, frees: t.frees}
		t.mu.RUnlock()
		if !liveOnly && was.table == now.table && was.state == now.state {
			return was.slots
		}
		o := ordering[K, SK, S]{h: h, liveOnly: liveOnly, compare: compare}
		o.kept = was.slots
		if liveOnly || was.table != now.table || was.frees != now.frees {
			o.keepOrdered(was.slots)
		}
		o.addMissing()
		slots = o.merge()
		if t = h.rlock(true); t == nil {
			return nil
		}
		stable := t.id == now.table && t.frees == now.frees
		if stable && !liveOnly {
			now.slots = slots
			t.order.Store(&now)
		}
		t.mu.RUnlock()
		if stable {
			break
		}
	}
	return slots
}

// ordering is the making of an order. Each of its steps takes the lock for a chunk
// at a time, and gives up where the version is aborted.
type ordering[K comparable, SK, S any] struct {
	h        *handle[K, SK, S]
	liveOnly bool
	compare  func(a, b K) int
	kept     []uint32 // in order already
	fresh    []keyAt[K]
}

// keyAt is a key that has yet to be given its place.
type keyAt[K comparable] struct {
	key  K
	slot uint32
}

// key gives a view of what stands in a slot, valid under the lock.
func (o *ordering[K, SK, S]) key(t *table[K, SK, S], n uint32) (k K, ok bool) {
	if n >= t.n {
		return k, false
	}
	sl := t.at(n)
	if sl.meta == 0 {
		return k, false
	}
	if o.liveOnly {
		if _, _, meta, _ := t.asOf(sl, o.h.v); meta&metaLive == 0 {
			return k, false
		}
	}
	return t.keyOf(sl), true
}

// ownKey copies a view.
func (t *table[K, SK, S]) ownKey(k K) K {
	if t.form.arena {
		s := (*string)(unsafe.Pointer(&k))
		*s = strings.Clone(*s)
	}
	return k
}

// keepOrdered keeps of an older order what has its place still.
func (o *ordering[K, SK, S]) keepOrdered(slots []uint32) {
	o.kept = make([]uint32, 0, len(slots))
	var last K
	for part := range slices.Chunk(slots, scanLen) {
		t := o.h.rlock(true)
		if t == nil {
			return
		}
		for _, n := range part {
			k, ok := o.key(t, n)
			if !ok {
				continue
			}
			if end := len(o.kept) - 1; end >= 0 && o.compare(last, k) >= 0 {
				// One of the two is in the wrong place; which one is not known.
				o.fresh = append(o.fresh, keyAt[K]{t.ownKey(last), o.kept[end]}, keyAt[K]{t.ownKey(k), n})
				if o.kept = o.kept[:end]; end > 0 {
					last, _ = o.key(t, o.kept[end-1])
				}
				continue
			}
			o.kept, last = append(o.kept, n), k
		}
		last = t.ownKey(last)
		t.mu.RUnlock()
	}
}

// addMissing finds the slots that have no place yet, and sorts them.
func (o *ordering[K, SK, S]) addMissing() {
	placed := slotSet{}
	for _, n := range o.kept {
		placed.set(n)
	}
	for i := range o.fresh {
		placed.set(o.fresh[i].slot)
	}
	var sc scan[K, S]
	for n, done := uint32(0), false; !done; {
		sc.reset()
		t := o.h.rlock(true)
		if t == nil {
			return
		}
		if o.fresh == nil && len(o.kept) == 0 {
			o.fresh = make([]keyAt[K], 0, int(t.n)-len(t.free))
		}
		for end := min(n+scanLen, t.n); n < end; n++ {
			if placed.has(n) {
				continue
			}
			if k, ok := o.key(t, n); ok {
				sc.add(n, DeltaEntry[K, S]{Key: k})
			}
		}
		sc.own(&t.form)
		done = n >= t.n
		t.mu.RUnlock()
		for i := range sc.items {
			o.fresh = append(o.fresh, keyAt[K]{sc.items[i].Key, sc.slots[i]})
		}
	}
	slices.SortFunc(o.fresh, func(a, b keyAt[K]) int { return o.compare(a.key, b.key) })
}

// slotSet is a set of slots.
type slotSet []uint64

func (s *slotSet) set(n uint32) {
	for int(n/64) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

func (s slotSet) has(n uint32) bool { return int(n/64) < len(s) && s[n/64]&(1<<(n%64)) != 0 }

// fewFresh: a key that is looked for between others costs that many times what it costs
// to step over one of them.
const fewFresh = 32

// merge puts the fresh keys in between.
func (o *ordering[K, SK, S]) merge() []uint32 {
	if len(o.fresh) == 0 {
		return o.kept
	}
	out := make([]uint32, 0, len(o.kept)+len(o.fresh))
	kept, fresh := o.kept, o.fresh
	if len(fresh) < len(kept)/fewFresh {
		for i := range fresh {
			n := o.before(kept, fresh[i].key)
			out = append(append(out, kept[:n]...), fresh[i].slot)
			kept = kept[n:]
		}
		return append(out, kept...)
	}
	for part := range slices.Chunk(kept, scanLen) {
		t := o.h.rlock(true)
		if t == nil {
			return nil
		}
		for _, n := range part {
			k, ok := o.key(t, n)
			if !ok {
				continue
			}
			for len(fresh) > 0 && o.compare(fresh[0].key, k) < 0 {
				out, fresh = append(out, fresh[0].slot), fresh[1:]
			}
			out = append(out, n)
		}
		t.mu.RUnlock()
	}
	for i := range fresh {
		out = append(out, fresh[i].slot)
	}
	return out
}

// before is the number of slots whose keys come before k.
func (o *ordering[K, SK, S]) before(slots []uint32, k K) int {
	t := o.h.rlock(true)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	n, _ := slices.BinarySearchFunc(slots, k, func(slot uint32, k K) int {
		at, _ := o.key(t, slot)
		return o.compare(at, k)
	})
	return n
}
