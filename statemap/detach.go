package statemap

import (
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
)

// planDetach decides, when a version after h was begun, whether old handles
// trail too far. If so it pins h and gives the work: to move h and all older
// handles to a table of their own, where their chains no longer grow.
//
// The predecessor alone is never a reason: it is there in every batch.
func (t *table[K, SK, S]) planDetach(h *handle[K, SK, S]) func() {
	oldest := t.handles[0].v
	if t.opts.NoAutoDetach || t.detaching || oldest >= h.v || t.cur-oldest < uint32(t.opts.DeltaChainThreshold) {
		return nil
	}
	t.detaching = true
	h.pins++
	return func() {
		h.detach(true)
		t.mu.Lock()
		t.detaching = false
		t.mu.Unlock()
		h.unpin(false)
	}
}

func (h *handle[K, SK, S]) compact() error {
	if !h.pin(false) {
		return ErrReleased
	}
	defer h.unpin(false)
	t := h.rlock(true)
	if t == nil {
		return ErrReleased
	}
	newest := t.cur == h.v
	t.mu.RUnlock()
	if newest {
		return nil
	}
	h.detach(false)
	return h.err()
}

// detach moves a pinned, sealed version to a table of its own, and with
// withOlder all older handles too. It does nothing if the version is aborted
// or moved by someone else meanwhile.
//
// The new table has the same slot numbers, and slots that look as they looked
// when the version was the newest; so iterators under way simply go on in it,
// and older handles read on through the same undo lists.
func (h *handle[K, SK, S]) detach(withOlder bool) {
	t := h.rlock(true)
	if t == nil {
		return
	}
	nt := t.like(h.v, h.live)
	nt.layout = t.layout
	nt.order.Store(t.order.Load())
	from := h.v // the oldest version that will be read in the new table
	if withOlder {
		from = t.handles[0].v
	}
	from = max(from, t.first) // the oldest list that goes along; past h.v if there is none
	t.mu.RUnlock()

	for n, done, ok := uint32(0), false, true; !done; {
		if n, done, ok = h.copyChunk(t, nt, n, from); !ok {
			return
		}
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if h.t.Load() != t || h.status.Load() == statusAborted {
		return
	}
	t.handOver(nt, h, withOlder, from)
	t.trim()
}

// copyChunk copies the slots of the next chunk from n, as they were in this
// version, to the same slots of nt, and says where to go on and whether that is
// the end. Removed keys go along if a version from … h.v removed them. It is not
// ok if t is no longer the version's table.
func (h *handle[K, SK, S]) copyChunk(t, nt *table[K, SK, S], n, from uint32) (next uint32, done, ok bool) {
	now := h.rlock(true)
	if now == nil {
		return n, true, false
	}
	defer now.mu.RUnlock() // deferred, since Options.Hash may panic
	if now != t {
		return n, true, false
	}
	for end := min(n+chunkLen, t.n); n < end; n++ {
		sl := t.at(n)
		s, tm, meta, undo := t.asOf(sl, h.v)
		if m := nt.alloc(); meta&metaLive != 0 || meta>>metaShift >= from {
			if sabotage.On("detach-loses-undo") {
				undo = 0
			}
			nt.adopt(m, t.keyOf(sl), s, tm, meta, undo)
		} else {
			nt.vacant = append(nt.vacant, m)
		}
	}
	return n, n >= t.n, true
}

// handOver moves h, and with withOlder all older handles, to nt, with the undo
// lists from … h.v as far as they are still kept. t keeps its lists until trim
// finds them unused.
func (t *table[K, SK, S]) handOver(nt *table[K, SK, S], h *handle[K, SK, S], withOlder bool, from uint32) {
	if from = max(from, t.first); from <= h.v {
		lists := t.versions[from-t.first : h.v-t.first+1]
		for i := range lists {
			lists[i].shared = true
		}
		nt.versions = append(nt.versions, lists...)
		nt.first = from
		// A slot that is pending here, as an earlier version removed its key, can
		// have been written since by a version of these lists. If nt takes that one
		// back, the slot is again without a state.
		if !sabotage.On("detach-loses-pending") {
			nt.pending = append(nt.pending, t.pending...)
		}
	}
	nt.free, nt.vacant = nt.vacant, nil // only now: alloc would have used them
	var stay, move []*handle[K, SK, S]
	for _, w := range t.handles {
		if w == h || withOlder && w.v <= h.v {
			move = append(move, w)
		} else {
			stay = append(stay, w)
		}
	}
	// Once the first handle is stored, others may use nt and change nt.handles,
	// so that must not share memory with move.
	t.handles, nt.handles = stay, slices.Clone(move)
	for _, w := range move {
		w.t.Store(nt)
	}
}
