package codec

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type (
	gen1 struct{ A int }
	gen2 struct{ A, B int }
	gen3 struct{ Sum string }
)

func oneToTwo(v gen1) (gen2, error) { return gen2{v.A, v.A + 1}, nil }
func twoToThree(v gen2) (gen3, error) {
	if v.A < 0 {
		return gen3{}, errNegative
	}
	return gen3{strings.Repeat("x", v.A%7+v.B%7)}, nil
}

var errNegative = errors.New("negative")

func bytesOf[T any](t require.TestingT, v T) []byte {
	c, err := For[T]()
	require.NoError(t, err)
	b, err := c.Append(nil, v)
	require.NoError(t, err)
	return b
}

func readerOf[T any](t require.TestingT, old Schema, steps ...Migration) (Codec[T], error) {
	c, err := For[T]()
	require.NoError(t, err)
	return Reader(old, c, steps...)
}

// report 10: a changed type is mapped by an explicit rule.
func TestMigrationsChain(t *testing.T) {
	steps := []Migration{Migrate(twoToThree), Migrate(oneToTwo)} // any order
	require.Equal(t, schemaOf[gen2](t).Fingerprint(), steps[0].From().Fingerprint())
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.IntRange(0, 1e6).Draw(rt, "a")
		r, err := readerOf[gen3](rt, schemaOf[gen1](rt), steps...)
		require.NoError(rt, err)
		got, err := r.Decode(bytesOf(rt, gen1{a}))
		require.NoError(rt, err)
		two, _ := oneToTwo(gen1{a})
		want, _ := twoToThree(two)
		require.Equal(rt, want, got)
	})
	r, err := readerOf[gen3](t, schemaOf[gen2](t), steps...)
	require.NoError(t, err)
	_, err = r.Decode(bytesOf(t, gen2{A: -1}))
	require.ErrorIs(t, err, errNegative)
	_, err = r.Decode([]byte{0xc1})
	require.ErrorIs(t, err, ErrCorrupt)
	out, err := r.Append([]byte("a"), gen3{})
	require.ErrorIs(t, err, ErrReadOnly)
	require.Equal(t, "a", string(out))
	require.Equal(t, "msgpack", r.ID())
	s, err := SchemaFor(r)
	require.NoError(t, err)
	require.True(t, s.Equal(schemaOf[gen2](t)))
}

func TestReaderWithoutMigrations(t *testing.T) {
	c, err := For[gen2]()
	require.NoError(t, err)
	same, err := Reader(schemaOf[gen2](t), c, Migrate(oneToTwo))
	require.NoError(t, err)
	require.Same(t, c, same)
	// A field was added, and no migration reads exactly the old values.
	r, err := Reader(schemaOf[gen1](t), c)
	require.NoError(t, err)
	got, err := r.Decode(bytesOf(t, gen1{5}))
	require.NoError(t, err)
	require.Equal(t, gen2{A: 5}, got)
	// If one does, it counts.
	r, err = Reader(schemaOf[gen1](t), c, Migrate(oneToTwo))
	require.NoError(t, err)
	got, err = r.Decode(bytesOf(t, gen1{5}))
	require.NoError(t, err)
	require.Equal(t, gen2{5, 6}, got)
	// One that reads the old values compatibly will do.
	three, err := readerOf[gen3](t, schemaOf[struct{ B int8 }](t), Migrate(twoToThree))
	require.NoError(t, err)
	got3, err := three.Decode(bytesOf(t, struct{ B int8 }{2}))
	require.NoError(t, err)
	require.Equal(t, gen3{"xx"}, got3)
	_, err = readerOf[int](t, schemaOf[gen1](t))
	var fault *SchemaError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, Incompatible, ClassOf(fault.Changes))
}

func TestMigrationsAreChecked(t *testing.T) {
	type gen2Twin struct{ A, B int }
	to3 := Migrate(twoToThree)
	for _, c := range []struct {
		want  string
		steps []Migration
	}{
		{"is nil", []Migration{Migrate[gen1, gen3](nil)}},
		{"number 1 is empty", []Migration{{}}},
		{"leads away from codec.gen3", []Migration{Migrate(func(gen3) (gen1, error) { return gen1{}, nil })}},
		{"one leads to codec.gen3 and one to codec.gen1", []Migration{to3, Migrate(func(gen2) (gen1, error) { return gen1{}, nil })}},
		{"are stored alike", []Migration{to3, Migrate(func(gen2Twin) (gen3, error) { return gen3{}, nil })}},
		{"end at codec.gen2, not at codec.gen3", []Migration{Migrate(oneToTwo)}},
		{"in a cycle", []Migration{Migrate(oneToTwo), Migrate(func(gen2) (gen1, error) { return gen1{}, nil })}},
		{"could be read as codec.gen2 and as codec.gen1",
			[]Migration{to3, Migrate(oneToTwo)}},
	} {
		_, err := readerOf[gen3](t, schemaOf[struct{ A int8 }](t), c.steps...)
		require.ErrorIs(t, err, ErrMigration, c.want)
		require.ErrorContains(t, err, c.want)
	}
	_, err := readerOf[gen3](t, schemaOf[gen1](t), Migrate(func(struct{ f func() }) (gen3, error) { return gen3{}, nil }))
	var fault *TypeError
	require.ErrorAs(t, err, &fault)
}
