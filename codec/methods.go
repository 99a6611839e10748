package codec

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
)

// methods says by which of its own methods a type encodes itself.
type methods int

const (
	noMethods     methods = iota
	streamMethods         // EncodeMsgpack, DecodeMsgpack
	valueMethods          // MarshalMsgpack, UnmarshalMsgpack
	binaryMethods         // MarshalBinary, UnmarshalBinary
	textMethods           // MarshalText, UnmarshalText
)

var (
	streamEncoder = reflect.TypeFor[msgpack.CustomEncoder]()
	streamDecoder = reflect.TypeFor[msgpack.CustomDecoder]()
	valueEncoder  = reflect.TypeFor[msgpack.Marshaler]()
	valueDecoder  = reflect.TypeFor[msgpack.Unmarshaler]()
	binaryEncoder = reflect.TypeFor[encoding.BinaryMarshaler]()
	binaryDecoder = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	textEncoder   = reflect.TypeFor[encoding.TextMarshaler]()
	textDecoder   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// methodsOf looks at the methods of *t, which include those of t: values are
// always addressable here, so pointer receivers work everywhere. The text is a
// fault: half of a MessagePack pair would write what it cannot read. Half of
// the general pairs says nothing about storing and is ignored, and numbers and
// strings with general pairs (enumerations with names) stay numbers and
// strings, which always come back.
func methodsOf(t reflect.Type) (methods, string) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return noMethods, ""
	}
	p := reflect.PointerTo(t)
	for _, pair := range []struct {
		m        methods
		enc, dec reflect.Type
	}{{streamMethods, streamEncoder, streamDecoder}, {valueMethods, valueEncoder, valueDecoder}} {
		enc, dec := p.Implements(pair.enc), p.Implements(pair.dec)
		switch {
		case enc && dec:
			return pair.m, ""
		case enc || dec:
			return noMethods, fmt.Sprintf("has only one of the methods %s and %s; add the other",
				pair.enc.Method(0).Name, pair.dec.Method(0).Name)
		}
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Array, reflect.Slice, reflect.Map:
	default:
		return noMethods, ""
	}
	switch {
	case p.Implements(binaryEncoder) && p.Implements(binaryDecoder):
		return binaryMethods, ""
	case p.Implements(textEncoder) && p.Implements(textDecoder):
		return textMethods, ""
	}
	return noMethods, ""
}

// methodNode is the plan for types that encode themselves.
func methodNode(m methods) *node {
	switch m {
	case streamMethods:
		return &node{
			enc: func(p *packer, v reflect.Value) error {
				err := v.Addr().Interface().(msgpack.CustomEncoder).EncodeMsgpack(p.enc)
				p.resetEncoder() // it may have changed the encoder's settings
				return err
			},
			dec: func(p *packer, v reflect.Value) error {
				end, err := scan(p.src, p.pos(), 0)
				if err != nil {
					return err
				}
				err = v.Addr().Interface().(msgpack.CustomDecoder).DecodeMsgpack(p.dec)
				p.dec.Reset(&p.r)
				if err == nil && p.pos() != end {
					err = fmt.Errorf("%w: DecodeMsgpack of %s stopped at byte %d of a value that ends at %d",
						ErrCorrupt, v.Type(), p.pos(), end)
				}
				return err
			},
		}
	case valueMethods:
		return &node{
			enc: func(p *packer, v reflect.Value) error {
				b, err := v.Addr().Interface().(msgpack.Marshaler).MarshalMsgpack()
				p.buf = append(p.buf, b...)
				return err
			},
			dec: func(p *packer, v reflect.Value) error {
				start := p.pos()
				end, err := scan(p.src, start, 0)
				if err != nil {
					return err
				}
				p.seek(end)
				return v.Addr().Interface().(msgpack.Unmarshaler).UnmarshalMsgpack(append([]byte{}, p.src[start:end]...))
			},
		}
	case binaryMethods:
		return &node{
			enc: func(p *packer, v reflect.Value) error {
				b, err := v.Addr().Interface().(encoding.BinaryMarshaler).MarshalBinary()
				if err != nil {
					return err
				}
				return p.encodeBytes(b)
			},
			dec: func(p *packer, v reflect.Value) error {
				b, err := p.decodeBytes()
				if err != nil {
					return err
				}
				return v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
			},
		}
	}
	return &node{
		enc: func(p *packer, v reflect.Value) error {
			b, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return err
			}
			return p.enc.EncodeString(string(b))
		},
		dec: func(p *packer, v reflect.Value) error {
			s, err := p.decodeString()
			if err != nil {
				return err
			}
			return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
		},
	}
}
