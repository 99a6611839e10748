package statefile

import (
	"fmt"
	"reflect"
	"strings"
)

// KeyID names the canonical encoding of keys of type K: its kind, such as
// "string" or "int64" (int, uint and uintptr are 64 bits wide), arrays as
// "[4]uint8" and structs as "(string,int64)". Field and type names are not part
// of it, as they are none of the bytes.
func KeyID[K comparable]() string { return keyID(reflect.TypeFor[K]()) }

func keyID(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "int64"
	case reflect.Uint, reflect.Uintptr:
		return "uint64"
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), keyID(t.Elem()))
	case reflect.Struct:
		var parts []string
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				parts = append(parts, keyID(f.Type))
			}
		}
		return "(" + strings.Join(parts, ",") + ")"
	}
	return t.Kind().String()
}
