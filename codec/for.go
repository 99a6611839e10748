package codec

import (
	"bytes"
	"reflect"
	"sync"
	"time"
	"unsafe"
)

var timeType = reflect.TypeFor[time.Time]()

// For returns the codec of T. Integers, floats, bools, strings, byte slices
// and time.Time have built-in forms (types made from them too); everything
// else is MessagePack with maps sorted and times in UTC.
//
// A type that would not come back as it went in is refused with a *TypeError
// naming the field: unexported fields, funcs, channels, interfaces, complex
// numbers, pointers to what can itself be nil, a MessagePack encoder without
// its decoder. A field tagged `msgpack:"-"` is left out on purpose; it is zero
// after a decode and in a copy of [Cloner].
//
// Tags as in github.com/vmihailenco/msgpack: name, omitempty (here: the zero
// value), alias:old, noinline, and as_array on a field named _msgpack. Types
// with methods EncodeMsgpack and DecodeMsgpack, or MarshalMsgpack and
// UnmarshalMsgpack, encode themselves, also with pointer receivers; structs,
// arrays, slices and maps with both directions of encoding.BinaryMarshaler or
// encoding.TextMarshaler too.
func For[T any]() (Codec[T], error) {
	t := reflect.TypeFor[T]()
	if s, ok := scalarOf(t); ok {
		return scalarCodec[T]{s}, nil
	}
	return newPacked[T](t)
}

// HasRefs reports whether values of T share memory when copied by assignment:
// T holds a map, slice, pointer, interface, func or channel. Strings and
// time.Time do not count, as nothing can change what they share.
func HasRefs[T any]() bool { return hasRefs(reflect.TypeFor[T]()) }

func hasRefs(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return t.Len() > 0 && hasRefs(t.Elem())
	case reflect.Struct:
		if t == timeType {
			return false
		}
		for i := range t.NumField() {
			if hasRefs(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// Cloner returns a function that copies a value so that no later change of one
// shows in the other. It may be used from any goroutine. Where T holds no
// references that is assignment; else it is a round trip through the codec of
// T, and Cloner fails as [For] does.
func Cloner[T any]() (func(T) (T, error), error) {
	t := reflect.TypeFor[T]()
	if !hasRefs(t) {
		return func(v T) (T, error) { return v, nil }, nil
	}
	c, err := For[T]()
	if err != nil {
		return nil, err
	}
	if s, ok := scalarOf(t); ok && s.kind == reflect.Slice {
		return func(v T) (T, error) {
			b := bytes.Clone(*(*[]byte)(unsafe.Pointer(&v)))
			return *(*T)(unsafe.Pointer(&b)), nil
		}, nil
	}
	return ClonerOf(c), nil
}

// ClonerOf returns a function that copies a value by a round trip through c. It
// may be used from any goroutine.
func ClonerOf[T any](c Codec[T]) func(T) (T, error) {
	pool := sync.Pool{New: func() any { return new([]byte) }}
	return func(v T) (T, error) {
		buf := pool.Get().(*[]byte)
		defer pool.Put(buf)
		var err error
		if *buf, err = c.Append((*buf)[:0], v); err != nil {
			var zero T
			return zero, err
		}
		return c.Decode(*buf)
	}
}
