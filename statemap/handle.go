package statemap

import (
	"sync/atomic"

	"github.com/statemill/statemill/internal/sabotage"
)

// handle is one version of a table. v never changes; t changes when the
// handle is detached into another table, where it keeps its number.
type handle[K comparable, SK, S any] struct {
	t      atomic.Pointer[table[K, SK, S]] // nil when nothing is left to use
	v      uint32
	sealed atomic.Bool
	status atomic.Uint32 // statusLive …
	late   atomic.Bool   // a loop over Delta came when the delta was gone

	// Under the table's lock:
	live      int // keys with a state
	pins      int // iterators and detaches under way
	deltaPins int // iterators over the version's own undo list
}

const (
	statusLive     = iota
	statusReleased // still readable by those who hold pins
	statusAborted  // readable by nobody
)

func (h *handle[K, SK, S]) err() error {
	if h.status.Load() != statusLive {
		return ErrReleased
	}
	return nil
}

// loopErr tells a user whether loops over the handle were complete.
func (h *handle[K, SK, S]) loopErr() error {
	if h.late.Load() {
		return ErrDeltaGone
	}
	return h.err()
}

func (h *handle[K, SK, S]) writable() error {
	if h.status.Load() != statusLive {
		return ErrReleased
	}
	if h.sealed.Load() {
		return ErrSealed
	}
	return nil
}

// rlock read-locks the handle's table. It gives nil, and no lock, if the
// handle cannot be read: it is aborted, or released and not pinned by the caller.
func (h *handle[K, SK, S]) rlock(pinned bool) *table[K, SK, S] {
	for {
		t := h.t.Load()
		if t == nil {
			return nil
		}
		t.mu.RLock()
		if h.t.Load() == t {
			if st := h.status.Load(); st == statusLive || pinned && st == statusReleased {
				return t
			}
			t.mu.RUnlock()
			return nil
		}
		t.mu.RUnlock() // it was detached meanwhile
	}
}

// wlock locks the handle's table; nil if there is none left.
func (h *handle[K, SK, S]) wlock() *table[K, SK, S] {
	for {
		t := h.t.Load()
		if t == nil {
			return nil
		}
		t.mu.Lock()
		if h.t.Load() == t {
			return t
		}
		t.mu.Unlock()
	}
}

// pin keeps the version readable, even after Release, until unpin.
func (h *handle[K, SK, S]) pin(delta bool) bool {
	t := h.wlock()
	if t == nil {
		return false
	}
	defer t.mu.Unlock()
	if h.status.Load() != statusLive {
		return false
	}
	h.pins++
	if delta {
		h.deltaPins++
	}
	return true
}

func (h *handle[K, SK, S]) unpin(delta bool) {
	t := h.wlock()
	if t == nil {
		return // aborted meanwhile
	}
	defer t.mu.Unlock()
	h.pins--
	if delta {
		h.deltaPins--
	}
	if h.pins == 0 && h.status.Load() == statusReleased {
		t.drop(h)
	} else if delta {
		t.trim()
	}
}

func (h *handle[K, SK, S]) lookup(k K) (s S, tm int64, ok bool, err error) {
	t := h.rlock(false)
	if t == nil {
		return s, 0, false, ErrReleased
	}
	defer t.mu.RUnlock()
	if n := t.find(t.hash(k), k); n != 0 {
		if p, tm, meta, _ := t.asOf(t.at(n-1), h.v); meta&1 == 1 {
			return *p, tm, true, nil
		}
	}
	return s, 0, false, nil
}

func (h *handle[K, SK, S]) put(k K, s S, tm int64) error {
	if err := h.writable(); err != nil {
		return err
	}
	if k != k {
		return ErrNaN
	}
	t := h.t.Load()
	hash := t.hash(k)
	n := t.find(hash, k) // no lock: only this goroutine changes slots and index
	if n == 0 && t.full(1) {
		return ErrFull
	}
	t.lock()
	defer t.unlock()
	if n == 0 {
		n = t.insert(hash, k) + 1
	}
	h.live += t.write(n-1, s, tm, 1, false)
	t.seq++
	return nil
}

func (h *handle[K, SK, S]) remove(k K) error {
	if err := h.writable(); err != nil {
		return err
	}
	t := h.t.Load()
	hash := t.hash(k)
	n := t.find(hash, k)
	if n == 0 {
		if sabotage.On("insert-before-update") {
			t.lock()
			defer t.unlock()
			var zero S
			t.write(t.insert(hash, k), zero, 0, 0, false)
		}
		return nil
	}
	return h.removeSlot(n - 1)
}

func (h *handle[K, SK, S]) seal() { h.sealed.Store(true) }

func (h *handle[K, SK, S]) isSealed() bool { return h.sealed.Load() }

func (h *handle[K, SK, S]) threshold() int {
	if t := h.t.Load(); t != nil {
		return t.opts.DeltaChainThreshold
	}
	return DefaultDeltaChainThreshold
}

func (h *handle[K, SK, S]) chainLength() int {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	return int(t.cur - h.v)
}

func (h *handle[K, SK, S]) length() int {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	return h.live
}

func (h *handle[K, SK, S]) approxSize() int {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	return int(t.n) - len(t.free)
}

func (h *handle[K, SK, S]) hash(k K) uint64 {
	t := h.t.Load()
	if t == nil {
		return 0
	}
	return t.hash(k)
}

func (h *handle[K, SK, S]) heapBytes() int64 {
	t := h.rlock(false)
	if t == nil {
		return 0
	}
	defer t.mu.RUnlock()
	return t.heapBytes()
}
