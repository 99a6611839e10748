package milltest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unsafe"
)

const (
	walkDepth = 8    // pointers, fields, elements below a value
	walkLimit = 1000 // values looked at in one record or state
)

// textWalk visits the strings and byte slices in a value: those in fields that
// are not exported too, and behind pointers.
type textWalk struct {
	// visit is told of a text that is not empty, its bytes, and whether the kit has
	// made them; true ends the walk.
	visit func(v reflect.Value, at unsafe.Pointer, n int, own bool) (stop bool)
	left  int // values that may still be looked at
	types map[reflect.Type]bool
}

// walk reports where visit ended it. With own, texts that can be set in place are
// replaced by copies that nothing else shares.
func (w *textWalk) walk(v reflect.Value, depth int, own bool) (path string, stopped bool) {
	if w.left--; w.left < 0 || depth > walkDepth || !v.IsValid() || !w.hasText(v.Type()) {
		return "", false
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() == 0 {
			return "", false
		}
		if own = own && v.CanSet(); own {
			v.SetString(strings.Clone(v.String()))
		}
		return "", w.visit(v, unsafe.Pointer(unsafe.StringData(v.String())), v.Len(), own)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			return w.elements(v, depth, false)
		}
		if v.Len() == 0 {
			return "", false
		}
		if own = own && v.CanSet(); own {
			v.SetBytes(bytes.Clone(v.Bytes()))
		}
		return "", w.visit(v, v.UnsafePointer(), v.Len(), own)
	case reflect.Array:
		return w.elements(v, depth, own)
	case reflect.Struct:
		for i := range v.NumField() {
			if path, stopped := w.walk(v.Field(i), depth+1, own); stopped {
				return "." + v.Type().Field(i).Name + path, true
			}
		}
	case reflect.Pointer, reflect.Interface:
		return w.walk(v.Elem(), depth+1, false)
	case reflect.Map:
		for each := v.MapRange(); each.Next() && w.left > 0; {
			path, stopped := w.walk(each.Value(), depth+1, false)
			if !stopped {
				path, stopped = w.walk(each.Key(), depth+1, false)
			}
			if stopped {
				return "[" + shown(each.Key()) + "]" + path, true
			}
		}
	}
	return "", false
}

func (w *textWalk) elements(v reflect.Value, depth int, own bool) (path string, stopped bool) {
	for i := 0; i < v.Len() && w.left > 0; i++ {
		if path, stopped := w.walk(v.Index(i), depth+1, own); stopped {
			return fmt.Sprintf("[%d]%s", i, path), true
		}
	}
	return "", false
}

// The zone of a time has names, which are nobody's input.
var timeType, zoneType = reflect.TypeFor[time.Time](), reflect.TypeFor[time.Location]()

// hasText says whether values of a type can hold text.
func (w *textWalk) hasText(t reflect.Type) (has bool) {
	if has, known := w.types[t]; known {
		return has
	}
	if w.types == nil {
		w.types = map[reflect.Type]bool{}
	}
	w.types[t] = true // for a type within itself: better one look too many
	switch t.Kind() {
	case reflect.String, reflect.Interface:
		has = true
	case reflect.Slice:
		has = t.Elem().Kind() == reflect.Uint8 || w.hasText(t.Elem())
	case reflect.Array, reflect.Pointer:
		has = w.hasText(t.Elem())
	case reflect.Map:
		has = w.hasText(t.Key()) || w.hasText(t.Elem())
	case reflect.Struct:
		if t == timeType || t == zoneType {
			break
		}
		for i := range t.NumField() {
			has = w.hasText(t.Field(i).Type) || has
		}
	}
	w.types[t] = has
	return has
}
