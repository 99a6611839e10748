package statemap

import "unsafe"

// slot is a key with the newest version's state. SK is the stored form of the
// key: the key itself, or a keyRef for string kinds.
type slot[SK, S any] struct {
	key   SK
	state S
	time  int64
	meta  uint32 // version that wrote the slot <<metaShift | metaOwn | metaLive; 0: the slot is free
	undo  uint32 // number of the undo record in that version's list
}

const (
	chunkBits  = 10
	chunkLen   = 1 << chunkBits
	chunkMask  = chunkLen - 1
	firstChunk = 16 // slots of the first chunk of a small table; it doubles

	// One less than what an index cell can hold, since it stores slot+1.
	maxSlots   = 1<<32 - 2
	maxVersion = 1<<30 - 2

	metaLive  = 1 // the key has a state
	metaOwn   = 2 // the version wrote the state itself, not only the time
	metaShift = 2
)

// slotStore holds slots in chunks of chunkLen, so it grows without copying.
// Only the first chunk of a small table is shorter and moves when it grows.
type slotStore[SK, S any] struct {
	chunks []*slot[SK, S] // each the first slot of a chunk
	n      uint32         // slots handed out, free ones included
	room   uint32         // slots there is memory for
	free   []uint32       // freed slots below n, reused from the end
	vacant []uint32       // slots to become free once a detached table is complete

	given, frees uint64 // counts of alloc and dealloc
}

// at gives slot n, which must be below n. The pointer is good until the next alloc.
func (st *slotStore[SK, S]) at(n uint32) *slot[SK, S] {
	var z slot[SK, S]
	return (*slot[SK, S])(unsafe.Add(unsafe.Pointer(st.chunks[n>>chunkBits]), uintptr(n&chunkMask)*unsafe.Sizeof(z)))
}

// alloc gives a free slot, all zero.
func (st *slotStore[SK, S]) alloc() uint32 {
	st.given++
	if f := len(st.free); f > 0 {
		n := st.free[f-1]
		st.free = st.free[:f-1]
		return n
	}
	n := st.n
	if n == st.room {
		st.grow()
	}
	st.n++
	return n
}

func (st *slotStore[SK, S]) grow() {
	switch {
	case st.room == 0:
		st.chunks = append(st.chunks, unsafe.SliceData(make([]slot[SK, S], firstChunk)))
		st.room = firstChunk
	case st.room < chunkLen:
		bigger := make([]slot[SK, S], 2*st.room)
		copy(bigger, unsafe.Slice(st.chunks[0], st.room))
		st.chunks[0] = unsafe.SliceData(bigger)
		st.room *= 2
	default:
		st.chunks = append(st.chunks, unsafe.SliceData(make([]slot[SK, S], chunkLen)))
		st.room += chunkLen
	}
}

// dealloc frees a slot. Given back in reverse order, slots leave the store as
// it was before their allocs.
func (st *slotStore[SK, S]) dealloc(n uint32, undoing bool) {
	var z slot[SK, S]
	*st.at(n) = z
	st.frees++
	if undoing && n == st.n-1 {
		st.n--
		return
	}
	st.free = append(st.free, n)
}

func (st *slotStore[SK, S]) heapBytes() int {
	return int(st.room)*int(unsafe.Sizeof(slot[SK, S]{})) + 8*cap(st.chunks) + 4*cap(st.free)
}
