package batch

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
	"github.com/statemill/statemill/internal/sabotage"
)

// A zstd frame names the window that its matches reach back over: up to 128 MiB at the
// levels 20 to 22, whatever the content takes. The decompressor refuses windows beyond its
// limit of memory, but only for streams is a window memory; here it decompresses into one
// buffer. What is within a limit of output reaches back no further than that, so a frame
// is the same with a window of that limit.

// window is a window's size as a frame has it (RFC 8878, 3.1.1.1.2).
type window byte

func (w window) size() uint64 {
	base := uint64(1) << (10 + w>>3)
	return base + base/8*uint64(w&7)
}

// windowFor is the smallest window of at least n bytes.
func windowFor(n uint64) (w window) {
	for w < 1<<8-1 && w.size() < n {
		w++
	}
	return w
}

// narrowed is a copy of frames in which windows are most where they are larger. What it
// cannot read it leaves to the decompressor.
func narrowed(src []byte, most window) []byte {
	if sabotage.On("zstd-window-is-memory") {
		return src
	}
	out := bytes.Clone(src)
	for rest := out; ; {
		var h zstd.Header
		if h.Decode(rest) != nil {
			return out
		}
		if !h.Skippable && !h.SingleSegment && h.WindowSize > most.size() {
			rest[4+1] = byte(most) // after the magic number and the descriptor
		}
		n := uint64(h.HeaderSize) + uint64(h.SkippableSize)
		if n > uint64(len(rest)) {
			return out
		}
		rest = rest[n:]
		if h.Skippable {
			continue
		}
		if rest = afterBlocks(rest); h.HasCheckSum {
			rest = rest[min(4, len(rest)):]
		}
	}
}

// afterBlocks is what follows the last block of a frame.
func afterBlocks(b []byte) []byte {
	for len(b) >= 3 {
		head := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last, kind, size := head&1 == 1, head>>1&3, head>>3
		if kind == 1 { // one byte, so many times
			size = 1
		}
		if 3+size > len(b) {
			break
		}
		if b = b[3+size:]; last {
			return b
		}
	}
	return nil
}
