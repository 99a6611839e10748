package codec

import (
	"fmt"
	"unsafe"
)

// wholeKey prints canonical key bytes.
func (p *printer) wholeKey() error {
	if p.types[0].kind == kindString { // the whole key: its bytes as they are
		p.text(p.src)
		return nil
	}
	p.unmeasured()
	p.measure(0)
	if err := p.key(0); err != nil {
		return err
	}
	if p.pos < len(p.src) {
		return fmt.Errorf("%w: %d bytes after the key", ErrCorrupt, len(p.src)-p.pos)
	}
	return nil
}

// unmeasured makes room for what measure finds.
func (p *printer) unmeasured() {
	p.width = make([]int, len(p.types))
	for i := range p.width {
		p.width[i] = -1
	}
}

// measure finds which parts take bytes at all. A part that takes none is not
// walked into: however large it declares itself, nothing stands behind it.
func (p *printer) measure(i int) bool {
	if p.width[i] >= 0 {
		return p.width[i] > 0
	}
	r := &p.types[i]
	some := false
	switch r.kind {
	case kindByteArray:
		some = r.length > 0
	case kindArray:
		some = p.measure(r.elem) && r.length > 0
	case kindTuple:
		for _, f := range r.fields {
			some = p.measure(f.is) || some
		}
	default:
		some = true
	}
	p.width[i] = 0
	if some {
		p.width[i] = 1
	}
	return some
}

func (p *printer) key(i int) error {
	r := &p.types[i]
	switch r.kind {
	case kindTuple:
		p.add("{")
		for j, f := range r.fields {
			if p.width[i] == 0 {
				break
			}
			if j > 0 {
				p.add(",")
			}
			p.text([]byte(f.name))
			p.add(":")
			if err := p.key(f.is); err != nil {
				return fmt.Errorf("field %s: %w", f.name, err)
			}
		}
		p.add("}")
		return nil
	case kindArray:
		p.add("[")
		for j := range r.length {
			if p.width[i] == 0 {
				break
			}
			if j > 0 {
				p.add(",")
			}
			if err := p.key(r.elem); err != nil {
				return err
			}
		}
		p.add("]")
		return nil
	case kindByteArray:
		if len(p.src)-p.pos < r.length {
			return short(r.length, len(p.src)-p.pos)
		}
		p.base64(p.src[p.pos : p.pos+r.length])
		p.pos += r.length
		return nil
	}
	return p.keyLeaf(r.kind)
}

func (p *printer) keyLeaf(k kind) error {
	src := p.src[p.pos:]
	var s string
	var v [8]byte
	var target unsafe.Pointer
	op := keyOpOf(k)
	if op == opString {
		target = unsafe.Pointer(&s)
	} else {
		target = unsafe.Pointer(&v)
	}
	rest, err := decodeOps(src, []keyOp{{kind: op}}, target)
	if err != nil {
		return err
	}
	p.pos = len(p.src) - len(rest)
	if op == opString {
		p.text([]byte(s))
	} else {
		p.number(k, v)
	}
	return nil
}

func keyOpOf(k kind) opKind {
	switch k {
	case kindBool:
		return opBool
	case kindInt8:
		return opInt8
	case kindInt16:
		return opInt16
	case kindInt32:
		return opInt32
	case kindInt64:
		return opInt64
	case kindUint8:
		return opUint8
	case kindUint16:
		return opUint16
	case kindUint32:
		return opUint32
	case kindUint64:
		return opUint64
	case kindFloat32:
		return opFloat32
	case kindFloat64:
		return opFloat64
	}
	return opString
}
