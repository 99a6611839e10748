package statefile

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Compression is how the blocks of a file are compressed, each by itself.
type Compression uint8

// The compressions; the numbers are those in files. Measured on keys of 16
// bytes with int64 states: S2 makes files 0.74 times as long for 1.5 times the
// time of None, Zstd 0.37 times as long for 2.6 times; loading differs by 15 %.
const (
	None Compression = 0
	S2   Compression = 1
	Zstd Compression = 2
)

// String gives "none", "s2" or "zstd".
func (c Compression) String() string {
	switch c {
	case None:
		return "none"
	case S2:
		return "s2"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("compression %d", uint8(c))
}

// ParseCompression reads what String gives.
func ParseCompression(name string) (Compression, error) {
	for c := None; c.known(); c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return None, fmt.Errorf("statefile: compression %q is unknown; use none, s2 or zstd", name)
}

func (c Compression) known() bool { return c <= Zstd }

// compressor compresses blocks; it keeps its buffer and the encoder.
type compressor struct {
	buf  []byte
	zstd *zstd.Encoder
}

// compress gives the body for a block: the result is valid until the next
// call. A block that gets no shorter is given back as it is.
func (c *compressor) compress(how Compression, raw []byte) ([]byte, error) {
	const room = binary.MaxVarintLen32 // before the compressed block, for its length
	var n int
	switch how {
	case None:
		return raw, nil
	case S2:
		if most := room + s2.MaxEncodedLen(len(raw)); most > cap(c.buf) {
			c.buf = make([]byte, most)
		}
		c.buf = c.buf[:cap(c.buf)]
		n = len(s2.Encode(c.buf[room:], raw))
	case Zstd:
		if c.zstd == nil {
			// Blocks are small, so is the window; the checksums are ours.
			e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
				zstd.WithWindowSize(blockBytes), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
			if err != nil {
				return nil, fmt.Errorf("statefile: make a zstd encoder: %w", err)
			}
			c.zstd = e
		}
		c.buf = c.zstd.EncodeAll(raw, append(c.buf[:0], make([]byte, room)...))
		n = len(c.buf) - room
	}
	var length [room]byte
	l := binary.PutUvarint(length[:], uint64(n))
	copy(c.buf[room-l:], length[:l])
	end := room + n
	if pad := minBody(len(raw)) - n - l; pad > 0 {
		c.buf = append(c.buf[:end], make([]byte, pad)...)
		end += pad
	}
	if body := c.buf[room-l : end]; len(body) < len(raw) {
		return body, nil
	}
	return raw, nil
}

// decompressor is the other way round.
type decompressor struct {
	buf  []byte
	zstd *zstd.Decoder
}

// decompress gives the block of rawLen bytes for a body; valid until the next
// call. The caller has checked minBody.
func (d *decompressor) decompress(how Compression, body []byte, rawLen int) ([]byte, error) {
	if len(body) == rawLen {
		return body, nil
	}
	if how == None {
		return nil, fmt.Errorf("%d bytes stand for %d without compression", len(body), rawLen)
	}
	length, l := binary.Uvarint(body)
	if l <= 0 || length > uint64(len(body)-l) {
		return nil, fmt.Errorf("%d bytes hold a block of %d", len(body), length)
	}
	body = body[l : l+int(length)]
	if cap(d.buf) < rawLen {
		d.buf = make([]byte, rawLen)
	}
	var out []byte
	var err error
	switch how {
	case S2:
		var n int
		if n, err = s2.DecodedLen(body); err == nil && n == rawLen {
			out, err = s2.Decode(d.buf[:rawLen], body)
		} else if err == nil {
			err = fmt.Errorf("the block inflates to %d bytes, not %d", n, rawLen)
		}
	case Zstd:
		if d.zstd == nil {
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecodeAllCapLimit(true))
			if err != nil {
				return nil, fmt.Errorf("make a zstd decoder: %w", err)
			}
		}
		out, err = d.zstd.DecodeAll(body, d.buf[:0:rawLen])
	}
	if err == nil && len(out) != rawLen {
		err = fmt.Errorf("the block inflates to %d bytes, not %d", len(out), rawLen)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// maxKept is the most bytes of a buffer that is kept for reuse: one huge state
// must not pin memory for ever.
const maxKept = 4 << 20

func keep(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b
}
