package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The library's decoder converts between kinds and cuts numbers off without a
// word. So the code of every value is looked at before it decodes it.

func (p *packer) unexpected(want string) error {
	if p.pos() >= len(p.src) {
		return fmt.Errorf("%w: cut off where %s should be", ErrCorrupt, want)
	}
	return fmt.Errorf("%w: code 0x%02x at byte %d where %s should be", ErrCorrupt, p.peek(), p.pos(), want)
}

func encBool(p *packer, v reflect.Value) error { return p.enc.EncodeBool(v.Bool()) }

func decBool(p *packer, v reflect.Value) error {
	if c := p.peek(); c != msgpcode.False && c != msgpcode.True {
		return p.unexpected("a bool")
	}
	b, err := p.dec.DecodeBool()
	v.SetBool(b)
	return err
}

func encInt(p *packer, v reflect.Value) error { return p.enc.EncodeInt(v.Int()) }

func decInt(p *packer, v reflect.Value) error {
	i, err := p.decodeInt()
	if err != nil {
		return err
	}
	if v.OverflowInt(i) {
		return fmt.Errorf("%w: %d does not fit into %s", ErrCorrupt, i, v.Type())
	}
	v.SetInt(i)
	return nil
}

func (p *packer) decodeInt() (int64, error) {
	c := p.peek()
	switch {
	case c == msgpcode.Uint64:
		u, err := p.dec.DecodeUint64()
		if err == nil && u > math.MaxInt64 {
			err = fmt.Errorf("%w: %d does not fit into int64", ErrCorrupt, u)
		}
		return int64(u), err
	case msgpcode.IsFixedNum(c), c >= msgpcode.Uint8 && c <= msgpcode.Uint32, c >= msgpcode.Int8 && c <= msgpcode.Int64:
		return p.dec.DecodeInt64()
	}
	return 0, p.unexpected("an integer")
}

func encUint(p *packer, v reflect.Value) error { return p.enc.EncodeUint(v.Uint()) }

func decUint(p *packer, v reflect.Value) error {
	var u uint64
	var err error
	if p.peek() == msgpcode.Uint64 {
		u, err = p.dec.DecodeUint64()
	} else {
		var i int64
		if i, err = p.decodeInt(); err == nil && i < 0 {
			err = fmt.Errorf("%w: %d does not fit into %s", ErrCorrupt, i, v.Type())
		}
		u = uint64(i)
	}
	if err == nil && v.OverflowUint(u) {
		err = fmt.Errorf("%w: %d does not fit into %s", ErrCorrupt, u, v.Type())
	}
	if err != nil {
		return err
	}
	v.SetUint(u)
	return nil
}

func encFloat32(p *packer, v reflect.Value) error {
	return p.enc.EncodeFloat32(*v.Addr().Convert(float32Pointer).Interface().(*float32))
}

var float32Pointer = reflect.TypeFor[*float32]()

// decFloat32 goes by the bits: a detour over float64 would change NaNs.
func decFloat32(p *packer, v reflect.Value) error {
	if p.peek() != msgpcode.Float {
		return p.unexpected("a float32")
	}
	f, err := p.dec.DecodeFloat32()
	*v.Addr().Convert(float32Pointer).Interface().(*float32) = f
	return err
}

func encFloat64(p *packer, v reflect.Value) error { return p.enc.EncodeFloat64(v.Float()) }

func decFloat64(p *packer, v reflect.Value) error {
	if c := p.peek(); c != msgpcode.Double && c != msgpcode.Float {
		return p.unexpected("a float64")
	}
	f, err := p.dec.DecodeFloat64()
	v.SetFloat(f)
	return err
}

func encString(p *packer, v reflect.Value) error { return p.enc.EncodeString(v.String()) }

func decString(p *packer, v reflect.Value) error {
	s, err := p.decodeString()
	v.SetString(s)
	return err
}

func (p *packer) decodeString() (string, error) {
	if !msgpcode.IsString(p.peek()) {
		return "", p.unexpected("a string")
	}
	return p.dec.DecodeString()
}

func encByteSlice(p *packer, v reflect.Value) error {
	if v.IsNil() {
		return p.enc.EncodeNil()
	}
	return p.encodeBytes(v.Bytes())
}

func decByteSlice(p *packer, v reflect.Value) error {
	if p.peek() == msgpcode.Nil {
		return p.dec.DecodeNil()
	}
	b, err := p.decodeBytes()
	v.SetBytes(b)
	return err
}

func encByteArray(p *packer, v reflect.Value) error { return p.encodeBytes(v.Bytes()) }

func decByteArray(p *packer, v reflect.Value) error {
	b, err := p.decodeBytes()
	if err != nil {
		return err
	}
	if len(b) != v.Len() {
		return fmt.Errorf("%w: %d bytes for %s", ErrCorrupt, len(b), v.Type())
	}
	copy(v.Bytes(), b)
	return nil
}

// encodeBytes writes nil as no bytes; callers that tell them apart do so before.
func (p *packer) encodeBytes(b []byte) error {
	if b == nil {
		b = []byte{}
	}
	return p.enc.EncodeBytes(b)
}

func (p *packer) decodeBytes() ([]byte, error) {
	if !msgpcode.IsBin(p.peek()) {
		return nil, p.unexpected("bytes")
	}
	return p.dec.DecodeBytes()
}

func encTime(p *packer, v reflect.Value) error {
	return p.enc.EncodeTime(*v.Addr().Interface().(*time.Time))
}

func decTime(p *packer, v reflect.Value) error {
	t, end, ok := timeAt(p.src, p.pos())
	if !ok {
		return p.unexpected("a time")
	}
	p.seek(end)
	*v.Addr().Interface().(*time.Time) = t
	return nil
}

// timeAt reads the three forms of a MessagePack timestamp, and where it ends.
// The scan has proved that the bytes are there.
func timeAt(src []byte, pos int) (t time.Time, end int, ok bool) {
	b := src[pos:]
	var sec int64
	var nsec uint64
	switch {
	case len(b) >= 6 && b[0] == msgpcode.FixExt4 && b[1] == 0xff:
		sec, end = int64(binary.BigEndian.Uint32(b[2:])), pos+6
	case len(b) >= 10 && b[0] == msgpcode.FixExt8 && b[1] == 0xff:
		u := binary.BigEndian.Uint64(b[2:])
		sec, nsec, end = int64(u&(1<<34-1)), u>>34, pos+10
	case len(b) >= 15 && b[0] == msgpcode.Ext8 && b[1] == 12 && b[2] == 0xff:
		sec, nsec, end = int64(binary.BigEndian.Uint64(b[7:])), uint64(binary.BigEndian.Uint32(b[3:])), pos+15
	default:
		return t, 0, false
	}
	return time.Unix(sec, int64(nsec)).UTC(), end, nsec < 1e9
}

// header is a kind of container.
type header int

const (
	arrayHeader header = iota
	mapHeader
)

func (p *packer) decodeLen(h header) (int, error) {
	c := p.peek()
	if h == arrayHeader {
		if !msgpcode.IsFixedArray(c) && c != msgpcode.Array16 && c != msgpcode.Array32 {
			return 0, p.unexpected("an array")
		}
		return p.dec.DecodeArrayLen()
	}
	if !msgpcode.IsFixedMap(c) && c != msgpcode.Map16 && c != msgpcode.Map32 {
		return 0, p.unexpected("a map")
	}
	return p.dec.DecodeMapLen()
}
