package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

// A key type is compiled into a flat program over the memory of the key: one op
// per leaf, in declaration order. Working on memory rather than reflect.Value
// reaches unexported fields and allocates nothing.
type opKind uint8

const (
	opBool opKind = iota
	opInt8
	opInt16
	opInt32
	opInt64
	opUint8
	opUint16
	opUint32
	opUint64
	opFloat32
	opFloat64
	opString
	opBytes // n bytes as they stand: an array of uint8
	opLoop  // n times body, stride bytes apart
)

type keyOp struct {
	kind   opKind
	off    uintptr
	n      int
	stride uintptr
	body   []keyOp
}

func compileKey(t reflect.Type) ([]keyOp, error) {
	return appendKeyOps(nil, t, t, 0, "")
}

func appendKeyOps(ops []keyOp, root, t reflect.Type, off uintptr, path string) ([]keyOp, error) {
	if k, ok := leafKind(t); ok {
		return append(ops, keyOp{kind: k, off: off}), nil
	}
	switch t.Kind() {
	case reflect.Array:
		return appendArrayOps(ops, root, t, off, path)
	case reflect.Struct:
		if t == timeType {
			return nil, typeError(root, path, "time.Time cannot be part of a key, as equal instants differ in zone; use t.UnixNano()")
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" {
				continue // == leaves blank fields out, so the bytes must too
			}
			var err error
			if ops, err = appendKeyOps(ops, root, f.Type, off+f.Offset, joinPath(path, f.Name)); err != nil {
				return nil, err
			}
		}
		return ops, nil
	}
	return nil, typeError(root, path, "a "+t.Kind().String()+
		" cannot be part of a key; keys are strings, integers, bools, floats, and arrays and structs of these")
}

func appendArrayOps(ops []keyOp, root, t reflect.Type, off uintptr, path string) ([]keyOp, error) {
	body, err := appendKeyOps(nil, root, t.Elem(), 0, path+"[]")
	if err != nil || t.Len() == 0 || len(body) == 0 {
		return ops, err
	}
	if len(body) == 1 && body[0].kind == opUint8 && t.Elem().Size() == 1 {
		return append(ops, keyOp{kind: opBytes, off: off, n: t.Len()}), nil
	}
	return append(ops, keyOp{kind: opLoop, off: off, n: t.Len(), stride: t.Elem().Size(), body: body}), nil
}

// leafKind gives the op of a kind. Kinds whose size depends on the machine are
// 8 bytes in every encoding; their op is chosen by the size they have here.
func leafKind(t reflect.Type) (opKind, bool) {
	switch t.Kind() {
	case reflect.Bool:
		return opBool, true
	case reflect.Int8:
		return opInt8, true
	case reflect.Int16:
		return opInt16, true
	case reflect.Int32:
		return opInt32, true
	case reflect.Int64, reflect.Int:
		return opInt64, true
	case reflect.Uint8:
		return opUint8, true
	case reflect.Uint16:
		return opUint16, true
	case reflect.Uint32:
		return opUint32, true
	case reflect.Uint64, reflect.Uint, reflect.Uintptr:
		return opUint64, true
	case reflect.Float32:
		return opFloat32, true
	case reflect.Float64:
		return opFloat64, true
	case reflect.String:
		return opString, true
	}
	return 0, false
}

// The encoding of int, uint and uintptr reads 8 bytes of memory. This line
// fails to compile where they have fewer.
var _ [unsafe.Sizeof(int(0)) - 8]struct{}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func opsHold(ops []keyOp, kinds ...opKind) bool {
	for _, op := range ops {
		for _, k := range kinds {
			if op.kind == k {
				return true
			}
		}
		if op.kind == opLoop && opsHold(op.body, kinds...) {
			return true
		}
	}
	return false
}

func appendOps(dst []byte, ops []keyOp, base unsafe.Pointer) []byte {
	for i := range ops {
		op := &ops[i]
		p := unsafe.Add(base, op.off)
		switch op.kind {
		case opBool:
			if *(*bool)(p) {
				dst = append(dst, 1)
			} else {
				dst = append(dst, 0)
			}
		case opString:
			dst = appendKeyString(dst, *(*string)(p))
		case opBytes:
			dst = append(dst, unsafe.Slice((*byte)(p), op.n)...)
		case opLoop:
			for j := range op.n {
				dst = appendOps(dst, op.body, unsafe.Add(p, uintptr(j)*op.stride))
			}
		default:
			u, width := orderBits(op.kind, p)
			switch width {
			case 1:
				dst = append(dst, byte(u))
			case 2:
				dst = binary.BigEndian.AppendUint16(dst, uint16(u))
			case 4:
				dst = binary.BigEndian.AppendUint32(dst, uint32(u))
			default:
				dst = binary.BigEndian.AppendUint64(dst, u)
			}
		}
	}
	return dst
}

// orderBits maps a number to the unsigned integer that is ordered alike, and
// gives its width in bytes.
func orderBits(kind opKind, p unsafe.Pointer) (u uint64, width int) {
	switch kind {
	case opInt8:
		return uint64(uint8(*(*int8)(p)) ^ 1<<7), 1
	case opInt16:
		return uint64(uint16(*(*int16)(p)) ^ 1<<15), 2
	case opInt32:
		return uint64(uint32(*(*int32)(p)) ^ 1<<31), 4
	case opInt64:
		return uint64(*(*int64)(p)) ^ 1<<63, 8
	case opUint8:
		return uint64(*(*uint8)(p)), 1
	case opUint16:
		return uint64(*(*uint16)(p)), 2
	case opUint32:
		return uint64(*(*uint32)(p)), 4
	case opFloat32:
		return uint64(orderFloat32(*(*float32)(p))), 4
	case opFloat64:
		return orderFloat64(*(*float64)(p)), 8
	}
	return *(*uint64)(p), 8
}

func orderFloat32(f float32) uint32 {
	b := math.Float32bits(f)
	switch {
	case f == 0:
		return 1 << 31
	case f != f:
		b = 0x7fc00000
	}
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

func orderFloat64(f float64) uint64 {
	b := math.Float64bits(f)
	switch {
	case f == 0:
		return 1 << 63 // −0 and 0 are one key
	case f != f:
		b = 0x7ff8000000000000
	}
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// appendKeyString writes a string so that it ends by itself and keeps its order
// before any other string and whatever follows.
func appendKeyString(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, s[:i]...), 0x00, 0xff)
		s = s[i+1:]
	}
	return append(append(dst, s...), 0x00, 0x01)
}

func opsNaN(ops []keyOp, base unsafe.Pointer) bool {
	for i := range ops {
		op := &ops[i]
		p := unsafe.Add(base, op.off)
		switch op.kind {
		case opFloat32:
			if f := *(*float32)(p); f != f {
				return true
			}
		case opFloat64:
			if f := *(*float64)(p); f != f {
				return true
			}
		case opLoop:
			for j := range op.n {
				if opsNaN(op.body, unsafe.Add(p, uintptr(j)*op.stride)) {
					return true
				}
			}
		}
	}
	return false
}

func cloneOps(ops []keyOp, base unsafe.Pointer) {
	for i := range ops {
		op := &ops[i]
		p := unsafe.Add(base, op.off)
		switch op.kind {
		case opString:
			*(*string)(p) = strings.Clone(*(*string)(p))
		case opLoop:
			for j := range op.n {
				cloneOps(op.body, unsafe.Add(p, uintptr(j)*op.stride))
			}
		}
	}
}

func short(want, have int) error {
	return fmt.Errorf("%w: %s bytes needed, %d left", ErrCorrupt, strconv.Itoa(want), have)
}
