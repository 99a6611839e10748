package codec

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// AppendJSON appends the value that src holds, in the bytes that s describes,
// as one line of JSON to dst. No Go type is needed. On error dst is returned as
// it was given; bytes that the type's codec would refuse are [ErrCorrupt].
//
// Structs are objects in the order of their fields, with stored names; a field
// that is not stored is left out. Maps are objects sorted by key, numbers by
// value; maps whose keys are no texts, numbers, bools or times are arrays of
// {"key":…,"value":…}. Bytes are base64, times RFC 3339 in UTC. Floats that
// JSON lacks are "NaN", "+Inf" and "-Inf", text that is not UTF-8 is
// {"base64":…}. What types encode by themselves is shown as the MessagePack,
// bytes or text it is, and values of an unknown codec as bytes.
func (s Schema) AppendJSON(dst, src []byte) ([]byte, error) {
	if s.IsZero() {
		return dst, fmt.Errorf("codec: print: the schema describes nothing")
	}
	p := printer{types: s.types, src: src, out: dst}
	var err error
	switch {
	case s.format == keyCodec:
		err = p.wholeKey()
	case s.format == "msgpack":
		err = p.wholePacked()
	case builtIn(s.format):
		err = p.scalar(s.types[0].kind)
	default:
		p.base64(src)
	}
	if err != nil {
		return dst, fmt.Errorf("codec: print %s: %w", s, err)
	}
	return p.out, nil
}

// printer turns bytes into JSON at the end of out.
type printer struct {
	types []typeRow
	src   []byte
	pos   int
	out   []byte
	width []int // of keys: the fewest bytes of each type
}

func (p *printer) add(s string) { p.out = append(p.out, s...) }

// scalar prints all of src as a built-in form.
func (p *printer) scalar(k kind) error {
	switch k {
	case kindString:
		p.text(p.src)
		return nil
	case kindBytes:
		var b []byte
		if err := decodeScalar(p.src, reflect.Slice, unsafe.Pointer(&b)); err != nil {
			return err
		}
		p.bytesOrNull(b)
		return nil
	case kindTime:
		var t time.Time
		if err := decodeTime(p.src, &t); err != nil {
			return err
		}
		p.time(t)
		return nil
	}
	var v [8]byte
	if err := decodeScalar(p.src, reflectKind(k), unsafe.Pointer(&v)); err != nil {
		return err
	}
	p.number(k, v)
	return nil
}

// reflectKind is the kind of Go that holds a bool or number.
func reflectKind(k kind) reflect.Kind {
	for r := reflect.Bool; r <= reflect.Float64; r++ {
		if r.String() == string(k) {
			return r
		}
	}
	return reflect.Invalid
}

// number prints a bool or number from the memory that it has in Go.
func (p *printer) number(k kind, v [8]byte) {
	u := binary.NativeEndian.Uint64(v[:])
	switch k {
	case kindBool:
		p.out = strconv.AppendBool(p.out, v[0] == 1)
	case kindInt8:
		p.int(int64(int8(v[0])))
	case kindInt16:
		p.int(int64(int16(binary.NativeEndian.Uint16(v[:]))))
	case kindInt32:
		p.int(int64(int32(binary.NativeEndian.Uint32(v[:]))))
	case kindInt64:
		p.int(int64(u))
	case kindUint8:
		p.uint(uint64(v[0]))
	case kindUint16:
		p.uint(uint64(binary.NativeEndian.Uint16(v[:])))
	case kindUint32:
		p.uint(uint64(binary.NativeEndian.Uint32(v[:])))
	case kindUint64:
		p.uint(u)
	case kindFloat32:
		p.float(float64(math.Float32frombits(binary.NativeEndian.Uint32(v[:]))), 32)
	case kindFloat64:
		p.float(math.Float64frombits(u), 64)
	}
}

func (p *printer) int(i int64)   { p.out = strconv.AppendInt(p.out, i, 10) }
func (p *printer) uint(u uint64) { p.out = strconv.AppendUint(p.out, u, 10) }

func (p *printer) float(f float64, bits int) {
	switch a := math.Abs(f); {
	case math.IsNaN(f):
		p.add(`"NaN"`)
	case math.IsInf(f, 1):
		p.add(`"+Inf"`)
	case math.IsInf(f, -1):
		p.add(`"-Inf"`)
	case a != 0 && (a < 1e-6 || a >= 1e21):
		p.out = strconv.AppendFloat(p.out, f, 'e', -1, bits)
	default:
		p.out = strconv.AppendFloat(p.out, f, 'f', -1, bits)
	}
}

func (p *printer) time(t time.Time) {
	p.add(`"`)
	p.out = t.UTC().AppendFormat(p.out, time.RFC3339Nano)
	p.add(`"`)
}

func (p *printer) bytesOrNull(b []byte) {
	if b == nil {
		p.add("null")
		return
	}
	p.base64(b)
}

func (p *printer) base64(b []byte) {
	p.add(`"`)
	p.out = base64.StdEncoding.AppendEncode(p.out, b)
	p.add(`"`)
}

// text prints a string. encoding/json would put U+FFFD for what is not UTF-8,
// and two keys could look alike.
func (p *printer) text(b []byte) {
	if !utf8.Valid(b) {
		p.add(`{"base64":`)
		p.base64(b)
		p.add("}")
		return
	}
	const hex = "0123456789abcdef"
	p.out = slices.Grow(p.out, len(b)+2)
	p.add(`"`)
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			p.out = append(p.out, '\\', c)
		case c == '\n':
			p.add(`\n`)
		case c == '\t':
			p.add(`\t`)
		case c < 0x20 || c == 0x7f: // no control reaches a terminal
			p.out = append(p.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			p.out = append(p.out, c)
		}
	}
	p.add(`"`)
}
