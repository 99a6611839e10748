package statemap

import (
	"math/bits"
	"unsafe"
)

// The index finds slots by hash. It is cut into segments that grow one by one,
// so that no single insert pays for a whole table. A cell is
// hash32<<32 | slot+1, 0 if empty, in open addressing with linear probing; the
// home of a cell follows from its own hash bits, so growing touches no keys,
// and removing shifts the cells behind it back, so there are no tombstones.
const (
	segBits  = 6
	segShift = 64 - segBits

	// A probe of more than floodProbe cells is not believed to be chance if
	// the segment is less than half full, or if floodEqual of the cells have
	// all 32 hash bits in common with the key: someone chooses the keys. The
	// segment then turns to a seeded hash. In fuller segments linear probing
	// comes to such lengths by chance; they just grow at maxProbe.
	floodProbe = 64
	floodEqual = 8
	maxProbe   = 128

	smallSegment = 1024 // cells
)

type segment struct {
	cells  []uint64
	mask   uint64 // len(cells)-1
	n      int    // cells in use
	limit  int    // n at which the segment grows: 3/4 of the cells, 1/2 of few; 0 for the shared empty one
	strong bool   // the cells' bits come from the seeded hash, not from the caller's
}

type index struct {
	segs [1 << segBits]segment
}

// mix spreads a hash over all 64 bits; the secret is already in it.
func mix(h uint64) uint64 {
	hi, lo := bits.Mul64(h, 0x9E3779B97F4A7C15)
	return hi ^ lo
}

// init gives every segment room for its share of capacity keys. A small
// capacity costs nothing: the segments then share one empty cell, which
// nothing is ever stored in since their limit is 0.
func (x *index) init(capacity int) {
	empty := make([]uint64, 1)
	per := capacity / len(x.segs)
	for i := range x.segs {
		s := &x.segs[i]
		s.cells, s.mask = empty, 0
		if per > 1 {
			s.resize(max(8, 1<<bits.Len(uint(per*4/3))))
			if s.limit < per {
				s.grow()
			}
		}
	}
}

func (s *segment) resize(n int) {
	old := s.cells
	s.cells = make([]uint64, n)
	s.mask = uint64(n - 1)
	s.limit = n / 4 * 3
	if n <= smallSegment {
		s.limit = n / 2 // short probes count for more than memory here
	}
	for _, v := range old {
		if v != 0 {
			s.place(v)
		}
	}
}

// cell gives cell i, which must be masked. It is at s.cells[i] without the
// bounds check, which the hot path would pay for at every probe.
func (s *segment) cell(i uint64) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.cells)), i*8))
}

func (s *segment) grow() { s.resize(max(8, 2*len(s.cells))) }

// place stores a cell and gives the length of its probe and how many cells of
// the probe have the same hash bits.
func (s *segment) place(v uint64) (probe, equal int) {
	i := v >> 32 & s.mask
	for s.cells[i] != 0 {
		if s.cells[i]>>32 == v>>32 {
			equal++
		}
		probe++
		i = (i + 1) & s.mask
	}
	s.cells[i] = v
	return probe, equal
}

// add stores the cell of a new slot. It reports true if the segment looks
// flooded and must turn to the seeded hash.
func (s *segment) add(x uint64, slot uint32) (flooded bool) {
	if s.n >= s.limit {
		s.grow()
	}
	s.n++
	probe, equal := s.place(x<<32 | uint64(slot+1))
	if probe <= floodProbe {
		return false
	}
	if !s.strong && (equal >= floodEqual || 2*s.n < len(s.cells)) {
		return true
	}
	if probe > maxProbe && 8*s.n > len(s.cells) {
		s.grow()
	}
	return false
}

// del removes the cell of a slot; x is its hash. It reports whether it was there.
func (s *segment) del(x uint64, slot uint32) bool {
	want := x<<32 | uint64(slot+1)
	i := want >> 32 & s.mask
	for s.cells[i] != want {
		if s.cells[i] == 0 {
			return false
		}
		i = (i + 1) & s.mask
	}
	for j := (i + 1) & s.mask; s.cells[j] != 0; j = (j + 1) & s.mask {
		home := s.cells[j] >> 32 & s.mask
		// A cell may move back to i unless its home lies behind i.
		if (j-home)&s.mask >= (j-i)&s.mask {
			s.cells[i] = s.cells[j]
			i = j
		}
	}
	s.cells[i] = 0
	s.n--
	return true
}

func (x *index) count() int {
	n := 0
	for i := range x.segs {
		n += x.segs[i].n
	}
	return n
}

func (x *index) heapBytes() int {
	n := 0
	for i := range x.segs {
		if x.segs[i].limit > 0 {
			n += 8 * len(x.segs[i].cells)
		}
	}
	return n
}
