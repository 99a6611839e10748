package statemap

import (
	"strings"
	"unsafe"
)

// readSlot gives what stands in slot n in this version. The writer of an open
// version reads without the lock, since nobody else changes slots.
func (h *handle[K, SK, S]) readSlot(n uint32, f func(t *table[K, SK, S], sl *slot[SK, S], s *S, tm int64)) {
	if h.status.Load() != statusLive {
		return
	}
	if !h.sealed.Load() {
		t := h.t.Load()
		if n < t.n {
			if sl := t.at(n); sl.meta&1 == 1 {
				f(t, sl, &sl.state, sl.time)
			}
		}
		return
	}
	t := h.rlock(false)
	if t == nil {
		return
	}
	defer t.mu.RUnlock()
	if n < t.n {
		sl := t.at(n)
		if s, tm, meta, _ := t.asOf(sl, h.v); meta&1 == 1 {
			f(t, sl, s, tm)
		}
	}
}

func (h *handle[K, SK, S]) slotAt(n uint32, own bool) (k K, s S, tm int64, live bool) {
	h.readSlot(n, func(t *table[K, SK, S], sl *slot[SK, S], sp *S, stm int64) {
		k, s, tm, live = t.keyOf(sl), *sp, stm, true
		if own && t.form.arena {
			ks := (*string)(unsafe.Pointer(&k))
			*ks = strings.Clone(*ks)
		}
	})
	return k, s, tm, live
}

func (h *handle[K, SK, S]) slotTime(n uint32) (tm int64, live bool) {
	if !h.sealed.Load() && h.status.Load() == statusLive {
		// The expiry pass of the writer asks this for every hint.
		if t := h.t.Load(); n < t.n {
			sl := t.at(n)
			return sl.time, sl.meta&1 == 1
		}
		return 0, false
	}
	h.readSlot(n, func(_ *table[K, SK, S], _ *slot[SK, S], _ *S, stm int64) { tm, live = stm, true })
	return tm, live
}

func (h *handle[K, SK, S]) putSlot(n uint32, s S, tm int64) error {
	return h.writeSlot(n, s, tm, 1)
}

func (h *handle[K, SK, S]) removeSlot(n uint32) error {
	var zero S
	return h.writeSlot(n, zero, 0, 0)
}

func (h *handle[K, SK, S]) writeSlot(n uint32, s S, tm int64, live uint32) error {
	if err := h.writable(); err != nil {
		return err
	}
	t := h.t.Load()
	if n >= t.n || t.at(n).meta&1 == 0 {
		return nil
	}
	if live == 0 {
		tm = t.at(n).time // a tombstone tells when the state was last updated
	}
	t.lock()
	h.live += t.write(n, s, tm, live, false)
	t.unlock()
	t.seq++
	return nil
}

func (h *handle[K, SK, S]) slotCount() int {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	return int(t.n)
}

func (h *handle[K, SK, S]) layout() uint64 {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	return t.layout
}
