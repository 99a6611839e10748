package timeout

import (
	"fmt"
	"iter"
)

// bucketOverhead is what one bucket costs beside its slots: map cell, slice
// header, heap number.
const bucketOverhead = 56

// Bytes is the memory held, in bytes, counted from the sizes of its parts.
func (x *Index) Bytes() int64 {
	n := int64(len(x.buckets)*bucketOverhead) + int64(cap(x.order))*8
	for _, slots := range x.buckets {
		n += int64(cap(slots)) * 4
	}
	n += int64(cap(x.hinted)+cap(x.seen)) * 8
	n += int64(cap(x.rel)+cap(x.spare)) * 4
	n += int64(cap(x.adds)+cap(x.visited))*4 + int64(cap(x.runs))*16 + int64(cap(x.target))*8
	return n
}

// Verify checks the committed index: the slots of live, with their due times in
// the newest sealed version, must each have a hint not later than due, and the
// index's own counts must be right. It costs O(n) and is for tests and
// invariant builds; the error names the first slot at fault.
func (x *Index) Verify(live iter.Seq2[uint32, int64]) error {
	hint := map[uint32]int64{}
	entries := 0
	if len(x.order) != len(x.buckets) {
		return fmt.Errorf("timeout: %d buckets, %d in order", len(x.buckets), len(x.order))
	}
	for b, slots := range x.buckets {
		entries += len(slots)
		for _, slot := range slots {
			if !x.valid(slot, b) {
				continue
			}
			old, twice := hint[slot]
			if twice && !x.deadline {
				return fmt.Errorf("timeout: slot %d has two hints, in buckets %d and %d", slot, old, b)
			}
			hint[slot] = b
		}
	}
	if entries != x.entries {
		return fmt.Errorf("timeout: %d hints, counted as %d", entries, x.entries)
	}
	if x.deadline && len(hint) != x.live {
		return fmt.Errorf("timeout: %d slots have hints, counted as %d", len(hint), x.live)
	}
	for slot := range uint32(len(x.hinted) * 64) {
		if _, ok := hint[slot]; x.hinted.has(slot) && !ok {
			return fmt.Errorf("timeout: slot %d is marked but has no hint", slot)
		}
	}
	for slot, due := range live {
		b, ok := hint[slot]
		if !ok {
			return fmt.Errorf("timeout: live slot %d due at %d has no hint", slot, due)
		}
		// Not b*width, which may overflow.
		if b > x.base+1 || !x.deadline {
			if at := max(floorDiv(due, x.width), dropped+1); b > at {
				return fmt.Errorf("timeout: live slot %d due at %d (bucket %d) is hinted in bucket %d, later", slot, due, at, b)
			}
		}
	}
	return nil
}
