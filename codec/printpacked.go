package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// wholePacked prints one MessagePack value. The scan has then proved that all
// declared lengths are there, and bounded the depth.
func (p *printer) wholePacked() error {
	end, err := scan(p.src, 0, 0)
	if err != nil {
		return err
	}
	if end < len(p.src) {
		return fmt.Errorf("%w: %d bytes after the value", ErrCorrupt, len(p.src)-end)
	}
	return p.packed(0)
}

func (p *printer) unexpected(want string) error {
	return fmt.Errorf("%w: code 0x%02x at byte %d where %s should be", ErrCorrupt, p.src[p.pos], p.pos, want)
}

// null prints a nil, if one is next.
func (p *printer) null() bool {
	if p.src[p.pos] != msgpcode.Nil {
		return false
	}
	p.pos++
	p.add("null")
	return true
}

// packed prints the next value as type i. It takes exactly what the plan of the
// type takes.
func (p *printer) packed(i int) error {
	r := &p.types[i]
	switch r.kind {
	case kindPointer:
		if p.null() {
			return nil
		}
		return p.packed(r.elem)
	case kindSlice, kindArray:
		return p.packedItems(r)
	case kindMap:
		if p.null() {
			return nil
		}
		return p.packedMap(r)
	case kindStruct:
		return p.packedStruct(r)
	case kindTuple:
		return p.packedTuple(r)
	case kindOwnMsgpack:
		return p.any()
	}
	return p.packedLeaf(r)
}

func (p *printer) packedLeaf(r *typeRow) error {
	c := p.src[p.pos]
	switch r.kind {
	case kindBool:
		if c != msgpcode.False && c != msgpcode.True {
			return p.unexpected("a bool")
		}
		p.out = strconv.AppendBool(p.out, c == msgpcode.True)
		p.pos++
		return nil
	case kindString, kindOwnText:
		if !msgpcode.IsString(c) {
			return p.unexpected("a string")
		}
		p.text(p.blob())
		return nil
	case kindBytes, kindByteArray, kindOwnBinary:
		if r.kind == kindBytes && p.null() {
			return nil
		}
		if !msgpcode.IsBin(c) {
			return p.unexpected("bytes")
		}
		b := p.blob()
		if r.kind == kindByteArray && len(b) != r.length {
			return fmt.Errorf("%w: %d bytes for an array of %d", ErrCorrupt, len(b), r.length)
		}
		p.base64(b)
		return nil
	case kindTime:
		t, end, ok := timeAt(p.src, p.pos)
		if !ok {
			return p.unexpected("a time")
		}
		p.pos = end
		p.time(t)
		return nil
	}
	family, bits := r.kind.bits()
	if family == 'f' {
		return p.packedFloat(bits)
	}
	return p.packedInt(r.kind)
}

func (p *printer) packedFloat(bits int) error {
	switch c := p.src[p.pos]; {
	case c == msgpcode.Float:
		p.float(float64(math.Float32frombits(uint32(p.be(4)))), 32)
	case c == msgpcode.Double && bits == 64:
		p.float(math.Float64frombits(p.be(8)), 64)
	default:
		return p.unexpected("a float" + strconv.Itoa(bits))
	}
	return nil
}

// be reads the big-endian number of n bytes after the code at pos.
func (p *printer) be(n int) uint64 {
	var buf [8]byte
	copy(buf[8-n:], p.src[p.pos+1:p.pos+1+n])
	p.pos += 1 + n
	return binary.BigEndian.Uint64(buf[:])
}

// integer reads the next value, if it is one: u if it is not negative, else i.
func (p *printer) integer() (i int64, u uint64, ok bool) {
	c := p.src[p.pos]
	switch {
	case msgpcode.IsFixedNum(c):
		i = int64(int8(c))
		p.pos++
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		return 0, p.be(1 << (c - msgpcode.Uint8)), true
	case c >= msgpcode.Int8 && c <= msgpcode.Int64:
		n := 1 << (c - msgpcode.Int8)
		shift := 64 - 8*n
		i = int64(p.be(n)<<shift) >> shift
	default:
		return 0, 0, false
	}
	if i >= 0 {
		return 0, uint64(i), true
	}
	return i, 0, true
}

func (p *printer) packedInt(k kind) error {
	i, u, ok := p.integer()
	if !ok {
		return p.unexpected("an integer")
	}
	family, bits := k.bits()
	if family == 'i' {
		bits--
	}
	switch {
	case u > 1<<bits-1:
		return fmt.Errorf("%w: %d does not fit into %s", ErrCorrupt, u, k)
	case i < 0 && (family == 'u' || i < -1<<bits):
		return fmt.Errorf("%w: %d does not fit into %s", ErrCorrupt, i, k)
	case i < 0:
		p.int(i)
	default:
		p.uint(u)
	}
	return nil
}

// blob reads the string or bytes at pos, which are there.
func (p *printer) blob() []byte {
	c := p.src[p.pos]
	n, size := int(c&msgpcode.FixedStrMask), 0
	if !msgpcode.IsFixedString(c) {
		size, _ = lengthSize(c)
		n = int(p.be(size))
	} else {
		p.pos++
	}
	p.pos += n
	return p.src[p.pos-n : p.pos]
}

// length reads the header of an array or map, if one is next.
func (p *printer) length(h header) (int, error) {
	c := p.src[p.pos]
	fixed, mask, want := msgpcode.IsFixedArray(c), msgpcode.FixedArrayMask, "an array"
	small, large := msgpcode.Array16, msgpcode.Array32
	if h == mapHeader {
		fixed, mask, want = msgpcode.IsFixedMap(c), msgpcode.FixedMapMask, "a map"
		small, large = msgpcode.Map16, msgpcode.Map32
	}
	switch {
	case fixed:
		p.pos++
		return int(c & byte(mask)), nil
	case c == small:
		return int(p.be(2)), nil
	case c == large:
		return int(p.be(4)), nil
	}
	return 0, p.unexpected(want)
}
