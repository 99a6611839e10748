package codec

import (
	"fmt"
	"reflect"
)

// node is the compiled plan of one type. v is always addressable. enc writes at
// the end of packer.buf; dec reads at packer.pos and finds v zero. shape is what
// the schema says of it: plan and schema come from one walk, so they agree.
type node struct {
	shape
	enc func(p *packer, v reflect.Value) error
	dec func(p *packer, v reflect.Value) error
}

// compiler turns a type into nodes, once per codec.
type compiler struct {
	root  reflect.Type
	nodes map[reflect.Type]*node // done and under way, so that types may contain themselves
	own   bool                   // some type encodes itself
}

func (c *compiler) fault(path, reason string) error { return typeError(c.root, path, reason) }

func (c *compiler) compile(t reflect.Type, path string) (*node, error) {
	if n, ok := c.nodes[t]; ok {
		return n, nil
	}
	n := &node{}
	c.nodes[t] = n
	made, err := c.build(t, path)
	if err != nil {
		return nil, err
	}
	*n = *made
	return n, nil
}

func (c *compiler) build(t reflect.Type, path string) (*node, error) {
	if t == timeType {
		return &node{shape: shape{kind: kindTime}, enc: encTime, dec: decTime}, nil
	}
	m, fault := methodsOf(t)
	if fault != "" {
		return nil, c.fault(path, t.String()+" "+fault)
	}
	if m != noMethods {
		c.own = true
		n := methodNode(m)
		n.shape = shape{kind: m.kind()}
		return n, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &node{shape: shape{kind: kindBool}, enc: encBool, dec: decBool}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &node{shape: shape{kind: numberKind(t)}, enc: encInt, dec: decInt}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return &node{shape: shape{kind: numberKind(t)}, enc: encUint, dec: decUint}, nil
	case reflect.Float32:
		return &node{shape: shape{kind: kindFloat32}, enc: encFloat32, dec: decFloat32}, nil
	case reflect.Float64:
		return &node{shape: shape{kind: kindFloat64}, enc: encFloat64, dec: decFloat64}, nil
	case reflect.String:
		return &node{shape: shape{kind: kindString}, enc: encString, dec: decString}, nil
	case reflect.Array:
		return c.array(t, path)
	case reflect.Slice:
		return c.slice(t, path)
	case reflect.Map:
		return c.mapping(t, path)
	case reflect.Pointer:
		return c.pointer(t, path)
	case reflect.Struct:
		return c.structure(t, path)
	case reflect.Interface:
		return nil, c.fault(path, "an interface does not say which type to decode into; use a concrete type, or give the field's owner EncodeMsgpack and DecodeMsgpack")
	}
	return nil, c.fault(path, fmt.Sprintf("a %s cannot be stored; leave the field out with the tag `msgpack:\"-\"`", t.Kind()))
}

func (c *compiler) pointer(t reflect.Type, path string) (*node, error) {
	// Both "no pointer" and "pointer to nil" would be nil in the encoding.
	switch e := t.Elem(); e.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if m, _ := methodsOf(e); m == noMethods {
			return nil, c.fault(path, fmt.Sprintf("a pointer to a %s does not come back when that is nil; use the %[1]s itself", e.Kind()))
		}
	}
	elem, err := c.compile(t.Elem(), path)
	if err != nil {
		return nil, err
	}
	return &node{
		shape: shape{kind: kindPointer, elem: &elem.shape},
		enc: func(p *packer, v reflect.Value) error {
			if v.IsNil() {
				return p.enc.EncodeNil()
			}
			return elem.enc(p, v.Elem())
		},
		dec: func(p *packer, v reflect.Value) error {
			if p.peek() == 0xc0 {
				return p.dec.DecodeNil()
			}
			target := reflect.New(t.Elem())
			if err := elem.dec(p, target.Elem()); err != nil {
				return err
			}
			v.Set(target)
			return nil
		},
	}, nil
}

func (c *compiler) array(t reflect.Type, path string) (*node, error) {
	if isByte(t.Elem()) {
		return &node{shape: shape{kind: kindByteArray, length: t.Len()}, enc: encByteArray, dec: decByteArray}, nil
	}
	elem, err := c.compile(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	return &node{
		shape: shape{kind: kindArray, length: t.Len(), elem: &elem.shape},
		enc:   func(p *packer, v reflect.Value) error { return encItems(p, v, elem) },
		dec: func(p *packer, v reflect.Value) error {
			n, err := p.decodeLen(arrayHeader)
			if err != nil {
				return err
			}
			if n != t.Len() {
				return fmt.Errorf("%w: %d items for %s", ErrCorrupt, n, t)
			}
			for i := range n {
				if err := elem.dec(p, v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

func (c *compiler) slice(t reflect.Type, path string) (*node, error) {
	if isByte(t.Elem()) {
		return &node{shape: shape{kind: kindBytes}, enc: encByteSlice, dec: decByteSlice}, nil
	}
	elem, err := c.compile(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	// Elements may be far larger in memory than in the encoding, so room is
	// made as they come.
	first := max(1, 4096/int(max(1, t.Elem().Size())))
	return &node{
		shape: shape{kind: kindSlice, elem: &elem.shape},
		enc: func(p *packer, v reflect.Value) error {
			if v.IsNil() {
				return p.enc.EncodeNil()
			}
			return encItems(p, v, elem)
		},
		dec: func(p *packer, v reflect.Value) error {
			if p.peek() == 0xc0 {
				return p.dec.DecodeNil()
			}
			n, err := p.decodeLen(arrayHeader)
			if err != nil {
				return err
			}
			v.Set(reflect.MakeSlice(t, 0, min(n, first)))
			for i := range n {
				if i == v.Cap() {
					v.Grow(min(n-i, i+1))
				}
				v.SetLen(i + 1)
				if err := elem.dec(p, v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

func encItems(p *packer, v reflect.Value, elem *node) error {
	if err := p.enter(); err != nil {
		return err
	}
	n := v.Len()
	if err := p.enc.EncodeArrayLen(n); err != nil {
		return err
	}
	for i := range n {
		if err := elem.enc(p, v.Index(i)); err != nil {
			return err
		}
	}
	p.depth--
	return nil
}
