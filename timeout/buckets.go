package timeout

import "math/bits"

const (
	// Hints at most exactBuckets ahead of the cursor keep their own bucket;
	// farther ones are rounded down to 256 buckets per doubling of the distance.
	exactBuckets = 512
	// A deadline's bucket number is kept in 32 bits, relative to a base this far
	// behind the cursor.
	baseBehind = 1 << 31
	// The base moves when the cursor has come this far ahead of it.
	rebaseAt = 3 << 30
)

// place puts a hint into its bucket, unless the slot has one not later.
func (x *Index) place(slot uint32, b int64) {
	b = x.round(b)
	if !x.deadline {
		if !x.hinted.set(slot) {
			return
		}
	} else {
		// A hint outside the 32 bits is moved to an earlier bucket, or, below the
		// base, to one far behind every pass: both are visited in time.
		b = min(max(b, x.base+1), satAdd(x.base, 1<<32-1))
		if x.covered(slot, b) {
			return
		}
		for int(slot) >= len(x.rel) {
			x.rel = append(x.rel, make([]uint32, max(64, len(x.rel)/4))...)
		}
		if x.rel[slot] == 0 {
			x.live++
		}
		x.rel[slot] = uint32(b - x.base)
	}
	slots, ok := x.buckets[b]
	if !ok {
		x.order.push(b)
		slots, x.spare = x.spare[:0], nil
	}
	x.buckets[b] = append(slots, slot)
	x.entries++
}

// round moves a far hint down, so that the number of buckets stays small
// whatever the spread of due times.
func (x *Index) round(b int64) int64 {
	if b <= x.cursor {
		return b
	}
	far := uint64(b) - uint64(x.cursor)
	if far <= exactBuckets {
		return b
	}
	grain := int64(1) << (bits.Len64(far) - 9)
	return b &^ (grain - 1)
}

// start moves the cursor to bucket b, never back.
func (x *Index) start(b int64) {
	if !x.started {
		x.started, x.cursor, x.base = true, b, satAdd(b, -baseBehind)
		return
	}
	x.cursor = max(x.cursor, b)
	if uint64(x.cursor)-uint64(x.base) > rebaseAt {
		x.rebase()
	}
}

// rebase renumbers the slots' buckets relative to a later base: O(n), once in
// 2^30 buckets. It runs right after a pass was consumed, so every hint that is
// left lies beyond the cursor and keeps its bucket.
func (x *Index) rebase() {
	base := x.cursor - baseBehind
	for i, r := range x.rel {
		if r != 0 {
			x.rel[i] = uint32(x.base + int64(r) - base)
		}
	}
	x.base = base
}

// consume takes away the buckets that the pass went through.
func (x *Index) consume() {
	for len(x.order) > 0 && x.order[0] <= x.limit {
		b := x.order.pop()
		slots := x.buckets[b]
		x.entries -= len(slots)
		delete(x.buckets, b)
		if cap(slots) > cap(x.spare) {
			x.spare = slots
		}
	}
}

// sweep drops the stale hints: a deadline moved to and fro leaves one each time.
// It runs when they outnumber the others, so its cost is spread over the Adds.
func (x *Index) sweep() {
	x.entries = 0
	x.order = x.order[:0]
	for b, slots := range x.buckets {
		kept := slots[:0]
		for _, slot := range slots {
			if x.valid(slot, b) && x.seen.set(slot) {
				kept = append(kept, slot)
			}
		}
		if len(kept) == 0 {
			delete(x.buckets, b)
			continue
		}
		if len(kept) < cap(kept)/2 {
			kept = append([]uint32(nil), kept...)
		}
		x.buckets[b] = kept
		x.entries += len(kept)
		x.order.push(b)
	}
	clear(x.seen)
}
