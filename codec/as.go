package codec

// As returns a codec that stores each value of T as the value of W that to makes
// of it, by the codec of [For] for W: the same bytes, ID and schema, so that T and W
// may take each other's place in a program that has stored either. It is for a type
// that For refuses or whose form in files shall not follow its form in memory. from
// makes a value of T again; Decode of an older schema gives it what W reads of that.
// Both functions may be called from any goroutine; they must not keep or change what
// they are given. As fails as For[W] does.
//
// Migrations lead to T, not to W: what W cannot read is migrated by steps whose last
// makes a T.
func As[T, W any](to func(T) W, from func(W) T) (Codec[T], error) {
	stored, err := For[W]()
	if err != nil {
		return nil, err
	}
	schema, err := SchemaOf[W]()
	if err != nil {
		return nil, err
	}
	return &as[T]{
		id: stored.ID(), schema: schema,
		encode: func(dst []byte, v T) ([]byte, error) { return stored.Append(dst, to(v)) },
		decode: func(src []byte) (v T, err error) {
			w, err := stored.Decode(src)
			if err != nil {
				return v, err
			}
			return from(w), nil
		},
	}, nil
}

// as does not depend on W, so that the code for a T is there once.
type as[T any] struct {
	id     string
	schema Schema
	encode func([]byte, T) ([]byte, error)
	decode func([]byte) (T, error)
}

func (c *as[T]) ID() string { return c.id }

func (c *as[T]) Append(dst []byte, v T) ([]byte, error) { return c.encode(dst, v) }

func (c *as[T]) Decode(src []byte) (T, error) { return c.decode(src) }
