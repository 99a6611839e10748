package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// scalar is a built-in form. The bytes, which never change: signed integers as
// zigzag varints, unsigned ones as varints, floats as their IEEE bits little
// endian, bools as 0 or 1, strings as they are, byte slices as nothing (nil) or
// 0x01 and their bytes, times as a varint of Unix seconds and one of
// nanoseconds.
type scalar struct {
	kind reflect.Kind // Struct stands for time.Time, Slice for []byte
	id   string
}

// scalarOf gives the built-in form of t, if it has one. Types that encode
// themselves for MessagePack are left to that.
func scalarOf(t reflect.Type) (scalar, bool) {
	if t == timeType {
		return scalar{reflect.Struct, "time"}, true
	}
	if m, _ := methodsOf(t); m != noMethods {
		return scalar{}, false
	}
	switch k := t.Kind(); k {
	case reflect.Int, reflect.Int64:
		return scalar{k, "int64"}, true
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return scalar{k, "uint64"}, true
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64, reflect.Int8, reflect.Int16,
		reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return scalar{k, k.String()}, true
	case reflect.Slice:
		if isByte(t.Elem()) {
			return scalar{k, "bytes"}, true
		}
	}
	return scalar{}, false
}

func isByte(t reflect.Type) bool {
	m, _ := methodsOf(t)
	return t.Kind() == reflect.Uint8 && m == noMethods
}

type scalarCodec[T any] struct{ s scalar }

func (c scalarCodec[T]) ID() string { return c.s.id }

func (c scalarCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	return appendScalar(dst, c.s.kind, unsafe.Pointer(&v)), nil
}

func (c scalarCodec[T]) Decode(src []byte) (T, error) {
	var v T
	if err := decodeScalar(src, c.s.kind, unsafe.Pointer(&v)); err != nil {
		var zero T
		return zero, fmt.Errorf("codec: %s: %w", c.s.id, err)
	}
	return v, nil
}

func appendScalar(dst []byte, kind reflect.Kind, p unsafe.Pointer) []byte {
	switch kind {
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(dst, *(*int64)(p))
	case reflect.Int32:
		return binary.AppendVarint(dst, int64(*(*int32)(p)))
	case reflect.Int16:
		return binary.AppendVarint(dst, int64(*(*int16)(p)))
	case reflect.Int8:
		return binary.AppendVarint(dst, int64(*(*int8)(p)))
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return binary.AppendUvarint(dst, *(*uint64)(p))
	case reflect.Uint32:
		return binary.AppendUvarint(dst, uint64(*(*uint32)(p)))
	case reflect.Uint16:
		return binary.AppendUvarint(dst, uint64(*(*uint16)(p)))
	case reflect.Uint8:
		return binary.AppendUvarint(dst, uint64(*(*uint8)(p)))
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(*(*float64)(p)))
	case reflect.Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(*(*float32)(p)))
	case reflect.Bool:
		if *(*bool)(p) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case reflect.String:
		return append(dst, *(*string)(p)...)
	case reflect.Slice:
		if b := *(*[]byte)(p); b != nil {
			dst = append(append(dst, 1), b...)
		}
		return dst
	}
	t := (*time.Time)(p)
	dst = binary.AppendVarint(dst, t.Unix())
	return binary.AppendUvarint(dst, uint64(t.Nanosecond()))
}

func decodeScalar(src []byte, kind reflect.Kind, p unsafe.Pointer) error {
	switch kind {
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return decodeInt(src, kind, p)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return decodeUint(src, kind, p)
	case reflect.Float64:
		if len(src) != 8 {
			return fmt.Errorf("%w: %d bytes, want 8", ErrCorrupt, len(src))
		}
		*(*uint64)(p) = binary.LittleEndian.Uint64(src)
	case reflect.Float32:
		if len(src) != 4 {
			return fmt.Errorf("%w: %d bytes, want 4", ErrCorrupt, len(src))
		}
		*(*uint32)(p) = binary.LittleEndian.Uint32(src)
	case reflect.Bool:
		if len(src) != 1 || src[0] > 1 {
			return fmt.Errorf("%w: % x is not 00 or 01", ErrCorrupt, src[:min(len(src), 8)])
		}
		*(*bool)(p) = src[0] == 1
	case reflect.String:
		*(*string)(p) = string(src)
	case reflect.Slice:
		if len(src) == 0 {
			return nil
		}
		if src[0] != 1 {
			return fmt.Errorf("%w: first byte 0x%02x, want 01", ErrCorrupt, src[0])
		}
		*(*[]byte)(p) = append([]byte{}, src[1:]...)
	default:
		return decodeTime(src, (*time.Time)(p))
	}
	return nil
}

func decodeInt(src []byte, kind reflect.Kind, p unsafe.Pointer) error {
	i, n := binary.Varint(src)
	if err := varintFault(src, n, true); err != nil {
		return err
	}
	fits := true
	switch kind {
	case reflect.Int32:
		*(*int32)(p) = int32(i)
		fits = int64(int32(i)) == i
	case reflect.Int16:
		*(*int16)(p) = int16(i)
		fits = int64(int16(i)) == i
	case reflect.Int8:
		*(*int8)(p) = int8(i)
		fits = int64(int8(i)) == i
	default:
		*(*int64)(p) = i
	}
	if !fits {
		return fmt.Errorf("%w: %d does not fit", ErrCorrupt, i)
	}
	return nil
}

func decodeUint(src []byte, kind reflect.Kind, p unsafe.Pointer) error {
	u, n := binary.Uvarint(src)
	if err := varintFault(src, n, true); err != nil {
		return err
	}
	fits := true
	switch kind {
	case reflect.Uint32:
		*(*uint32)(p) = uint32(u)
		fits = uint64(uint32(u)) == u
	case reflect.Uint16:
		*(*uint16)(p) = uint16(u)
		fits = uint64(uint16(u)) == u
	case reflect.Uint8:
		*(*uint8)(p) = uint8(u)
		fits = uint64(uint8(u)) == u
	default:
		*(*uint64)(p) = u
	}
	if !fits {
		return fmt.Errorf("%w: %d does not fit", ErrCorrupt, u)
	}
	return nil
}

func decodeTime(src []byte, out *time.Time) error {
	sec, n := binary.Varint(src)
	if err := varintFault(src, n, false); err != nil {
		return err
	}
	nsec, m := binary.Uvarint(src[n:])
	if err := varintFault(src[n:], m, true); err != nil {
		return err
	}
	if nsec >= 1e9 {
		return fmt.Errorf("%w: %d nanoseconds in a second", ErrCorrupt, nsec)
	}
	*out = time.Unix(sec, int64(nsec)).UTC()
	return nil
}

// varintFault judges what a varint read returned: n bytes of src, which must be
// the shortest form of the number, and if last is set all of src.
func varintFault(src []byte, n int, last bool) error {
	switch {
	case n == 0:
		return fmt.Errorf("%w: varint cut off after %d bytes", ErrCorrupt, len(src))
	case n < 0:
		return fmt.Errorf("%w: varint exceeds 64 bits", ErrCorrupt)
	case n > 1 && src[n-1] == 0:
		return fmt.Errorf("%w: varint with needless bytes", ErrCorrupt)
	case last && n < len(src):
		return fmt.Errorf("%w: %d bytes after the value", ErrCorrupt, len(src)-n)
	}
	return nil
}
