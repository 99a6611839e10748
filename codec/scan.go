package codec

import (
	"encoding/binary"
	"fmt"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxDepth is the deepest nesting of arrays and maps that is written or read.
// The library recurses per level, and Go cannot recover a stack overflow.
const maxDepth = 1000

// scan walks one MessagePack value in src from pos on and returns where it
// ends. It allocates nothing: it proves that every declared length is covered
// by bytes that are there, so that the decoder, which trusts lengths, can be
// let loose on the value.
func scan(src []byte, pos, depth int) (int, error) {
	if pos >= len(src) {
		return 0, fmt.Errorf("%w: cut off at byte %d", ErrCorrupt, pos)
	}
	c := src[pos]
	pos++
	switch {
	case msgpcode.IsFixedNum(c):
		return pos, nil
	case msgpcode.IsFixedString(c):
		return skip(src, pos, int(c&msgpcode.FixedStrMask))
	case msgpcode.IsFixedArray(c):
		return scanItems(src, pos, uint64(c&msgpcode.FixedArrayMask), depth)
	case msgpcode.IsFixedMap(c):
		return scanItems(src, pos, 2*uint64(c&msgpcode.FixedMapMask), depth)
	}
	switch c {
	case msgpcode.Nil, msgpcode.False, msgpcode.True:
		return pos, nil
	case msgpcode.Uint8, msgpcode.Int8:
		return skip(src, pos, 1)
	case msgpcode.Uint16, msgpcode.Int16:
		return skip(src, pos, 2)
	case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
		return skip(src, pos, 4)
	case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
		return skip(src, pos, 8)
	case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16:
		return skip(src, pos, 1+1<<(c-msgpcode.FixExt1))
	}
	size, ok := lengthSize(c)
	if !ok {
		return 0, fmt.Errorf("%w: code 0x%02x at byte %d", ErrCorrupt, c, pos-1)
	}
	start := pos
	pos, err := skip(src, pos, size)
	if err != nil {
		return 0, err
	}
	var buf [4]byte
	copy(buf[4-size:], src[start:pos])
	n := uint64(binary.BigEndian.Uint32(buf[:]))
	switch c {
	case msgpcode.Array16, msgpcode.Array32:
		return scanItems(src, pos, n, depth)
	case msgpcode.Map16, msgpcode.Map32:
		return scanItems(src, pos, 2*n, depth)
	case msgpcode.Ext8, msgpcode.Ext16, msgpcode.Ext32:
		n++ // the type byte
	}
	return skip(src, pos, int(n))
}

// lengthSize gives the size of the length that follows code c.
func lengthSize(c byte) (int, bool) {
	switch c {
	case msgpcode.Str8, msgpcode.Bin8, msgpcode.Ext8:
		return 1, true
	case msgpcode.Str16, msgpcode.Bin16, msgpcode.Ext16, msgpcode.Array16, msgpcode.Map16:
		return 2, true
	case msgpcode.Str32, msgpcode.Bin32, msgpcode.Ext32, msgpcode.Array32, msgpcode.Map32:
		return 4, true
	}
	return 0, false
}

func scanItems(src []byte, pos int, n uint64, depth int) (int, error) {
	if depth >= maxDepth {
		return 0, fmt.Errorf("%w: %w", ErrCorrupt, ErrDepth)
	}
	// Every item takes a byte at least, so this also bounds the loop.
	if n > uint64(len(src)-pos) {
		return 0, fmt.Errorf("%w: %d items declared at byte %d, %d bytes left", ErrCorrupt, n, pos, len(src)-pos)
	}
	var err error
	for range n {
		if pos, err = scan(src, pos, depth+1); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

func skip(src []byte, pos, n int) (int, error) {
	if n > len(src)-pos {
		return 0, fmt.Errorf("%w: %d bytes declared at byte %d, %d left", ErrCorrupt, n, pos, len(src)-pos)
	}
	return pos + n, nil
}
