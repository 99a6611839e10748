package statemap

import (
	"iter"
	"unsafe"
)

// scanLen is the number of slots, or undo records, that an iterator reads
// under one lock.
const scanLen = 256

// scan is an iterator's buffer: what was read under the lock and is yielded
// after it.
type scan[K comparable, S any] struct {
	items []DeltaEntry[K, S]
	slots []uint32
}

func (sc *scan[K, S]) reset() { sc.items, sc.slots = sc.items[:0], sc.slots[:0] }

func (sc *scan[K, S]) add(n uint32, e DeltaEntry[K, S]) {
	sc.items = append(sc.items, e)
	sc.slots = append(sc.slots, n)
}

// own gives the keys memory of their own; strings are views into the arena
// before. One allocation serves all.
func (sc *scan[K, S]) own(f *form[K]) {
	if !f.arena {
		return
	}
	size := 0
	for i := range sc.items {
		size += len(*(*string)(unsafe.Pointer(&sc.items[i].Key)))
	}
	buf := make([]byte, 0, size)
	for i := range sc.items {
		k := (*string)(unsafe.Pointer(&sc.items[i].Key))
		n := len(buf)
		buf = append(buf, *k...)
		if len(*k) > 0 {
			*k = unsafe.String(&buf[n], len(*k))
		}
	}
}

// walk reads the version's live slots batch by batch and calls each, without
// the lock, after every batch, until it returns false.
func (h *handle[K, SK, S]) walk(keys bool, v uint32, each func(sc *scan[K, S]) bool) {
	if !h.pin(false) {
		return
	}
	defer h.unpin(false)
	var sc scan[K, S]
	for n, done := uint32(0), false; !done; {
		if n, done = h.readSlots(&sc, n, v, keys); !each(&sc) {
			return
		}
	}
}

// readSlots reads the live slots of the next scanLen from n into sc, and says
// where to go on and whether that is the end.
func (h *handle[K, SK, S]) readSlots(sc *scan[K, S], n, v uint32, keys bool) (next uint32, done bool) {
	sc.reset()
	t := h.rlock(true)
	if t == nil {
		return n, true
	}
	defer t.mu.RUnlock()
	for end := min(n+scanLen, t.n); n < end; n++ {
		sl := t.at(n)
		if s, tm, meta, _ := t.asOf(sl, v); meta&metaLive != 0 {
			e := DeltaEntry[K, S]{Time: tm}
			if keys {
				e.Key, e.State = t.keyOf(sl), *s
			}
			sc.add(n, e)
		}
	}
	if keys {
		sc.own(&t.form)
	}
	return n, n >= t.n
}

// walkDelta does the same with the slots of the version's own undo list. It
// gives ErrDeltaGone if that is not kept.
func (h *handle[K, SK, S]) walkDelta(keys bool, each func(sc *scan[K, S]) bool) error {
	if !h.pin(true) {
		return ErrReleased
	}
	defer h.unpin(true)
	var sc scan[K, S]
	for i, done := uint32(0), false; !done; {
		var err error
		if i, done, err = h.readList(&sc, i, keys); err != nil {
			return err
		}
		if !each(&sc) {
			return nil
		}
	}
	return nil
}

// readList is readSlots for the version's undo list. Without keys it reads
// only what the version inserted.
func (h *handle[K, SK, S]) readList(sc *scan[K, S], i uint32, keys bool) (next uint32, done bool, err error) {
	sc.reset()
	t := h.rlock(true)
	if t == nil {
		return i, true, ErrReleased
	}
	defer t.mu.RUnlock()
	if h.v < t.first {
		return i, true, ErrDeltaGone
	}
	l := &t.version(h.v).list
	for end := min(i+scanLen, l.n); i < end; i++ {
		r := l.at(i)
		sl := t.at(r.slot)
		s, tm, meta, _ := t.asOf(sl, h.v)
		live, was := meta&metaLive != 0, r.meta&metaLive != 0
		if !live && !was || !keys && !(live && !was) {
			continue // it came and went within the version, or is not asked for
		}
		e := DeltaEntry[K, S]{Time: tm, Removed: !live}
		if keys {
			e.Key = t.keyOf(sl)
			if live {
				e.State = *s
			}
		}
		sc.add(r.slot, e)
	}
	if keys {
		sc.own(&t.form)
	}
	return i, i >= l.n, nil
}

func (h *handle[K, SK, S]) all(before int64, limited bool) iter.Seq2[K, Entry[S]] {
	return func(yield func(K, Entry[S]) bool) {
		h.walk(true, h.v, func(sc *scan[K, S]) bool {
			for i := range sc.items {
				e := &sc.items[i]
				if limited && e.Time >= before {
					continue
				}
				if !yield(e.Key, Entry[S]{State: e.State, Time: e.Time}) {
					return false
				}
			}
			return true
		})
	}
}

// rootDelta reports whether the version is New's and still the newest: all its
// keys are its delta, and slots are handed out in the order of first writes.
func (t *table[K, SK, S]) rootDelta(v uint32) bool { return t.root && v == 1 && t.cur == 1 }

func (h *handle[K, SK, S]) delta() (iter.Seq[DeltaEntry[K, S]], error) {
	t := h.rlock(false)
	if t == nil {
		return nil, ErrReleased
	}
	root, kept := t.rootDelta(h.v), h.v >= t.first
	t.mu.RUnlock()
	if !kept {
		return nil, ErrDeltaGone
	}
	return func(yield func(DeltaEntry[K, S]) bool) {
		each := func(sc *scan[K, S]) bool {
			for _, e := range sc.items {
				if !yield(e) {
					return false
				}
			}
			return true
		}
		if root {
			h.walk(true, h.v, each)
		} else {
			if h.walkDelta(true, each) == ErrDeltaGone { // an empty delta would be a lie: see Err
				h.late.Store(true)
			}
		}
	}, nil
}

func (h *handle[K, SK, S]) deltaLen() int {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	switch {
	case t.rootDelta(h.v):
		return h.live
	case h.v < t.first:
		return 0
	}
	return int(t.version(h.v).list.n)
}

func (h *handle[K, SK, S]) inserted(yield func(slot uint32, t int64) bool) {
	t := h.rlock(false)
	if t == nil {
		return
	}
	root := t.rootDelta(h.v)
	t.mu.RUnlock()
	if root {
		h.allSlots(yield)
		return
	}
	_ = h.walkDelta(false, yieldSlots[K, S](yield))
}

func (h *handle[K, SK, S]) allSlots(yield func(slot uint32, t int64) bool) {
	h.walk(false, h.v, yieldSlots[K, S](yield))
}

func yieldSlots[K comparable, S any](yield func(slot uint32, t int64) bool) func(*scan[K, S]) bool {
	return func(sc *scan[K, S]) bool {
		for i, n := range sc.slots {
			if !yield(n, sc.items[i].Time) {
				return false
			}
		}
		return true
	}
}
