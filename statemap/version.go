package statemap

import "github.com/statemill/statemill/internal/sabotage"

// copy begins the next version; see Map.Copy.
func (h *handle[K, SK, S]) copy() (engine[K, S], error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	t := h.wlock()
	if t == nil {
		return nil, ErrReleased
	}
	if h.status.Load() != statusLive {
		t.mu.Unlock()
		return nil, ErrReleased
	}
	h.sealed.Store(true)
	t.dropAbandoned(h.v)
	if t.cur != h.v || t.shouldFlatten(h.live) {
		h.pins++ // so that the version stays while it is read without the lock
		t.mu.Unlock()
		defer h.unpin(false)
		nt := h.flatten()
		if nt == nil {
			return nil, ErrReleased // aborted meanwhile
		}
		return nt.begin(h.live), nil
	}
	t.locked = true
	nh := t.begin(h.live)
	t.trim()
	t.freePending()
	t.locked = false
	job := t.planDetach(h)
	t.mu.Unlock()
	if job != nil {
		if t.opts.Background != nil {
			t.opts.Background(job)
		} else {
			job()
		}
	}
	return nh, nil
}

// begin opens the next version and gives its handle. live is the number of
// keys with a state in the version before.
func (t *table[K, SK, S]) begin(live int) *handle[K, SK, S] {
	if n := len(t.versions); n > 0 {
		// What the last version needed is what the next one is likely to need.
		t.pool.limit(len(t.versions[n-1].list.chunks) + 1)
	}
	t.cur++
	t.versions = append(t.versions, version[S]{})
	nh := &handle[K, SK, S]{v: t.cur, live: live}
	nh.t.Store(t)
	t.handles = append(t.handles, nh)
	return nh
}

// abort takes the newest version back; see Map.Abort.
func (h *handle[K, SK, S]) abort() error {
	if err := h.err(); err != nil {
		return err
	}
	t := h.wlock()
	if t == nil {
		return ErrReleased
	}
	defer t.mu.Unlock()
	t.dropAbandoned(h.v)
	if t.cur != h.v {
		return ErrNotNewest
	}
	if !h.status.CompareAndSwap(statusLive, statusAborted) {
		return ErrReleased
	}
	// Without an older handle nobody can see the table again. With one, the
	// undo list is there, since that handle reads through it.
	if len(t.handles) > 1 {
		t.locked = true
		t.undoNewest()
		t.locked = false
		t.seq++
	}
	t.drop(h)
	return nil
}

// dropAbandoned takes back the versions after v if all their handles were released.
func (t *table[K, SK, S]) dropAbandoned(v uint32) {
	if n := len(t.handles); n == 0 || t.handles[n-1].v != v {
		return
	}
	t.locked = true
	for t.cur > v {
		t.undoNewest()
	}
	t.locked = false
}

// undoNewest makes the version before the newest one again: states, counters,
// index, arena and free lists are as they were when it was.
func (t *table[K, SK, S]) undoNewest() {
	v := t.version(t.cur)
	n := v.list.n
	for i := range n {
		r := v.list.at(n - 1 - i)
		if sabotage.On("undo-wrong-order") {
			r = v.list.at(i)
		}
		if r.meta == 0 {
			if !sabotage.On("abort-keeps-counters") {
				t.discard(r.slot, true)
			} else {
				t.at(r.slot).meta = 0
			}
			continue
		}
		sl := t.at(r.slot)
		sl.state, sl.time, sl.meta, sl.undo = r.state, r.time, r.meta, r.undo
	}
	t.recycle(v)
	t.versions = t.versions[:len(t.versions)-1]
	t.cur--
}

func (h *handle[K, SK, S]) release() {
	if !h.status.CompareAndSwap(statusLive, statusReleased) {
		return
	}
	t := h.wlock()
	if t == nil {
		return
	}
	defer t.mu.Unlock()
	if h.pins == 0 {
		t.drop(h)
	}
}

// drop forgets a handle and what only it needed.
func (t *table[K, SK, S]) drop(h *handle[K, SK, S]) {
	for i, w := range t.handles {
		if w == h {
			t.handles = append(t.handles[:i], t.handles[i+1:]...)
			break
		}
	}
	h.t.Store(nil)
	t.trim()
}

// trim drops the undo lists that nobody reads through: those of versions not
// after the oldest handle, but for the newest version's, which Abort needs.
// The slots whose keys those versions removed wait in pending for the writer.
func (t *table[K, SK, S]) trim() {
	if len(t.handles) == 0 {
		return
	}
	oldest := t.handles[0].v
	for t.first < t.cur && t.first <= oldest && !t.deltaPinned(t.first) {
		v := &t.versions[0]
		t.pending = append(t.pending, v.dels...)
		t.recycle(v)
		t.versions = t.versions[1:]
		t.first++
	}
	if sabotage.On("slot-reused-early") && len(t.versions) > 1 {
		t.pending = append(t.pending, t.versions[len(t.versions)-2].dels...)
	}
}

func (t *table[K, SK, S]) recycle(v *version[S]) {
	if !v.shared {
		t.pool.put(&v.list, t.form.statePtrs)
	}
	*v = version[S]{}
}

func (t *table[K, SK, S]) deltaPinned(v uint32) bool {
	for _, h := range t.handles {
		if h.v == v {
			return h.deltaPins > 0
		}
	}
	return false
}

// freePending frees slots whose keys were removed before every live version.
// Only the writer may, within Copy: a slot freed by a Release on another
// goroutine could vanish between the writer's Resolve and Apply.
func (t *table[K, SK, S]) freePending() {
	// A list that is kept for an iterator over it needs its slots too, also those
	// that are pending since an earlier removal.
	oldest := min(t.handles[0].v, t.first-1)
	kept := t.pending[:0]
	for _, n := range t.pending {
		if n >= t.n {
			continue
		}
		sl := t.at(n)
		switch v := sl.meta >> metaShift; {
		case sl.meta == 0: // freed before: it was removed twice
		case v > oldest && !(sabotage.On("slot-reused-early") && sl.meta&metaLive == 0):
			kept = append(kept, n) // written again since, which can still be undone
		case sl.meta&metaLive == 0:
			t.discard(n, false)
		}
	}
	t.pending = kept
	if len(kept) == 0 && cap(kept) > chunkLen {
		t.pending = nil
	}
}
