package statemap

// minFlatten is the number of slots below which a table is not made smaller.
const minFlatten = chunkLen

// shouldFlatten reports whether the next version is better begun in a new
// table: most slots, or most of the key memory, are unused (each key that is
// moved then stands for several removes, which pay for it), or the version
// numbers are used up.
func (t *table[K, SK, S]) shouldFlatten(live int) bool {
	return t.n > minFlatten && live < int(t.n/4) || t.arena.wasted() || t.cur >= maxVersion
}

// flatten copies the live keys of a pinned version to a new table, as its
// version 1. Slots are numbered anew. It gives nil if the version is aborted
// meanwhile.
func (h *handle[K, SK, S]) flatten() *table[K, SK, S] {
	t := h.rlock(true)
	if t == nil {
		return nil
	}
	nt := t.like(1, h.live)
	t.mu.RUnlock()
	nt.layout = nt.layouts.Add(1)
	for n, done, ok := uint32(0), false, true; !done; {
		if n, done, ok = h.copyLive(nt, n); !ok {
			return nil
		}
	}
	return nt
}

// copyLive copies the live slots of the next chunk from n to nt, and says where
// to go on and whether that is the end. It is not ok if the version is aborted.
func (h *handle[K, SK, S]) copyLive(nt *table[K, SK, S], n uint32) (next uint32, done, ok bool) {
	t := h.rlock(true)
	if t == nil {
		return n, true, false
	}
	defer t.mu.RUnlock() // deferred, since Options.Hash may panic
	for end := min(n+chunkLen, t.n); n < end; n++ {
		sl := t.at(n)
		if s, tm, meta, _ := t.asOf(sl, h.v); meta&metaLive != 0 {
			nt.adopt(nt.alloc(), t.keyOf(sl), s, tm, 1<<metaShift|metaLive, 0)
		}
	}
	return n, n >= t.n, true
}

// adopt fills a fresh slot of a table that nobody else sees yet.
func (t *table[K, SK, S]) adopt(n uint32, k K, s *S, tm int64, meta, undo uint32) {
	sl := t.at(n)
	t.setKey(sl, k)
	sl.state, sl.time, sl.meta, sl.undo = *s, tm, meta, undo
	t.indexAdd(t.hash(k), k, n)
}
