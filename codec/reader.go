package codec

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrReadOnly is the fault of encoding with a codec that [Reader] made for old
// values.
var ErrReadOnly = errors.New("a reader of old values writes none")

// Reader returns a codec that decodes values stored under the schema old into
// values of T, whose codec now is current: directly if T reads them (see
// [Compare]), else by steps, which may be given in any order and lead from each
// old type to T. If old matches a step exactly, the steps are taken even where
// T could read the values. Migrations for values that are no longer stored may
// stay.
//
// The codec has the id of old, as the files that hold such values, and does not
// encode ([ErrReadOnly]). If nothing has changed it is current itself. All
// faults of the set are found here: [ErrMigration] if the steps do not lead to
// T, *SchemaError if values of old cannot be read. A step's own error, or a
// damaged value, is the error of Decode.
func Reader[T any](old Schema, current Codec[T], steps ...Migration) (Codec[T], error) {
	schema, err := SchemaFor(current)
	if err != nil {
		return nil, err
	}
	path, err := route(old, schema, reflect.TypeFor[T](), steps)
	if err != nil {
		return nil, err
	}
	if len(path) == 0 && ClassOf(Compare(old, schema)) == Same {
		return current, nil
	}
	r := &reader[T]{schema: old, decode: current.Decode}
	if len(path) > 0 {
		r.decode = func(src []byte) (T, error) { return walk[T](path, src) }
	}
	return r, nil
}

type reader[T any] struct {
	schema Schema
	decode func(src []byte) (T, error)
}

func (r *reader[T]) ID() string { return r.schema.codec }

func (r *reader[T]) Append(dst []byte, _ T) ([]byte, error) { return dst, ErrReadOnly }

func (r *reader[T]) Decode(src []byte) (T, error) { return r.decode(src) }

func walk[T any](path []Migration, src []byte) (out T, err error) {
	v, err := path[0].decode(src)
	if err != nil {
		return out, err
	}
	for _, m := range path {
		if v, err = m.step(v); err != nil {
			return out, fmt.Errorf("codec: migrate %s to %s: %w", m.in, m.out, err)
		}
	}
	out, _ = v.(T)
	return out, nil
}
