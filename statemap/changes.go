package statemap

import (
	"strings"
	"unsafe"
)

// Change is what a version did to the state of one key.
type Change[K comparable, S any] struct {
	Key           K
	Before, After S    // zero if there was, or is, none
	Was, Is       bool // the key had a state before the version, and has one in it
}

// Changes calls yield for every key whose state this version wrote, each key once, with the state
// before it, until yield returns false. Keys that came and went within the version and those whose
// time alone changed are left out. It is Delta for those who keep a sum over all states: for a
// table's first version Before is none. Errors as Delta; pinning and locking as for All.
func (m *Map[K, S]) Changes(yield func(*Change[K, S]) bool) error {
	if m.h == nil {
		return nil
	}
	return m.h.changes(yield)
}

func (h *handle[K, SK, S]) changes(yield func(*Change[K, S]) bool) error {
	t := h.rlock(false)
	if t == nil {
		return ErrReleased
	}
	root := t.rootDelta(h.v)
	t.mu.RUnlock()
	if root {
		for k, e := range h.all(0, false) {
			if !yield(&Change[K, S]{Key: k, After: e.State, Is: true}) {
				return nil
			}
		}
		return h.err()
	}
	if !h.pin(true) {
		return ErrReleased
	}
	defer h.unpin(true)
	var buf []Change[K, S]
	for i, done := uint32(0), false; !done; {
		var err error
		if buf, i, done, err = h.readChanges(buf[:0], i); err != nil {
			return err
		}
		for j := range buf {
			if !yield(&buf[j]) {
				return nil
			}
		}
	}
	return nil
}

// readChanges reads the changes of the next scanLen undo records from i, and says where to go on
// and whether that is the end.
func (h *handle[K, SK, S]) readChanges(buf []Change[K, S], i uint32) (_ []Change[K, S], next uint32, done bool, err error) {
	t := h.rlock(true)
	if t == nil {
		return buf, i, true, ErrReleased
	}
	defer t.mu.RUnlock()
	if h.v < t.first {
		return buf, i, true, ErrDeltaGone
	}
	l := &t.version(h.v).list
	for end := min(i+scanLen, l.n); i < end; i++ {
		r := l.at(i)
		sl := t.at(r.slot)
		s, _, meta, _ := t.asOf(sl, h.v)
		is, was := meta&metaLive != 0, r.meta&metaLive != 0
		if !is && !was || is && was && meta&metaOwn == 0 {
			continue
		}
		c := Change[K, S]{Key: t.keyOf(sl), Was: was, Is: is}
		if t.form.arena {
			k := (*string)(unsafe.Pointer(&c.Key))
			*k = strings.Clone(*k)
		}
		if was {
			c.Before = r.state
		}
		if is {
			c.After = *s
		}
		buf = append(buf, c)
	}
	return buf, i, i >= l.n, nil
}
