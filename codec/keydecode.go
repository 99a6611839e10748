package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// decodeOps fills the memory at base from src and returns what is left of src.
// It accepts only bytes that appendOps writes, so that a key has one form.
func decodeOps(src []byte, ops []keyOp, base unsafe.Pointer) ([]byte, error) {
	for i := range ops {
		op := &ops[i]
		p := unsafe.Add(base, op.off)
		var err error
		switch op.kind {
		case opBool:
			if len(src) < 1 {
				return nil, short(1, len(src))
			}
			if src[0] > 1 {
				return nil, fmt.Errorf("%w: bool byte 0x%02x", ErrCorrupt, src[0])
			}
			*(*bool)(p) = src[0] == 1
			src = src[1:]
		case opString:
			src, err = decodeKeyString(src, (*string)(p))
		case opBytes:
			if len(src) < op.n {
				return nil, short(op.n, len(src))
			}
			copy(unsafe.Slice((*byte)(p), op.n), src)
			src = src[op.n:]
		case opLoop:
			for j := range op.n {
				if src, err = decodeOps(src, op.body, unsafe.Add(p, uintptr(j)*op.stride)); err != nil {
					return nil, err
				}
			}
		default:
			src, err = decodeKeyNumber(src, op.kind, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return src, nil
}

func decodeKeyNumber(src []byte, kind opKind, p unsafe.Pointer) ([]byte, error) {
	width := 8
	switch kind {
	case opInt8, opUint8:
		width = 1
	case opInt16, opUint16:
		width = 2
	case opInt32, opUint32, opFloat32:
		width = 4
	}
	if len(src) < width {
		return nil, short(width, len(src))
	}
	var buf [8]byte
	copy(buf[8-width:], src)
	u := binary.BigEndian.Uint64(buf[:])
	switch kind {
	case opInt8:
		*(*uint8)(p) = uint8(u) ^ 1<<7
	case opInt16:
		*(*uint16)(p) = uint16(u) ^ 1<<15
	case opInt32:
		*(*uint32)(p) = uint32(u) ^ 1<<31
	case opInt64:
		*(*uint64)(p) = u ^ 1<<63
	case opUint8:
		*(*uint8)(p) = uint8(u)
	case opUint16:
		*(*uint16)(p) = uint16(u)
	case opUint32:
		*(*uint32)(p) = uint32(u)
	case opUint64:
		*(*uint64)(p) = u
	case opFloat32:
		b := uint32(u) &^ (1 << 31)
		if uint32(u)>>31 == 0 {
			b = ^uint32(u)
		}
		f := math.Float32frombits(b)
		if f != f || b == 1<<31 {
			return nil, fmt.Errorf("%w: float bits 0x%08x are no key", ErrCorrupt, b)
		}
		*(*float32)(p) = f
	case opFloat64:
		b := u &^ (1 << 63)
		if u>>63 == 0 {
			b = ^u
		}
		f := math.Float64frombits(b)
		if f != f || b == 1<<63 {
			return nil, fmt.Errorf("%w: float bits 0x%016x are no key", ErrCorrupt, b)
		}
		*(*float64)(p) = f
	}
	return src[width:], nil
}

func decodeKeyString(src []byte, out *string) ([]byte, error) {
	var b strings.Builder
	for {
		i := bytes.IndexByte(src, 0)
		if i < 0 || i+1 == len(src) {
			return nil, fmt.Errorf("%w: string without end", ErrCorrupt)
		}
		b.Write(src[:i])
		mark := src[i+1]
		src = src[i+2:]
		switch mark {
		case 0x01:
			*out = b.String()
			return src, nil
		case 0xff:
			b.WriteByte(0)
		default:
			return nil, fmt.Errorf("%w: string escape 0x00 0x%02x", ErrCorrupt, mark)
		}
	}
}
