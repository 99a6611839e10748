package codec

import "reflect"

// kind is the kind of a stored type, by the name that stands in schemas. These
// names are stored, so they never change.
type kind string

const (
	kindBool    kind = "bool"
	kindInt8    kind = "int8"
	kindInt16   kind = "int16"
	kindInt32   kind = "int32"
	kindInt64   kind = "int64" // int too: what is stored does not depend on the machine
	kindUint8   kind = "uint8"
	kindUint16  kind = "uint16"
	kindUint32  kind = "uint32"
	kindUint64  kind = "uint64" // uint and uintptr too
	kindFloat32 kind = "float32"
	kindFloat64 kind = "float64"
	kindString  kind = "string"
	kindBytes   kind = "bytes"
	kindTime    kind = "time"

	kindByteArray kind = "bytearray"
	kindArray     kind = "array"
	kindSlice     kind = "slice"
	kindMap       kind = "map"
	kindPointer   kind = "pointer"
	kindStruct    kind = "struct" // fields by name
	kindTuple     kind = "tuple"  // fields by position: as_array, and structs in keys

	// Types that encode themselves: what is inside is their own affair.
	kindOwnMsgpack kind = "own msgpack"
	kindOwnBinary  kind = "own binary"
	kindOwnText    kind = "own text"
	// kindUser is a whole value in the form of a user's codec.
	kindUser kind = "user"
)

// numberKind is the kind of a bool, number or string type.
func numberKind(t reflect.Type) kind {
	switch k := t.Kind(); k {
	case reflect.Int:
		return kindInt64
	case reflect.Uint, reflect.Uintptr:
		return kindUint64
	default:
		return kind(k.String())
	}
}

func (m methods) kind() kind {
	switch m {
	case binaryMethods:
		return kindOwnBinary
	case textMethods:
		return kindOwnText
	}
	return kindOwnMsgpack
}

// bits gives the value bits of an integer or float kind and its family ('i',
// 'u' or 'f'); 0 for other kinds.
func (k kind) bits() (family byte, n int) {
	switch k {
	case kindInt8:
		return 'i', 8
	case kindInt16:
		return 'i', 16
	case kindInt32:
		return 'i', 32
	case kindInt64:
		return 'i', 64
	case kindUint8:
		return 'u', 8
	case kindUint16:
		return 'u', 16
	case kindUint32:
		return 'u', 32
	case kindUint64:
		return 'u', 64
	case kindFloat32:
		return 'f', 32
	case kindFloat64:
		return 'f', 64
	}
	return 0, 0
}

// parts says which parts a type of the kind has.
func (k kind) parts() (known, length, key, elem, fields bool) {
	switch k {
	case kindByteArray:
		return true, true, false, false, false
	case kindArray:
		return true, true, false, true, false
	case kindSlice, kindPointer:
		return true, false, false, true, false
	case kindMap:
		return true, false, true, true, false
	case kindStruct, kindTuple:
		return true, false, false, false, true
	case kindBool, kindString, kindBytes, kindTime, kindOwnMsgpack, kindOwnBinary, kindOwnText, kindUser:
		return true, false, false, false, false
	}
	_, n := k.bits()
	return n > 0, false, false, false, false
}

// builtIn reports whether id is that of a built-in form, which is the name of
// its kind.
func builtIn(id string) bool {
	switch k := kind(id); k {
	case kindBool, kindString, kindBytes, kindTime:
		return true
	default:
		_, n := k.bits()
		return n > 0
	}
}

// shape is one type in the graph that a Go type spans; it may contain itself.
type shape struct {
	kind      kind
	length    int // of arrays
	key, elem *shape
	fields    []shapeField
}

type shapeField struct {
	name    string
	aliases []string
	is      *shape
}
