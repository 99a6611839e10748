package codec

import (
	"encoding/binary"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// hashFor picks the fastest function that gives xxh3 of the canonical bytes.
// Where K is a predeclared type the plain function itself is returned, which
// saves the wrapper call and the generic dictionary.
func hashFor[K comparable](t reflect.Type, ops []keyOp) func(K) uint64 {
	for _, plain := range []any{
		xxh3.HashString, hashInt, hashInt64, hashInt32, hashUint, hashUint64, hashUint32, hashFloat64,
	} {
		if f, ok := plain.(func(K) uint64); ok {
			return f
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(k K) uint64 { return xxh3.HashString(*(*string)(unsafe.Pointer(&k))) }
	case reflect.Int, reflect.Int64:
		return func(k K) uint64 { return hash8(*(*uint64)(unsafe.Pointer(&k)) ^ 1<<63) }
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return func(k K) uint64 { return hash8(*(*uint64)(unsafe.Pointer(&k))) }
	case reflect.Int32:
		return func(k K) uint64 { return hash4(*(*uint32)(unsafe.Pointer(&k)) ^ 1<<31) }
	case reflect.Uint32:
		return func(k K) uint64 { return hash4(*(*uint32)(unsafe.Pointer(&k))) }
	case reflect.Int16:
		return func(k K) uint64 { return hash2(*(*uint16)(unsafe.Pointer(&k)) ^ 1<<15) }
	case reflect.Uint16:
		return func(k K) uint64 { return hash2(*(*uint16)(unsafe.Pointer(&k))) }
	case reflect.Int8:
		return func(k K) uint64 { return hash1(*(*uint8)(unsafe.Pointer(&k)) ^ 1<<7) }
	case reflect.Uint8, reflect.Bool:
		return func(k K) uint64 { return hash1(*(*uint8)(unsafe.Pointer(&k))) }
	case reflect.Float64:
		return func(k K) uint64 { return hash8(orderFloat64(*(*float64)(unsafe.Pointer(&k)))) }
	case reflect.Float32:
		return func(k K) uint64 { return hash4(orderFloat32(*(*float32)(unsafe.Pointer(&k)))) }
	}
	return func(k K) uint64 { return hashOps(ops, unsafe.Pointer(&k)) }
}

func hashInt(k int) uint64         { return hash8(uint64(k) ^ 1<<63) }
func hashInt64(k int64) uint64     { return hash8(uint64(k) ^ 1<<63) }
func hashInt32(k int32) uint64     { return hash4(uint32(k) ^ 1<<31) }
func hashUint(k uint) uint64       { return hash8(uint64(k)) }
func hashUint64(k uint64) uint64   { return hash8(k) }
func hashUint32(k uint32) uint64   { return hash4(k) }
func hashFloat64(k float64) uint64 { return hash8(orderFloat64(k)) }

// xxh3 of 4 to 8 bytes, seed 0, written out: the library's entry costs more
// than the arithmetic. A test compares it with the library.
const (
	xxh3Flip  = 0x1cad21f72c81017c ^ 0xdb979083e96dd4de
	xxh3Prime = 0x9fb21c651e98df25
)

// hash8 is xxh3 of the 8 big-endian bytes of u.
func hash8(u uint64) uint64 {
	// The first word read is the low half of the swapped integer.
	le := bits.ReverseBytes64(u)
	return xxh3Mix(bits.RotateLeft64(le, 32), 8)
}

// hash4 is xxh3 of the 4 big-endian bytes of u.
func hash4(u uint32) uint64 {
	le := uint64(bits.ReverseBytes32(u))
	return xxh3Mix(le+le<<32, 4)
}

func xxh3Mix(input, length uint64) uint64 {
	h := input ^ xxh3Flip
	h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
	h *= xxh3Prime
	h ^= h>>35 + length
	h *= xxh3Prime
	return h ^ h>>28
}

func hash2(u uint16) uint64 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], u)
	return xxh3.Hash(b[:])
}

func hash1(u uint8) uint64 {
	b := [1]byte{u}
	return xxh3.Hash(b[:])
}
