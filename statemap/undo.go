package statemap

import "unsafe"

// undoRec is what stood in a slot before a version first wrote it. meta and
// undo lead on to the record before it: meta>>metaShift is the version that
// wrote it, undo the record's number in that version's own list.
type undoRec[S any] struct {
	state S
	time  int64
	slot  uint32
	meta  uint32 // 0: the slot was free, the version inserted its key
	undo  uint32
}

const (
	undoBits  = 7
	undoChunk = 1 << undoBits
	undoMask  = undoChunk - 1
)

// undoList is a version's undo records in the order of first writes. Chunks
// are taken from a pool and go back to it whole, so a list never moves and
// never holds much more than it needs.
type undoList[S any] struct {
	chunks []*[undoChunk]undoRec[S]
	n      uint32
}

func (l *undoList[S]) at(i uint32) *undoRec[S] {
	return &l.chunks[i>>undoBits][i&undoMask]
}

// version is what a table keeps of one version besides the slots.
type version[S any] struct {
	list undoList[S]
	dels []uint32 // slots that the version left without a state (perhaps to write them again later)

	// shared: another table reads the list too, so its chunks are not pooled.
	shared bool
}

// undoPool keeps chunks between versions: at most as many as the newest
// version and the one before needed together.
type undoPool[S any] struct {
	chunks []*[undoChunk]undoRec[S]
	keep   int
}

func (p *undoPool[S]) get() *[undoChunk]undoRec[S] {
	if n := len(p.chunks); n > 0 {
		c := p.chunks[n-1]
		p.chunks[n-1] = nil
		p.chunks = p.chunks[:n-1]
		return c
	}
	return new([undoChunk]undoRec[S])
}

// put takes a dropped list's chunks back. wipe clears them, so that old states
// are not kept alive by what they point to.
func (p *undoPool[S]) put(l *undoList[S], wipe bool) {
	for i, c := range l.chunks {
		if len(p.chunks) >= p.keep {
			break
		}
		if wipe {
			clear(c[:])
		}
		p.chunks = append(p.chunks, c)
		l.chunks[i] = nil
	}
	*l = undoList[S]{}
}

// limit sets how many chunks are kept and drops the rest.
func (p *undoPool[S]) limit(n int) {
	p.keep = n
	if len(p.chunks) > n {
		clear(p.chunks[n:])
		p.chunks = p.chunks[:n]
	}
	if n == 0 {
		p.chunks = nil
	}
}

func (l *undoList[S]) heapBytes() int {
	return len(l.chunks)*int(unsafe.Sizeof([undoChunk]undoRec[S]{})) + 8*cap(l.chunks)
}

func (p *undoPool[S]) heapBytes() int {
	return len(p.chunks)*int(unsafe.Sizeof([undoChunk]undoRec[S]{})) + 8*cap(p.chunks)
}
