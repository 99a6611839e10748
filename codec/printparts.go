package codec

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

func (p *printer) packedItems(r *typeRow) error {
	if r.kind == kindSlice && p.null() {
		return nil
	}
	n, err := p.length(arrayHeader)
	if err != nil {
		return err
	}
	if r.kind == kindArray && n != r.length {
		return fmt.Errorf("%w: %d items for an array of %d", ErrCorrupt, n, r.length)
	}
	return p.list(n, func() error { return p.packed(r.elem) })
}

func (p *printer) list(n int, item func() error) error {
	p.add("[")
	for j := range n {
		if j > 0 {
			p.add(",")
		}
		if err := item(); err != nil {
			return err
		}
	}
	p.add("]")
	return nil
}

func (p *printer) packedTuple(r *typeRow) error {
	n, err := p.length(arrayHeader)
	if err != nil {
		return err
	}
	if n != len(r.fields) {
		return fmt.Errorf("%w: %d fields, want %d", ErrCorrupt, n, len(r.fields))
	}
	p.add("{")
	for j, f := range r.fields {
		if j > 0 {
			p.add(",")
		}
		p.text([]byte(f.name))
		p.add(":")
		if err := p.packed(f.is); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	p.add("}")
	return nil
}

// member is a printed member of an object, or entry of a map, in printer.out.
type member struct{ start, value, end, field int }

func (p *printer) packedStruct(r *typeRow) error {
	n, err := p.length(mapHeader)
	if err != nil {
		return err
	}
	base := len(p.out)
	p.add("{")
	var list []member
	next, ordered := 0, true
	for k := range n {
		if k > 0 {
			p.add(",")
		}
		j, err := p.fieldAt(r, next)
		if err != nil {
			return err
		}
		ordered = ordered && j >= next
		next = j + 1
		m := member{start: len(p.out), field: j}
		p.text([]byte(r.fields[j].name))
		p.add(":")
		if err := p.packed(r.fields[j].is); err != nil {
			return fmt.Errorf("field %s: %w", r.fields[j].name, err)
		}
		m.end = len(p.out)
		list = append(list, m)
	}
	p.add("}")
	if !ordered {
		p.arrange(base, list)
	}
	return nil
}

// fieldAt reads the name of a field, which is nearly always that numbered next.
func (p *printer) fieldAt(r *typeRow, next int) (int, error) {
	// As in the plan: field names of up to 64 KiB.
	if c := p.src[p.pos]; !msgpcode.IsFixedString(c) && c != msgpcode.Str8 && c != msgpcode.Str16 {
		return 0, p.unexpected("a field name")
	}
	name := string(p.blob())
	if next < len(r.fields) && r.fields[next].name == name {
		return next, nil
	}
	j := slices.IndexFunc(r.fields, func(f fieldRow) bool { return f.name == name || slices.Contains(f.aliases, name) })
	if j < 0 {
		return 0, fmt.Errorf("%w: no field %q", ErrCorrupt, name)
	}
	return j, nil
}

// arrange puts the members printed from base on into the order of the fields.
// Of a field that comes twice the last one counts.
func (p *printer) arrange(base int, list []member) {
	slices.SortStableFunc(list, func(a, b member) int { return cmp.Compare(a.field, b.field) })
	printed := bytes.Clone(p.out[base:])
	p.out = append(p.out[:base], '{')
	for i, m := range list {
		if i+1 < len(list) && list[i+1].field == m.field {
			continue
		}
		if len(p.out) > base+1 {
			p.add(",")
		}
		p.out = append(p.out, printed[m.start-base:m.end-base]...)
	}
	p.add("}")
}

func (p *printer) packedMap(r *typeRow) error {
	n, err := p.length(mapHeader)
	if err != nil {
		return err
	}
	family, _ := p.types[r.key].kind.bits()
	return p.entries(n, family == 'i' || family == 'u', true,
		func() error { return p.packed(r.key) }, func() error { return p.packed(r.elem) })
}

// entries prints the n entries of a map: as an object if all keys can be names
// in it, else as an array of keys and values. If unique is not set, keys that
// come twice make an array too.
func (p *printer) entries(n int, numeric, unique bool, key, value func() error) error {
	base := len(p.out)
	var list []member
	object := true
	for range n {
		m := member{start: len(p.out)}
		if err := key(); err != nil {
			return err
		}
		m.value = len(p.out)
		object = object && m.value > m.start && !bytes.ContainsRune([]byte("{["), rune(p.out[m.start]))
		if err := value(); err != nil {
			return err
		}
		m.end = len(p.out)
		list = append(list, m)
	}
	name := func(m member) []byte { return p.out[m.start:m.value] }
	slices.SortStableFunc(list, func(a, b member) int {
		if numeric {
			return compareDigits(name(a), name(b))
		}
		return bytes.Compare(name(a), name(b))
	})
	for i := 1; i < len(list); i++ {
		if bytes.Equal(name(list[i-1]), name(list[i])) {
			if unique {
				return fmt.Errorf("%w: a key twice in a map", ErrCorrupt)
			}
			object = false
		}
	}
	p.arrangeEntries(base, list, object)
	return nil
}

func (p *printer) arrangeEntries(base int, list []member, object bool) {
	printed := bytes.Clone(p.out[base:])
	p.out = p.out[:base]
	open, end := "[", "]"
	if object {
		open, end = "{", "}"
	}
	p.add(open)
	for i, m := range list {
		if i > 0 {
			p.add(",")
		}
		k, v := printed[m.start-base:m.value-base], printed[m.value-base:m.end-base]
		switch {
		case !object:
			p.out = append(append(append(append(append(p.out, `{"key":`...), k...), `,"value":`...), v...), '}')
		case k[0] == '"':
			p.out = append(append(append(p.out, k...), ':'), v...)
		default:
			p.out = append(append(append(append(p.out, '"'), k...), `":`...), v...)
		}
	}
	p.add(end)
}

// compareDigits orders decimal integers by value.
func compareDigits(a, b []byte) int {
	na, nb := a[0] == '-', b[0] == '-'
	switch {
	case na && nb:
		a, b = b, a
	case na:
		return -1
	case nb:
		return 1
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return bytes.Compare(a, b)
}

// any prints the next value as it describes itself: what a type has encoded by
// itself.
func (p *printer) any() error {
	c := p.src[p.pos]
	switch {
	case p.null():
		return nil
	case c == msgpcode.False || c == msgpcode.True:
		return p.packedLeaf(&typeRow{kind: kindBool})
	case msgpcode.IsString(c):
		p.text(p.blob())
		return nil
	case msgpcode.IsBin(c):
		p.base64(p.blob())
		return nil
	case c == msgpcode.Float || c == msgpcode.Double:
		return p.packedFloat(64)
	case msgpcode.IsExt(c):
		return p.ext()
	}
	if i, u, ok := p.integer(); ok {
		if i < 0 {
			p.int(i)
		} else {
			p.uint(u)
		}
		return nil
	}
	if n, err := p.length(arrayHeader); err == nil {
		return p.list(n, p.any)
	}
	n, err := p.length(mapHeader)
	if err != nil {
		return err
	}
	return p.entries(n, false, false, p.any, p.any)
}

// ext prints an extension value: a time, or its number and bytes.
func (p *printer) ext() error {
	if t, end, ok := timeAt(p.src, p.pos); ok {
		p.pos = end
		p.time(t)
		return nil
	}
	c := p.src[p.pos]
	n := 0
	if c >= msgpcode.FixExt1 && c <= msgpcode.FixExt16 {
		n = 1 << (c - msgpcode.FixExt1)
		p.pos++
	} else {
		size, _ := lengthSize(c)
		n = int(p.be(size))
	}
	p.add(`{"ext":`)
	p.int(int64(int8(p.src[p.pos])))
	p.add(`,"base64":`)
	p.base64(p.src[p.pos+1 : p.pos+1+n])
	p.add("}")
	p.pos += 1 + n
	return nil
}
