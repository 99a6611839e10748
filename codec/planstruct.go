package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// field is one stored field of a struct, or of a struct embedded in it.
type field struct {
	name      string
	aliases   []string
	index     []int
	omitEmpty bool
	plan      *node
}

func (f *field) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

func (c *compiler) structure(t reflect.Type, path string) (*node, error) {
	fields, asArray, err := c.fields(t, path, nil)
	if err != nil {
		return nil, err
	}
	s := &structPlan{t: t, fields: fields, byName: map[string]int{}}
	for i, f := range fields {
		for _, name := range append([]string{f.name}, f.aliases...) {
			if _, taken := s.byName[name]; taken {
				return nil, c.fault(joinPath(path, name), "two fields would be stored under this name; give one another by a msgpack tag")
			}
			s.byName[name] = i
		}
		s.omits = s.omits || f.omitEmpty
	}
	if asArray {
		return &node{shape: s.shape(kindTuple), enc: s.encArray, dec: s.decArray}, nil
	}
	return &node{shape: s.shape(kindStruct), enc: s.encMap, dec: s.decMap}, nil
}

func (c *compiler) fields(t reflect.Type, path string, index []int) (list []field, asArray bool, err error) {
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := parseTag(sf.Tag.Get("msgpack"))
		if sf.Name == "_msgpack" {
			asArray = tag.has("as_array") || tag.has("asArray")
			continue
		}
		if sf.Name == "_" || tag.name == "-" {
			continue
		}
		at := joinPath(path, sf.Name)
		here := append(slices.Clone(index), i)
		if m, _ := methodsOf(sf.Type); sf.Anonymous && sf.Type.Kind() == reflect.Struct && m == noMethods &&
			sf.Type != timeType && tag.name == "" && !tag.has("noinline") {
			inner, _, err := c.fields(sf.Type, at, here)
			if err != nil {
				return nil, false, err
			}
			list = append(list, inner...)
			continue
		}
		if !sf.IsExported() {
			return nil, false, c.fault(at, "unexported, so it would not be stored; export it, or leave it out with the tag `msgpack:\"-\"`")
		}
		plan, err := c.compile(sf.Type, at)
		if err != nil {
			return nil, false, err
		}
		f := field{name: tag.name, index: here, omitEmpty: tag.has("omitempty"), aliases: tag.aliases(), plan: plan}
		if f.name == "" {
			f.name = sf.Name
		}
		list = append(list, f)
	}
	return list, asArray, nil
}

type fieldTag struct {
	name    string
	options []string
}

func parseTag(s string) fieldTag {
	parts := strings.Split(s, ",")
	return fieldTag{name: parts[0], options: parts[1:]}
}

func (t fieldTag) has(option string) bool { return slices.Contains(t.options, option) }

func (t fieldTag) aliases() (list []string) {
	for _, o := range t.options {
		if alias, ok := strings.CutPrefix(o, "alias:"); ok {
			list = append(list, alias)
		}
	}
	return list
}

// structPlan writes a struct as a map from names to values in declaration
// order, or as an array.
type structPlan struct {
	t      reflect.Type
	fields []field
	byName map[string]int // aliases too
	omits  bool
}

func (s *structPlan) shape(k kind) shape {
	out := shape{kind: k}
	for _, f := range s.fields {
		out.fields = append(out.fields, shapeField{name: f.name, aliases: f.aliases, is: &f.plan.shape})
	}
	return out
}

func (s *structPlan) encMap(p *packer, v reflect.Value) error {
	if err := p.enter(); err != nil {
		return err
	}
	n := len(s.fields)
	if s.omits {
		for i := range s.fields {
			if f := &s.fields[i]; f.omitEmpty && f.of(v).IsZero() {
				n--
			}
		}
	}
	if err := p.enc.EncodeMapLen(n); err != nil {
		return err
	}
	for i := range s.fields {
		f := &s.fields[i]
		fv := f.of(v)
		if f.omitEmpty && fv.IsZero() {
			continue
		}
		if err := p.enc.EncodeString(f.name); err != nil {
			return err
		}
		if err := f.plan.enc(p, fv); err != nil {
			return err
		}
	}
	p.depth--
	return nil
}

// decMap takes the fields in any order. One that is missing stays zero, so that
// a type may gain fields; one that the type does not have is an error, as
// dropping it would lose it at the next write.
func (s *structPlan) decMap(p *packer, v reflect.Value) error {
	n, err := p.decodeLen(mapHeader)
	if err != nil {
		return err
	}
	next := 0
	for range n {
		name, err := p.name()
		if err != nil {
			return err
		}
		// Nearly always it is the next one, and the map is not asked.
		i := next
		if i >= len(s.fields) || s.fields[i].name != string(name) {
			var ok bool
			if i, ok = s.byName[string(name)]; !ok {
				return fmt.Errorf("%w: %s has no field %q; keep the field, or read it under an alias", ErrCorrupt, s.t, name)
			}
		}
		next = i + 1
		fv := s.fields[i].of(v)
		fv.SetZero() // a name that comes twice: the last one counts, whole
		if err := s.fields[i].plan.dec(p, fv); err != nil {
			return fmt.Errorf("field %s: %w", s.fields[i].name, err)
		}
	}
	return nil
}

// name reads a string without copying it. The scan has proved that it is there.
func (p *packer) name() ([]byte, error) {
	c, start := p.peek(), p.pos()+1
	n := 0
	switch {
	case msgpcode.IsFixedString(c):
		n = int(c & msgpcode.FixedStrMask)
	case c == msgpcode.Str8:
		n = int(p.src[start])
		start++
	case c == msgpcode.Str16:
		n = int(p.src[start])<<8 | int(p.src[start+1])
		start += 2
	default:
		return nil, p.unexpected("a field name")
	}
	p.seek(start + n)
	return p.src[start : start+n], nil
}

func (s *structPlan) encArray(p *packer, v reflect.Value) error {
	if err := p.enter(); err != nil {
		return err
	}
	if err := p.enc.EncodeArrayLen(len(s.fields)); err != nil {
		return err
	}
	for i := range s.fields {
		if err := s.fields[i].plan.enc(p, s.fields[i].of(v)); err != nil {
			return err
		}
	}
	p.depth--
	return nil
}

func (s *structPlan) decArray(p *packer, v reflect.Value) error {
	n, err := p.decodeLen(arrayHeader)
	if err != nil {
		return err
	}
	if n != len(s.fields) {
		return fmt.Errorf("%w: %d fields for %s, which has %d", ErrCorrupt, n, s.t, len(s.fields))
	}
	for i := range s.fields {
		if err := s.fields[i].plan.dec(p, s.fields[i].of(v)); err != nil {
			return fmt.Errorf("field %s: %w", s.fields[i].name, err)
		}
	}
	return nil
}
