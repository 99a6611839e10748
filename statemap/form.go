package statemap

import (
	"reflect"
	"strings"
	"unsafe"
)

// formOf inspects the types of a map.
func formOf[K comparable, S any]() form[K] {
	kt := reflect.TypeFor[K]()
	f := form[K]{
		arena:     kt.Kind() == reflect.String,
		statePtrs: hasPointers(reflect.TypeFor[S]()),
	}
	if !f.arena {
		f.strings = stringOffsets(nil, kt, 0)
	}
	return f
}

// clone copies the strings of a key that is stored as it is, so that a key cut
// from an input buffer does not keep the buffer alive.
func (f *form[K]) clone(k K) K {
	for _, off := range f.strings {
		s := (*string)(unsafe.Add(unsafe.Pointer(&k), off))
		*s = strings.Clone(*s)
	}
	return k
}

func stringOffsets(offs []uintptr, t reflect.Type, base uintptr) []uintptr {
	switch t.Kind() {
	case reflect.String:
		return append(offs, base)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			offs = stringOffsets(offs, f.Type, base+f.Offset)
		}
	case reflect.Array:
		if hasPointers(t.Elem()) {
			for i := range t.Len() {
				offs = stringOffsets(offs, t.Elem(), base+uintptr(i)*t.Elem().Size())
			}
		}
	}
	return offs
}

// hasPointers reports whether the collector has to look into values of t.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	default:
		return true
	}
}
