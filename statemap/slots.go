package statemap

// Slots. A key keeps its slot number from the insert until no live version has
// it, and through detaching; see Layout. An expiry index of slot numbers may
// hold hints on slots that were freed or reused: SlotAt tells what is there.
// The calls of this file, except Layout, belong to the writer when the version
// is open.

// SlotAt gives what stands in a slot in this version. live is false for a slot
// that is free, or whose key was removed, or is out of range. The key is a copy.
func (m *Map[K, S]) SlotAt(slot uint32) (k K, s S, t int64, live bool) {
	if m.h == nil {
		return k, s, 0, false
	}
	return m.h.slotAt(slot, true)
}

// SlotView is SlotAt without a copy of the key, which is valid until the map is
// written to or let go: it is for looking at, not for keeping.
func (m *Map[K, S]) SlotView(slot uint32) (k K, s S, t int64, live bool) {
	if m.h == nil {
		return k, s, 0, false
	}
	return m.h.slotAt(slot, false)
}

// SlotTime is SlotAt without key and state.
func (m *Map[K, S]) SlotTime(slot uint32) (t int64, live bool) {
	if m.h == nil {
		return 0, false
	}
	return m.h.slotTime(slot)
}

// PutSlot is Put of the live key in a slot, without a lookup. A slot that is
// not live is left alone. Errors as Put.
func (m *Map[K, S]) PutSlot(slot uint32, s S, t int64) error {
	if m.h == nil {
		return ErrEmptyMap
	}
	return m.h.putSlot(slot, s, t)
}

// ExpireSlot is Remove of the key in a slot, without a lookup. A slot that is
// not live is left alone. Errors as Remove.
func (m *Map[K, S]) ExpireSlot(slot uint32) error {
	if m.h == nil {
		return nil
	}
	return m.h.removeSlot(slot)
}

// Inserted calls yield for every slot that is live in this version and was not
// in the one before, with its update time, in order of first writes, until
// yield returns false. yield must not write to the map.
func (m *Map[K, S]) Inserted(yield func(slot uint32, t int64) bool) {
	if m.h != nil {
		m.h.inserted(yield)
	}
}

// AllSlots calls yield for every slot that is live in this version with its
// update time, in order of slot numbers, until yield returns false.
func (m *Map[K, S]) AllSlots(yield func(slot uint32, t int64) bool) {
	if m.h != nil {
		m.h.allSlots(yield)
	}
}

// Slots is the number of slots that the newest version of the table has handed
// out: slots are numbered below it, free ones too. It is meant for samples.
func (m *Map[K, S]) Slots() int {
	if m.h == nil {
		return 0
	}
	return m.h.slotCount()
}

// Layout is a number that differs between two versions of one lineage exactly
// if their slots are numbered differently (a clone or a smaller table was made
// in between): an index of slot numbers is then rebuilt from AllSlots.
func (m *Map[K, S]) Layout() uint64 {
	if m.h == nil {
		return 0
	}
	return m.h.layout()
}
