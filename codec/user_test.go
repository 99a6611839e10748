package codec

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// textCodec is a user's codec, with faults to order.
type textCodec struct {
	id     string
	append func(dst []byte, v gen1) ([]byte, error)
	decode func(src []byte) (gen1, error)
}

func (c textCodec) ID() string { return c.id }
func (c textCodec) Append(dst []byte, v gen1) ([]byte, error) {
	if c.append != nil {
		return c.append(dst, v)
	}
	return fmt.Appendf(dst, "%d", v.A), nil
}
func (c textCodec) Decode(src []byte) (v gen1, err error) {
	if c.decode != nil {
		return c.decode(src)
	}
	_, err = fmt.Sscanf(string(src), "%d", &v.A)
	return v, err
}

// described writes what For writes, under its own id.
type described[T any] struct {
	Codec[T]
	schema Schema
}

func (described[T]) ID() string       { return "mine.v1" }
func (d described[T]) Schema() Schema { return d.schema }

func TestUse(t *testing.T) {
	c, s, err := Use[gen1](nil)
	require.NoError(t, err)
	require.Equal(t, "msgpack", c.ID())
	require.True(t, s.Equal(schemaOf[gen1](t)))
	again, s2, err := Use(c)
	require.NoError(t, err)
	require.Same(t, c, again)
	require.True(t, s2.Equal(s))
	_, _, err = Use[func()](nil)
	require.Error(t, err)

	own, s, err := Use[gen1](textCodec{id: "mine"})
	require.NoError(t, err)
	require.Equal(t, "mine", own.ID())
	require.Equal(t, "mine", s.Codec())
	out, err := s.AppendJSON(nil, []byte("5"))
	require.NoError(t, err)
	require.Equal(t, `"NQ=="`, string(out))

	d := described[gen1]{c, schemaOf[gen1](t)}
	_, s, err = Use[gen1](d)
	require.NoError(t, err)
	require.Equal(t, "mine.v1", s.Codec())
	out, err = s.AppendJSON(nil, bytesOf(t, gen1{5}))
	require.NoError(t, err)
	require.Equal(t, `{"A":5}`, string(out))
	require.NotEqual(t, schemaOf[gen1](t).Fingerprint(), s.Fingerprint())

	copied, err := ClonerOf(own)(gen1{7})
	require.NoError(t, err)
	require.Equal(t, gen1{7}, copied)
	r, err := Reader(s, own, MigrateWith[gen1](d, func(v gen1) (gen1, error) { return v, nil }))
	require.ErrorIs(t, err, ErrMigration) // from a type to itself
	require.Nil(t, r)
}

// report 35: found at start, not after a restart.
func TestUseRefuses(t *testing.T) {
	boom := errors.New("boom")
	for want, c := range map[string]Codec[gen1]{
		`the ID ""`:       textCodec{},
		`the ID "a/b"`:    textCodec{id: "a/b"},
		`which is taken`:  textCodec{id: "msgpack"},
		`"int64", which `: textCodec{id: "int64"},
		`boom`:            textCodec{id: "a", append: func(dst []byte, _ gen1) ([]byte, error) { return dst, boom }},
		`did not keep`:    textCodec{id: "a", append: func([]byte, gen1) ([]byte, error) { return []byte("0"), nil }},
		`panic: oh`:       textCodec{id: "a", decode: func([]byte) (gen1, error) { panic("oh") }},
		`EOF`:             textCodec{id: "a", append: func(dst []byte, _ gen1) ([]byte, error) { return dst, nil }},
		`changed its`: textCodec{id: "a", decode: func(b []byte) (gen1, error) {
			b[0]++
			return gen1{}, nil
		}},
		`after decoding as 31`:     textCodec{id: "a", decode: func([]byte) (gen1, error) { return gen1{1}, nil }},
		`codec "mine.v1" with the`: described[gen1]{textCodec{}, schemaOf[gen1](t)},
	} {
		_, _, err := Use(c)
		require.ErrorContains(t, err, want)
	}
}
