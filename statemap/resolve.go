package statemap

import (
	"unsafe"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
)

// blockScratch is what the stages of resolve hand on to each other.
type blockScratch struct {
	head [256]uint8        // record + 1, by hash byte
	next [BlockSize]uint8  // chain of records with the same byte
	ref  [BlockSize]keyRef // of the candidate slot
	sink uint64            // keeps the touching loads alive
}

// resolve works in stages over the whole block, so that the loads of a stage
// do not wait for each other: of index cells, then slots, then key bytes. Each
// would miss the cache in a large table.
func (t *table[K, SK, S]) resolve(b *Block[K, S], hashes []uint64, keys []K) error {
	b.group(hashes, keys)
	large := t.n > touchFrom
	t.candidates(b, hashes, keys, large)
	if large {
		t.touch(b, len(keys))
	}
	return t.confirm(b, hashes, keys)
}

// touchFrom is the number of slots up to which a table is taken to lie in a
// near cache, so that touching in advance costs more than it saves.
const touchFrom = 16 << 10

// group finds the records of the same key.
func (b *Block[K, S]) group(hashes []uint64, keys []K) {
	sc := &b.scratch
	sc.head = [256]uint8{}
	keys = keys[:len(hashes)]
	for i, h := range hashes {
		head := &sc.head[uint8(h)]
		e := uint8(i)
		for j := *head; j != 0; j = sc.next[(j-1)&blockMask] {
			if o := (j - 1) & blockMask; hashes[o] == h && keys[o] == keys[i] {
				e = b.ent[o]
				break
			}
		}
		sc.next[i&blockMask] = *head
		*head = uint8(i + 1)
		b.ent[i&blockMask] = e
	}
}

// candidates finds for every entry the first slot with the right 32 hash bits.
func (t *table[K, SK, S]) candidates(b *Block[K, S], hashes []uint64, keys []K, touch bool) {
	sc := &b.scratch
	secret := t.opts.Secret
	if touch {
		var sink uint64
		for _, h := range hashes {
			x := mix(h ^ secret)
			seg := &t.segs[x>>segShift]
			sink += seg.cell(x & 0xFFFFFFFF & seg.mask)
		}
		sc.sink += sink
	}
	for i, h := range hashes {
		x := mix(h ^ secret)
		seg := &t.segs[x>>segShift]
		if seg.strong {
			b.slot[i&blockMask] = t.find(hashes[i], keys[i])
			continue
		}
		p := x & 0xFFFFFFFF & seg.mask
		v := seg.cell(p)
		for v != 0 && uint32(v>>32) != uint32(x) {
			p = (p + 1) & seg.mask
			v = seg.cell(p)
		}
		b.slot[i&blockMask] = uint32(v)
	}
}

// touch loads every candidate's slot, and then a byte of every key in the arena.
func (t *table[K, SK, S]) touch(b *Block[K, S], n int) {
	sc := &b.scratch
	var sink uint64
	for i := range n {
		var r keyRef
		if c := b.slot[i&blockMask]; c != 0 {
			sl := t.at(c - 1)
			if t.form.arena {
				r = *(*keyRef)(unsafe.Pointer(&sl.key))
			}
			sink += uint64(sl.meta)
		}
		sc.ref[i&blockMask] = r
	}
	for i := range n {
		if r := sc.ref[i&blockMask]; uint16(r) != 0 && uint16(r) != bigKey {
			sink += uint64(*(*byte)(t.arena.at(uint64(r) >> 16)))
		}
	}
	sc.sink += sink
}

// confirm compares keys and copies what the slots hold into the block.
func (t *table[K, SK, S]) confirm(b *Block[K, S], hashes []uint64, keys []K) error {
	for i := range hashes {
		e := i & blockMask
		if int(b.ent[e]) != i {
			continue
		}
		c := b.slot[e]
		if c != 0 && !t.keyIs(t.at(c-1), keys[i]) {
			c = t.find(hashes[i], keys[i])
			b.slot[e] = c
		}
		if c == 0 {
			if keys[i] != keys[i] {
				return ErrNaN
			}
			var zero S
			b.state[e], b.flags[e] = zero, 0
			continue
		}
		s := t.at(c - 1)
		f := uint8(s.meta & metaLive)
		if s.meta>>metaShift == t.cur {
			f = uint8(s.meta & (metaLive | metaOwn)) // these bits are flagLive and flagOwn
		}
		b.state[e], b.time[e], b.flags[e] = s.state, s.time, f
	}
	return nil
}

// apply writes the block's dirty entries and gives the change in live keys.
func (t *table[K, SK, S]) apply(b *Block[K, S]) (live int) {
	cur, root := t.cur, t.isRoot()
	invariants.Check(t.locked, "statemap: apply without the lock")
	for _, e := range b.order[:b.dirty&(2*BlockSize-1)] {
		e &= blockMask
		f := b.flags[e]
		c := b.slot[e]
		if c != 0 && f&(flagLive|flagState) == flagLive|flagState {
			// A new state for a live key, the usual case: what write does, in line.
			if sl := t.at(c - 1); sl.meta&metaLive != 0 {
				if sl.meta>>metaShift != cur && !root {
					t.save(c-1, sl)
				}
				sl.state, sl.time, sl.meta = b.state[e], b.time[e], cur<<metaShift|metaOwn|metaLive
				continue
			}
		}
		if c == 0 {
			// Also a key that came and went within the block gets a slot, until
			// the next Copy: should it come again, its place in the delta must
			// not depend on where blocks were cut.
			c = t.insert(b.hashes[e], b.keys[e]) + 1
			b.slot[e] = c
		}
		d := t.write(c-1, b.state[e], b.time[e], uint32(f&flagLive), f&flagState == 0)
		if d > 0 {
			b.ins[b.nins&blockMask] = c - 1
			b.nins++
		}
		live += d
	}
	return live
}

func (h *handle[K, SK, S]) resolve(m *Map[K, S], b *Block[K, S], hashes []uint64, keys []K) error {
	b.n, b.dirty, b.owner = 0, 0, nil
	if err := h.writable(); err != nil {
		return err
	}
	if len(keys) > BlockSize || len(hashes) != len(keys) {
		return blockErrorf("%d keys and %d hashes; give as many of both, at most %d", len(keys), len(hashes), BlockSize)
	}
	t := h.t.Load()
	if invariants.Enabled && t.opts.Hash != nil {
		for i := range keys {
			invariants.Check(hashes[i] == t.opts.Hash(keys[i]), "statemap: hash of record %d is not Options.Hash of its key", i)
		}
	}
	if err := t.resolve(b, hashes, keys); err != nil {
		return err
	}
	b.n, b.hashes, b.keys, b.owner, b.seq = len(keys), hashes, keys, m, t.seq
	return nil
}

func (h *handle[K, SK, S]) apply(m *Map[K, S], b *Block[K, S]) error {
	b.nins = 0
	if err := h.writable(); err != nil {
		return err
	}
	t := h.t.Load()
	if b.owner != m {
		return blockErrorf("it was not resolved by this map, or was applied before")
	}
	if b.seq != t.seq {
		return blockErrorf("the map was written to since Resolve; resolve the block anew")
	}
	if sabotage.On("insert-before-update") {
		for i := range b.n {
			if e := b.ent[i]; b.slot[e] == 0 && b.flags[e]&flagDirty == 0 {
				b.flags[e] = flagDirty | flagState
				b.order[b.dirty] = e
				b.dirty++
			}
		}
	}
	if b.dirty > 0 {
		if t.full(b.dirty) && t.full(b.inserts()) {
			return ErrFull
		}
		t.lock()
		if t.hook != nil {
			t.hook()
		}
		h.live += t.apply(b)
		t.unlock()
		t.seq++
	}
	b.hashes, b.keys, b.owner = nil, nil, nil
	if t.form.statePtrs {
		clear(b.state[:b.n])
	}
	return nil
}

// inserts counts the entries that will need a slot.
func (b *Block[K, S]) inserts() (n int) {
	for _, e := range b.order[:b.dirty] {
		if b.slot[e] == 0 {
			n++
		}
	}
	return n
}

// full reports whether n more keys might find no slot.
func (t *table[K, SK, S]) full(n int) bool {
	return uint64(t.n)+uint64(n) > uint64(t.limit) && n > len(t.free)
}
