package statemap

import "unsafe"

// keyRef is where a string key's bytes lie in an arena:
// page<<32 | offset<<16 | length. The length bigKey means a key that has the
// arena's big[page] for itself. Being a plain number, it lets the collector
// skip the slots, and keys do not pin the buffers that they were cut from.
type keyRef uint64

const (
	bigKey       = 0xFFFF
	maxSmallKey  = 8 << 10  // longer keys get memory of their own
	arenaPage    = 64 << 10 // what the 16 offset bits can address
	firstPage    = 1 << 10  // pages double from here, so that small tables stay small
	fineClasses  = 256      // up to here cells are multiples of 8 bytes
	coarseStep   = 128      // … and above of this
	numFine      = fineClasses/8 + 1
	arenaClasses = numFine + (maxSmallKey-fineClasses)/coarseStep
)

// arena stores key bytes in pages. Freed cells are reused by size class, so a
// table whose keys come and go does not grow. Only the table's writer changes
// it, under the table's lock.
type arena struct {
	pages []unsafe.Pointer // each the start of a page
	marks []pageMark       // by page
	off   uint32           // first free byte of the last page
	free  []uint64         // by class: page<<16|offset, + 1, of the first free cell; the cell holds the next
	big   [][]byte         // long keys; nil where freed
	holes []uint32         // the free indices of big
	total int              // bytes of all pages and big keys
	used  int              // bytes of cells in use, rounded up to their class
}

type pageMark struct {
	size    uint32 // of this page
	prevOff uint32 // arena.off when the page was begun, for rewind
}

// cell gives the class of a key of n bytes, 0 < n <= maxSmallKey, and the size
// of the class's cells.
func cell(n int) (class, size int) {
	if n <= fineClasses {
		return (n + 7) / 8, (n + 7) &^ 7
	}
	c := (n - fineClasses + coarseStep - 1) / coarseStep
	return numFine - 1 + c, fineClasses + c*coarseStep
}

func (a *arena) at(addr uint64) unsafe.Pointer {
	return unsafe.Add(a.pages[addr>>16], addr&0xFFFF)
}

// bytes gives the key as a view into the arena, valid while the cell is in use.
func (a *arena) bytes(r keyRef) string {
	n := int(uint16(r))
	if n == bigKey {
		return unsafe.String(unsafe.SliceData(a.big[r>>32]), len(a.big[r>>32]))
	}
	if n == 0 {
		return ""
	}
	return unsafe.String((*byte)(a.at(uint64(r)>>16)), n)
}

// equal reports whether the key at r is k.
func (a *arena) equal(r keyRef, k string) bool {
	n := len(k)
	if n != int(uint16(r)) || n == bigKey {
		return uint16(r) == bigKey && a.bytes(r) == k
	}
	return n == 0 || sameBytes(unsafe.Add(a.pages[r>>32], uint16(r>>16)), unsafe.Pointer(unsafe.StringData(k)), n)
}

// sameBytes compares n bytes, n > 0. Keys of 8 to 16 bytes, the most usual
// ones, are two word compares in line instead of a call.
func sameBytes(p, q unsafe.Pointer, n int) bool {
	if uint(n-8) <= 8 {
		return *(*uint64)(p) == *(*uint64)(q) && *(*uint64)(unsafe.Add(p, n-8)) == *(*uint64)(unsafe.Add(q, n-8))
	}
	return unsafe.String((*byte)(p), n) == unsafe.String((*byte)(q), n)
}

// add stores a copy of k.
func (a *arena) add(k string) keyRef {
	n := len(k)
	if n == 0 {
		return 0
	}
	if n > maxSmallKey {
		return a.addBig(k)
	}
	class, size := cell(n)
	a.used += size
	var addr uint64
	if a.free != nil && a.free[class] != 0 {
		addr = a.free[class] - 1
		a.free[class] = *(*uint64)(a.at(addr))
	} else {
		if len(a.pages) == 0 || int(a.off)+size > int(a.marks[len(a.marks)-1].size) {
			a.addPage(size)
		}
		addr = uint64(len(a.pages)-1)<<16 | uint64(a.off)
		a.off += uint32(size)
	}
	copy(unsafe.Slice((*byte)(a.at(addr)), n), k)
	return keyRef(addr<<16 | uint64(n))
}

func (a *arena) addPage(atLeast int) {
	size := min(max(firstPage, a.total, atLeast), arenaPage)
	size = (size + 7) &^ 7
	// The page is made of words, so that a free cell can hold a link.
	page := make([]uint64, size/8)
	a.pages = append(a.pages, unsafe.Pointer(unsafe.SliceData(page)))
	a.marks = append(a.marks, pageMark{size: uint32(size), prevOff: a.off})
	a.off = 0
	a.total += size
}

func (a *arena) addBig(k string) keyRef {
	b := []byte(k)
	a.total += len(b)
	a.used += len(b)
	var i uint32
	if n := len(a.holes); n > 0 {
		i, a.holes = a.holes[n-1], a.holes[:n-1]
		a.big[i] = b
	} else {
		i = uint32(len(a.big))
		a.big = append(a.big, b)
	}
	return keyRef(uint64(i)<<32 | bigKey)
}

// del frees a key's bytes for reuse.
func (a *arena) del(r keyRef) {
	n := int(uint16(r))
	switch n {
	case 0:
		return
	case bigKey:
		i := uint32(r >> 32)
		a.total -= len(a.big[i])
		a.used -= len(a.big[i])
		a.big[i] = nil
		a.holes = append(a.holes, i)
		return
	}
	class, size := cell(n)
	a.used -= size
	addr := uint64(r) >> 16
	if a.free == nil {
		a.free = make([]uint64, arenaClasses)
	}
	*(*uint64)(a.at(addr)) = a.free[class]
	a.free[class] = addr + 1
}

// rewind takes back the latest add that is not yet taken back. Undone in
// reverse order, adds leave the arena as it was: cells cut from a page go back
// to it, cells from a free list go back to its front.
func (a *arena) rewind(r keyRef) {
	n := int(uint16(r))
	if n == 0 || n == bigKey {
		a.delBigLast(r)
		return
	}
	_, size := cell(n)
	last := len(a.pages) - 1
	if int(r>>32) != last || int(uint16(r>>16))+size != int(a.off) {
		a.del(r)
		return
	}
	a.used -= size
	a.off -= uint32(size)
	if a.off == 0 {
		a.off = a.marks[last].prevOff
		a.total -= int(a.marks[last].size)
		a.pages[last] = nil
		a.pages, a.marks = a.pages[:last], a.marks[:last]
	}
}

func (a *arena) delBigLast(r keyRef) {
	if uint16(r) == 0 {
		return
	}
	if i := int(r >> 32); i == len(a.big)-1 && len(a.holes) == 0 {
		a.total -= len(a.big[i])
		a.used -= len(a.big[i])
		a.big[i] = nil
		a.big = a.big[:i]
		return
	}
	a.del(r)
}

// wasted reports whether most of the arena is free cells that nothing reuses.
func (a *arena) wasted() bool { return a.total-a.used > a.used+1<<20 }

func (a *arena) heapBytes() int {
	return a.total + 8*cap(a.pages) + 8*cap(a.marks) + 8*cap(a.free) + 24*cap(a.big) + 4*cap(a.holes)
}
