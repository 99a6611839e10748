package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// A Described is a [Codec] of a user's own that says what it stores, by a
// schema that [SchemaOf] or [Key.Schema] made: usually of a type with the same
// fields. If the codec writes exactly the bytes that [For] would write for that
// type, tools can print its values as JSON.
type Described interface {
	// Schema is called when the job is built. Its codec id is replaced by that
	// of the codec.
	Schema() Schema
}

// SchemaFor returns the schema of what c stores: that of [SchemaOf] if [For] or [As]
// made c, what c says of itself if it is [Described], else one that names its
// id alone.
func SchemaFor[T any](c Codec[T]) (Schema, error) {
	switch c := c.(type) {
	case scalarCodec[T], *packed[T]:
		return SchemaOf[T]()
	case *reader[T]:
		return c.schema, nil
	case *as[T]:
		return c.schema, nil
	case Described:
		s := c.Schema()
		if !s.IsZero() {
			s.codec = any(c).(Codec[T]).ID()
			return s, nil
		}
	}
	return Schema{codec: c.ID(), types: []typeRow{{kind: kindUser, key: -1, elem: -1}}}, nil
}

// Use returns the codec for values of T and the schema of what it stores: own,
// if it is not nil, else that of [For]. It checks own before any record is read:
//   - its ID is 1 to 64 letters, digits or any of . - _ + : and not the ID of a
//     codec of this package (no slash, so that no import path is stored);
//   - the zero value of T comes back, encodes to the same bytes again, keeps
//     what stands before it, and shares no memory with its bytes;
//   - those bytes can be printed by its schema, if it gives one.
//
// All faults are *TypeError or wrap what own returned.
func Use[T any](own Codec[T]) (Codec[T], Schema, error) {
	t := reflect.TypeFor[T]()
	if v := reflect.ValueOf(own); own == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		c, err := For[T]()
		if err != nil {
			return nil, Schema{}, err
		}
		s, err := SchemaOf[T]()
		return c, s, err
	}
	switch own.(type) {
	case scalarCodec[T], *packed[T]:
		s, err := SchemaOf[T]()
		return own, s, err
	case *as[T]:
		s, err := SchemaFor(own)
		if err == nil {
			err = tryZero(own, s)
		}
		if err != nil {
			return nil, Schema{}, fmt.Errorf("codec: the zero value of %s, stored as another type: %w", t, err)
		}
		return own, s, nil
	}
	id := own.ID()
	if !goodID(id) {
		return nil, Schema{}, typeError(t, "", fmt.Sprintf("its codec has the ID %q; give it 1 to 64 letters, digits or . - _ + :", id))
	}
	if id == "msgpack" || id == keyCodec || builtIn(id) {
		return nil, Schema{}, typeError(t, "", fmt.Sprintf("its codec has the ID %q, which is taken; give it one of its own", id))
	}
	s, err := SchemaFor(own)
	if err != nil {
		return nil, Schema{}, err
	}
	if err := tryZero(own, s); err != nil {
		return nil, Schema{}, fmt.Errorf("codec: codec %q with the zero value of %s: %w", id, t, err)
	}
	return own, s, nil
}

func goodID(id string) bool {
	const good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_+:"
	return id != "" && len(id) <= 64 && strings.Trim(id, good) == ""
}

// tryZero finds the usual faults of a codec. A panic in it is an error too.
func tryZero[T any](c Codec[T], s Schema) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	var zero T
	out, err := c.Append([]byte("head"), zero)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(out, []byte("head")) {
		return fmt.Errorf("Append did not keep the bytes it was given")
	}
	first := bytes.Clone(out[len("head"):])
	given := bytes.Clone(first)
	back, err := c.Decode(given)
	if err != nil {
		return err
	}
	if !bytes.Equal(given, first) {
		return fmt.Errorf("Decode changed its input")
	}
	for i := range given {
		given[i] ^= 0xff // a value that shares memory with its bytes changes now
	}
	again, err := c.Append(nil, back)
	if err != nil {
		return err
	}
	if !bytes.Equal(first, again) {
		return fmt.Errorf("encoded as % x, after decoding as % x", head(first), head(again))
	}
	_, err = s.AppendJSON(nil, first)
	return err
}

func head(b []byte) []byte { return b[:min(len(b), 32)] }
