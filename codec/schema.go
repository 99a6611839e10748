package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// keyCodec is the codec id of the canonical bytes of [Key].
const keyCodec = "key"

// Schema says how values are stored: the codec, and kinds and field names of
// all parts. It holds no name of a Go type, package or module, so it outlives
// the program that wrote it. It is immutable; the zero Schema describes
// nothing. Encoded as JSON it is meant for a metadata file.
//
// A Schema is canonical: types that are stored alike have equal schemas,
// whatever they are called and however they are split into named types, also
// where they contain themselves.
type Schema struct {
	codec  string
	format string    // the codec in whose bytes the values are; "" if only a user's codec knows
	types  []typeRow // types[0] is the root, the others in order of first mention
}

// typeRow is one type of a schema; others are named by their index.
type typeRow struct {
	kind      kind
	length    int
	key, elem int // -1: none
	fields    []fieldRow
}

type fieldRow struct {
	name    string
	aliases []string
	is      int
}

// SchemaOf returns the schema of T as the codec of [For] stores it, and fails
// as For does.
func SchemaOf[T any]() (Schema, error) {
	t := reflect.TypeFor[T]()
	c := &compiler{root: t, nodes: map[reflect.Type]*node{}}
	n, err := c.compile(t, "")
	if err != nil {
		return Schema{}, err
	}
	id := "msgpack"
	if s, ok := scalarOf(t); ok {
		id = s.id
	}
	return newSchema(id, &n.shape), nil
}

// Schema returns the schema of the keys. Its fields go by position; a field's
// name is that of its msgpack tag, if it has one.
func (c *Key[K]) Schema() Schema { return newSchema(keyCodec, keyShape(reflect.TypeFor[K]())) }

// keyShape walks a type that compileKey has accepted.
func keyShape(t reflect.Type) *shape {
	switch t.Kind() {
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{kind: kindByteArray, length: t.Len()}
		}
		return &shape{kind: kindArray, length: t.Len(), elem: keyShape(t.Elem())}
	case reflect.Struct:
		s := &shape{kind: kindTuple}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" {
				continue
			}
			tag := parseTag(f.Tag.Get("msgpack"))
			name := f.Name
			if tag.name != "" && tag.name != "-" {
				name = tag.name
			}
			s.fields = append(s.fields, shapeField{name: name, aliases: tag.aliases(), is: keyShape(f.Type)})
		}
		return s
	}
	return &shape{kind: numberKind(t)}
}

func newSchema(id string, root *shape) Schema {
	return Schema{codec: id, format: id, types: canonical(flatten(root))}
}

// flatten numbers the types of a graph.
func flatten(root *shape) []typeRow {
	index := map[*shape]int{root: 0}
	order := []*shape{root}
	number := func(s *shape) int {
		if s == nil {
			return -1
		}
		i, ok := index[s]
		if !ok {
			i = len(order)
			index[s] = i
			order = append(order, s)
		}
		return i
	}
	var rows []typeRow
	for i := 0; i < len(order); i++ {
		s := order[i]
		row := typeRow{kind: s.kind, length: s.length, key: number(s.key), elem: number(s.elem)}
		for _, f := range s.fields {
			row.fields = append(row.fields, fieldRow{name: f.name, aliases: f.aliases, is: number(f.is)})
		}
		rows = append(rows, row)
	}
	return rows
}

// Codec returns the id of the codec that wrote the values; "key" for keys.
func (s Schema) Codec() string { return s.codec }

// IsZero reports whether s describes nothing.
func (s Schema) IsZero() bool { return len(s.types) == 0 }

// Equal reports whether a and b are the same in everything, aliases and the
// order of fields included.
func (s Schema) Equal(b Schema) bool {
	return s.codec == b.codec && s.format == b.format && slices.EqualFunc(s.types, b.types, equalRows)
}

func equalRows(a, b typeRow) bool {
	return a.kind == b.kind && a.length == b.length && a.key == b.key && a.elem == b.elem &&
		slices.EqualFunc(a.fields, b.fields, func(f, g fieldRow) bool {
			return f.name == g.name && f.is == g.is && slices.Equal(f.aliases, g.aliases)
		})
}

// Fingerprint returns 32 hex digits that are equal exactly for schemas whose
// values are stored alike: codec, kinds and field names count, aliases and the
// order of fields (where they go by name) do not. It is the same in every
// version of Statemill.
func (s Schema) Fingerprint() string {
	rows := make([]typeRow, len(s.types))
	for i, r := range s.types {
		r.fields = slices.Clone(r.fields)
		for j := range r.fields {
			r.fields[j].aliases = nil
		}
		if r.kind == kindStruct {
			slices.SortFunc(r.fields, func(a, b fieldRow) int { return strings.Compare(a.name, b.name) })
		}
		rows[i] = r
	}
	text := []byte("schema 1 " + strconv.Quote(s.codec) + "\n")
	for _, r := range canonical(rows) {
		text = append(text, r.label()...)
		for _, child := range r.children() {
			text = strconv.AppendInt(append(text, ' '), int64(child), 10)
		}
		text = append(text, '\n')
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
