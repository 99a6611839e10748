package staterdd

import "slices"

// keyOrder is the order of the live keys of a partition's newest version by canonical bytes, as
// slots. It is a hint: what it says is looked at again in every batch, and only what does not
// fit is sorted. So a batch that changes few keys sorts few.
type keyOrder struct {
	slots  []uint32
	layout uint64
}

// ordered is a live key that has yet to be given its place.
type ordered[K comparable] struct {
	key  K
	slot uint32
}

// inOrder calls f for the live keys of the version being built, in the order of their canonical
// bytes. f may write or remove the slot that it is given.
func (p *Partition[K, V, S, M]) inOrder(f func(slot uint32, k K, s S) error) error {
	kept, fresh := p.places()
	out := make([]uint32, 0, len(kept)+len(fresh))
	give := func(slot uint32, k K, s S) error {
		out = append(out, slot)
		return f(slot, k, s)
	}
	giveFresh := func(e ordered[K]) error {
		_, s, _, _ := p.m.SlotView(e.slot)
		return give(e.slot, e.key, s)
	}
	for _, slot := range kept {
		k, s, _, _ := p.m.SlotAt(slot) // one copy of the key: functions and outputs keep it
		for len(fresh) > 0 && p.op.key.Compare(fresh[0].key, k) < 0 {
			if err := giveFresh(fresh[0]); err != nil {
				return err
			}
			fresh = fresh[1:]
		}
		if err := give(slot, k, s); err != nil {
			return err
		}
	}
	for _, e := range fresh {
		if err := giveFresh(e); err != nil {
			return err
		}
	}
	p.line.order.slots, p.line.order.layout = out, p.m.Layout()
	return nil
}

// mostKeptFresh bounds the scratch that is kept from batch to batch.
const mostKeptFresh = 64 << 10

// places gives the live slots that are in order already, and the live keys that have to be put
// in between, sorted.
func (p *Partition[K, V, S, M]) places() (kept []uint32, fresh []ordered[K]) {
	m, compare := p.m, p.op.key.Compare
	if cap(p.update.fresh) > mostKeptFresh {
		p.update.fresh = nil
	}
	clear(p.update.fresh)
	fresh = p.update.fresh[:0]
	placed := make([]uint64, m.Slots()/64+1)
	if p.line.order.layout == m.Layout() {
		var last K
		for _, slot := range p.line.order.slots {
			k, _, _, live := m.SlotView(slot)
			if !live {
				continue
			}
			placed[slot/64] |= 1 << (slot % 64)
			if len(kept) > 0 && compare(last, k) >= 0 {
				// One of the two is in the wrong place; which one is not known.
				end := len(kept) - 1
				fresh = append(fresh, p.unplaced(kept[end]), p.unplaced(slot))
				if kept = kept[:end]; end > 0 {
					last, _, _, _ = m.SlotView(kept[end-1])
				}
				continue
			}
			kept, last = append(kept, slot), k
		}
	}
	m.AllSlots(func(slot uint32, _ int64) bool {
		if placed[slot/64]&(1<<(slot%64)) == 0 {
			fresh = append(fresh, p.unplaced(slot))
		}
		return true
	})
	slices.SortFunc(fresh, func(a, b ordered[K]) int { return compare(a.key, b.key) })
	p.update.fresh = fresh
	return kept, fresh
}

// unplaced gives a key its own memory: it is compared with others while the map is written to.
func (p *Partition[K, V, S, M]) unplaced(slot uint32) ordered[K] {
	k, _, _, _ := p.m.SlotAt(slot)
	return ordered[K]{k, slot}
}
