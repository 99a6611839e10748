package statemap

import (
	"errors"
	"fmt"
	"unsafe"
)

// verify checks what must hold of a table between any two calls.
func (t *table[K, SK, S]) verify() error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.locked {
		return errors.New("locked flag left set")
	}
	if got, want := uint32(len(t.versions)), t.cur+1-t.first; got != want {
		return fmt.Errorf("%d version records for %d…%d", got, t.first, t.cur)
	}
	free := map[uint32]bool{}
	for _, n := range t.free {
		if n >= t.n || free[n] {
			return fmt.Errorf("bad free slot %d of %d", n, t.n)
		}
		free[n] = true
	}
	freeable := map[uint32]bool{}
	for _, n := range t.pending {
		freeable[n] = true
	}
	for i := range t.versions {
		for _, n := range t.versions[i].dels {
			freeable[n] = true
		}
	}
	used, bytes := 0, 0
	for n := range t.n {
		sl := t.at(n)
		if (sl.meta == 0) != free[n] {
			return fmt.Errorf("slot %d has meta %d, free %v", n, sl.meta, free[n])
		}
		if sl.meta == 0 {
			continue
		}
		if sl.meta&metaLive == 0 && !freeable[n] {
			return fmt.Errorf("slot %d of version %d holds no state and will never be freed", n, sl.meta>>metaShift)
		}
		used++
		k := t.keyOf(sl)
		if got := t.find(t.hash(k), k); got != n+1 {
			return fmt.Errorf("key %v of slot %d is found at %d", k, n, int(got)-1)
		}
		if v := sl.meta >> metaShift; v > t.cur {
			return fmt.Errorf("slot %d is of version %d after %d", n, v, t.cur)
		}
		if t.form.arena {
			if s := *(*string)(unsafe.Pointer(&k)); len(s) > maxSmallKey {
				bytes += len(s)
			} else if len(s) > 0 {
				_, size := cell(len(s))
				bytes += size
			}
		}
	}
	if c := t.index.count(); c != used {
		return fmt.Errorf("index holds %d cells for %d slots", c, used)
	}
	if bytes != t.arena.used {
		return fmt.Errorf("arena counts %d bytes, keys need %d", t.arena.used, bytes)
	}
	for i, h := range t.handles {
		if h.t.Load() != t || i > 0 && t.handles[i-1].v >= h.v || h.v > t.cur {
			return fmt.Errorf("handle %d of version %d", i, h.v)
		}
		live := 0
		for n := range t.n {
			if _, _, meta, _ := t.asOf(t.at(n), h.v); meta&metaLive != 0 {
				live++
			}
		}
		if live != h.live {
			return fmt.Errorf("version %d counts %d keys and has %d", h.v, h.live, live)
		}
	}
	return nil
}

func (h *handle[K, SK, S]) verify() error {
	t := h.t.Load()
	if t == nil {
		return nil
	}
	return t.verify()
}

// verify checks the table behind a handle.
func verify[K comparable, S any](m *Map[K, S]) error {
	return m.h.(interface{ verify() error }).verify()
}

func tableOf[K comparable, SK, S any](m *Map[K, S]) *table[K, SK, S] {
	return m.h.(*handle[K, SK, S]).t.Load()
}
