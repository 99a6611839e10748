package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxTypes bounds a schema that is read: a real one has tens of types.
const maxTypes = 1024

// The form in JSON. Like every stored form it never changes, it only gains.
type (
	schemaJSON struct {
		Codec  string     `json:"codec"`
		Format *string    `json:"format,omitempty"` // absent: as codec
		Types  []typeJSON `json:"types"`
	}
	typeJSON struct {
		Kind   kind        `json:"kind"`
		Len    int         `json:"len,omitempty"`
		Key    *int        `json:"key,omitempty"`
		Elem   *int        `json:"elem,omitempty"`
		Fields []fieldJSON `json:"fields,omitempty"`
	}
	fieldJSON struct {
		Name    string   `json:"name"`
		Type    int      `json:"type"`
		Aliases []string `json:"aliases,omitempty"`
	}
)

// MarshalJSON writes {"codec":…,"types":[…]}: the types by number, the first
// is the value's. The zero Schema is null.
func (s Schema) MarshalJSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("null"), nil
	}
	out := schemaJSON{Codec: s.codec}
	if s.format != s.codec {
		out.Format = &s.format
	}
	for _, r := range s.types {
		t := typeJSON{Kind: r.kind, Len: r.length}
		if r.key >= 0 {
			t.Key = &r.key
		}
		if r.elem >= 0 {
			t.Elem = &r.elem
		}
		for _, f := range r.fields {
			t.Fields = append(t.Fields, fieldJSON{Name: f.name, Type: f.is, Aliases: f.aliases})
		}
		out.Types = append(out.Types, t)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes. It refuses, with [ErrCorrupt],
// members it does not know and schemas that no type has.
func (s *Schema) UnmarshalJSON(src []byte) error {
	if string(src) == "null" {
		*s = Schema{}
		return nil
	}
	var in schemaJSON
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("codec: schema: %w: %w", ErrCorrupt, err)
	}
	out := Schema{codec: in.Codec, format: in.Codec}
	if in.Format != nil {
		out.format = *in.Format
	}
	if len(in.Types) == 0 || len(in.Types) > maxTypes || in.Codec == "" {
		return fmt.Errorf("codec: schema: %w: codec %q, %d types (1 to %d)", ErrCorrupt, in.Codec, len(in.Types), maxTypes)
	}
	for _, t := range in.Types {
		r := typeRow{kind: t.Kind, length: t.Len, key: -1, elem: -1}
		if t.Key != nil {
			r.key = *t.Key
		}
		if t.Elem != nil {
			r.elem = *t.Elem
		}
		for _, f := range t.Fields {
			r.fields = append(r.fields, fieldRow{name: f.Name, is: f.Type, aliases: f.Aliases})
		}
		out.types = append(out.types, r)
	}
	if err := out.validate(); err != nil {
		return fmt.Errorf("codec: schema: %w: %w", ErrCorrupt, err)
	}
	out.types = canonical(out.types)
	*s = out
	return nil
}

// validate holds what the reading of values relies on.
func (s Schema) validate() error {
	for i := range s.types {
		if err := s.validateRow(i); err != nil {
			return fmt.Errorf("type %d: %w", i, err)
		}
	}
	if s.format == keyCodec {
		return s.validateKey(0, make([]bool, len(s.types)), make([]bool, len(s.types)))
	}
	if s.format != "" && s.format != "msgpack" && (!builtIn(s.format) || s.format != string(s.types[0].kind)) {
		return fmt.Errorf("a %s in the form %q", s.types[0].kind, s.format)
	}
	return nil
}

func (s Schema) validateRow(i int) error {
	r := &s.types[i]
	known, length, key, elem, fields := r.kind.parts()
	switch {
	case !known:
		return fmt.Errorf("kind %q is not known; a newer Statemill may have written it", r.kind)
	case r.length < 0 || r.length != 0 && !length, (r.key >= 0) != key, (r.elem >= 0) != elem, len(r.fields) > 0 && !fields:
		return fmt.Errorf("parts that do not go with the kind %s", r.kind)
	}
	for _, c := range append(r.children(), max(r.key, 0), max(r.elem, 0)) {
		if c < 0 || c >= len(s.types) {
			return fmt.Errorf("refers to type %d of %d", c, len(s.types))
		}
	}
	if r.kind == kindUser && s.format != "" {
		return fmt.Errorf("a value of a user's codec in the form %q", s.format)
	}
	if r.kind == kindPointer && s.types[r.elem].kind == kindPointer {
		return fmt.Errorf("a pointer to a pointer")
	}
	names := map[string]bool{}
	for _, f := range r.fields {
		for _, n := range append([]string{f.name}, f.aliases...) {
			if names[n] {
				return fmt.Errorf("field %q twice", n)
			}
			names[n] = true
		}
	}
	return nil
}

// validateKey refuses what a key cannot hold; a key that contained itself would
// be endless.
func (s Schema) validateKey(i int, under, done []bool) error {
	if done[i] {
		return nil
	}
	if under[i] {
		return fmt.Errorf("a key that contains itself")
	}
	under[i] = true
	r := &s.types[i]
	switch r.kind {
	case kindBytes, kindTime, kindSlice, kindMap, kindPointer, kindStruct, kindOwnMsgpack, kindOwnBinary, kindOwnText, kindUser:
		return fmt.Errorf("a %s in a key", r.kind)
	}
	for _, c := range r.children() {
		if err := s.validateKey(c, under, done); err != nil {
			return err
		}
	}
	under[i], done[i] = false, true
	return nil
}
