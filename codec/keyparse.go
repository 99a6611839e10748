package codec

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ErrKeyText is the class of texts that write no key of the schema's type.
var ErrKeyText = errors.New("text is no key of this type")

// AppendKey appends the canonical bytes of the key that text writes to dst; it
// is the way back from AppendJSON and needs no Go type. A string key is text as
// it is, without quotes; an array of bytes is its base64; every other key is
// written as AppendJSON prints it: integers in decimal, arrays and structs as
// JSON with every field named. On error dst is returned as it was given; a text
// that is no such key is [ErrKeyText], a schema of values is refused.
func (s Schema) AppendKey(dst []byte, text string) ([]byte, error) {
	if s.IsZero() || s.format != keyCodec {
		return dst, fmt.Errorf("codec: parse a key: %s is no schema of keys", s)
	}
	root := s.types[0].kind
	if root == kindString {
		return append(dst, text...), nil
	}
	var v any
	if root == kindByteArray && !strings.HasPrefix(text, `"`) {
		v = text
	} else {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return dst, fmt.Errorf("codec: %w: %q is not written as %s: %w", ErrKeyText, clip(text), s, err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return dst, fmt.Errorf("codec: %w: %q goes on after the %s", ErrKeyText, clip(text), s)
		}
	}
	p := keyParser{printer{types: s.types, out: dst}}
	p.unmeasured()
	if err := p.part(0, v); err != nil {
		return dst, fmt.Errorf("codec: %w: %q for %s: %w", ErrKeyText, clip(text), s, err)
	}
	return p.out, nil
}

// clip keeps a hostile text out of error messages.
func clip(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// keyParser turns decoded JSON into canonical key bytes at the end of out.
// What takes no bytes is measured as by the printer.
type keyParser struct{ printer }

func (p *keyParser) part(i int, v any) error {
	r := &p.types[i]
	switch r.kind {
	case kindTuple:
		return p.tuple(r, v)
	case kindArray:
		return p.array(r, v)
	case kindByteArray:
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("want %d bytes as a base64 string", r.length)
		}
		b, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return err
		}
		if len(b) != r.length {
			return fmt.Errorf("%d bytes where %d are wanted", len(b), r.length)
		}
		p.out = append(p.out, b...)
		return nil
	case kindString:
		return p.str(v)
	case kindBool:
		b, ok := v.(bool)
		if !ok {
			return errors.New("want true or false")
		}
		p.out = append(p.out, 0)
		if b {
			p.out[len(p.out)-1] = 1
		}
		return nil
	}
	return p.num(r.kind, v)
}

func (p *keyParser) tuple(r *typeRow, v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return errors.New("want an object")
	}
	for _, f := range r.fields {
		part, ok := m[f.name]
		if !ok && p.measure(f.is) {
			return fmt.Errorf("field %s is missing", f.name)
		}
		delete(m, f.name)
		if !ok {
			continue
		}
		if err := p.part(f.is, part); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	for name := range m {
		return fmt.Errorf("there is no field %q", clip(name))
	}
	return nil
}

func (p *keyParser) array(r *typeRow, v any) error {
	items, ok := v.([]any)
	if !ok {
		return errors.New("want an array")
	}
	// What takes no bytes is printed as nothing, see printer.measure.
	if len(items) != r.length && (len(items) > 0 || p.measure(r.elem)) {
		return fmt.Errorf("%d items where %d are wanted", len(items), r.length)
	}
	for j, item := range items {
		if err := p.part(r.elem, item); err != nil {
			return fmt.Errorf("item %d: %w", j, err)
		}
	}
	return nil
}

// str appends a string inside an array or struct.
func (p *keyParser) str(v any) error {
	text, ok := v.(string)
	if m, is := v.(map[string]any); is && len(m) == 1 { // text that is not UTF-8
		var b []byte
		var err error
		text, ok = m["base64"].(string)
		if ok {
			if b, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
				return err
			}
			text = string(b)
		}
	}
	if !ok {
		return errors.New("want a string")
	}
	for i := range len(text) {
		p.out = append(p.out, text[i])
		if text[i] == 0 {
			p.out = append(p.out, 0xff)
		}
	}
	p.out = append(p.out, 0, 1)
	return nil
}

func (p *keyParser) num(k kind, v any) error {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = string(v)
	case string: // the floats that JSON lacks
		text = v
	}
	family, bits := k.bits()
	_, quoted := v.(string)
	var u uint64
	switch {
	case text == "" || quoted && (family != 'f' || text != "+Inf" && text != "-Inf"):
		return fmt.Errorf("want a number of type %s", k)
	case family == 'i':
		i, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return fmt.Errorf("%s is no %s: %w", clip(text), k, errors.Unwrap(err))
		}
		u = uint64(i) ^ 1<<(bits-1)
	case family == 'u':
		var err error
		if u, err = strconv.ParseUint(text, 10, bits); err != nil {
			return fmt.Errorf("%s is no %s: %w", clip(text), k, errors.Unwrap(err))
		}
	default:
		f, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return fmt.Errorf("%s is no %s: %w", clip(text), k, errors.Unwrap(err))
		}
		u = orderedFloat(f, bits)
	}
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], u)
	p.out = append(p.out, buf[8-bits/8:]...)
	return nil
}

// orderedFloat gives the bits of a float in the order of keys; −0 is 0.
func orderedFloat(f float64, bits int) uint64 {
	if f == 0 {
		f = 0 // +0 for −0 too: a constant has no sign
	}
	u := math.Float64bits(f)
	if bits == 32 {
		u = uint64(math.Float32bits(float32(f)))
	}
	sign := uint64(1) << (bits - 1)
	if u&sign == 0 {
		return u | sign
	}
	return ^u & (sign<<1 - 1)
}
