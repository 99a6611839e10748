package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
)

// span is one encoded map entry in packer.buf.
type span struct{ start, value, end int }

func (c *compiler) mapping(t reflect.Type, path string) (*node, error) {
	if m, _ := methodsOf(t.Key()); m == noMethods && hasRefs(t.Key()) {
		return nil, c.fault(path, "a map key that holds a pointer or interface is another key after decoding; use its value")
	}
	key, err := c.compile(t.Key(), path+"[key]")
	if err != nil {
		return nil, err
	}
	elem, err := c.compile(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	return &node{
		shape: shape{kind: kindMap, key: &key.shape, elem: &elem.shape},
		enc: func(p *packer, v reflect.Value) error {
			if v.IsNil() {
				return p.enc.EncodeNil()
			}
			return encMap(p, v, key, elem)
		},
		dec: func(p *packer, v reflect.Value) error {
			if p.peek() == 0xc0 {
				return p.dec.DecodeNil()
			}
			return decMap(p, v, key, elem)
		},
	}, nil
}

// encMap writes the entries in the map's order and then sorts their bytes, by
// key: that needs no order on Go values, and the
// scratch space is reused from call to call.
func encMap(p *packer, v reflect.Value, key, elem *node) error {
	if err := p.enter(); err != nil {
		return err
	}
	if err := p.enc.EncodeMapLen(v.Len()); err != nil {
		return err
	}
	base, first := len(p.buf), len(p.spans)
	k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for it := v.MapRange(); it.Next(); {
		k.SetIterKey(it)
		e.SetIterValue(it)
		start := len(p.buf)
		if err := key.enc(p, k); err != nil {
			return err
		}
		value := len(p.buf)
		if err := elem.enc(p, e); err != nil {
			return err
		}
		p.spans = append(p.spans, span{start, value, len(p.buf)})
	}
	own := p.spans[first:]
	p.spans = p.spans[:first]
	p.depth--
	if len(own) < 2 || sabotage.On("map-order") {
		return nil
	}
	slices.SortFunc(own, func(a, b span) int {
		return bytes.Compare(p.buf[a.start:a.value], p.buf[b.start:b.value])
	})
	for i, s := range own[1:] {
		// Times of several zones, or NaN: the decoder could not keep them apart.
		if bytes.Equal(p.buf[own[i].start:own[i].value], p.buf[s.start:s.value]) {
			return fmt.Errorf("two keys of a %s have one encoding, % x", v.Type(), p.buf[s.start:s.value])
		}
	}
	p.tmp = append(p.tmp[:0], p.buf[base:]...)
	out := p.buf[:base]
	for _, s := range own {
		out = append(out, p.tmp[s.start-base:s.end-base]...)
	}
	return nil
}

func decMap(p *packer, v reflect.Value, key, elem *node) error {
	n, err := p.decodeLen(mapHeader)
	if err != nil {
		return err
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, min(n, 64)))
	k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for range n {
		k.SetZero()
		e.SetZero()
		if err := key.dec(p, k); err != nil {
			return err
		}
		if err := elem.dec(p, e); err != nil {
			return err
		}
		v.SetMapIndex(k, e)
	}
	if v.Len() != n {
		return fmt.Errorf("%w: a key twice in a map", ErrCorrupt)
	}
	return nil
}
