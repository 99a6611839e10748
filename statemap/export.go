package statemap

import (
	"fmt"
	"strings"
)

// export reads the version's own list, and below it the version before, which
// has the same slots with the list undone. The list stays pinned for both: a
// Copy between the two must not drop it.
func (h *handle[K, SK, S]) export() (d Dump[K, S], err error) {
	if !h.pin(true) {
		return d, ErrReleased
	}
	defer h.unpin(true)
	t := h.rlock(true)
	if t == nil {
		return d, ErrReleased
	}
	kept := h.v >= t.first
	root := t.root && h.v == 1
	t.mu.RUnlock()
	below := h.v
	if kept {
		below--
		own, err := h.delta()
		if err != nil {
			return d, err
		}
		for e := range own {
			d.Own = append(d.Own, e)
		}
	}
	if !kept || !root {
		h.walk(true, below, func(sc *scan[K, S]) bool {
			for _, e := range sc.items {
				d.Base = append(d.Base, DumpEntry[K, S]{Key: e.Key, State: e.State, Time: e.Time})
			}
			return true
		})
	}
	d.Count = len(d.Base)
	return d, h.err()
}

func (h *handle[K, SK, S]) debugString() string {
	t := h.rlock(false)
	if t == nil {
		return ""
	}
	defer t.mu.RUnlock()
	var b strings.Builder
	line := func(depth int, k K, s *S, tm int64, live bool) {
		if depth > 0 {
			b.WriteString(strings.Repeat("    ", depth-1) + "+--- ")
		}
		if live {
			fmt.Fprintf(&b, "%v: %v @ %d\n", k, *s, tm)
		} else {
			fmt.Fprintf(&b, "%v: removed @ %d\n", k, tm)
		}
	}
	base := min(t.first-1, h.v)
	if base == 0 && t.rootDelta(h.v) {
		base = 1
	}
	for n := range t.n {
		sl := t.at(n)
		if s, tm, meta, _ := t.asOf(sl, base); meta&metaLive != 0 {
			line(0, t.keyOf(sl), s, tm, true)
		}
	}
	for v := base + 1; v <= h.v; v++ {
		l := &t.version(v).list
		for i := range l.n {
			sl := t.at(l.at(i).slot)
			s, tm, meta, _ := t.asOf(sl, v)
			line(int(v-base), t.keyOf(sl), s, tm, meta&metaLive != 0)
		}
	}
	return b.String()
}

// heapBytes adds up what the table has allocated; states' own pointees are not seen.
func (t *table[K, SK, S]) heapBytes() int64 {
	n := t.slotStore.heapBytes() + t.index.heapBytes() + t.arena.heapBytes() + t.pool.heapBytes() + 4*cap(t.pending)
	for i := range t.versions {
		n += t.versions[i].list.heapBytes() + 4*cap(t.versions[i].dels)
	}
	if o := t.order.Load(); o != nil {
		n += 4 * cap(o.slots)
	}
	return int64(n) + tableBytes
}

// tableBytes is about what an empty table needs, most of it the index's segments.
const tableBytes = 4 << 10
