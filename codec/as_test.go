package codec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type celsius struct {
	tenths int
	note   any // a string
}

type storedCelsius struct {
	Tenths int
	Note   string
}

func toStored(c celsius) storedCelsius {
	note, _ := c.note.(string)
	return storedCelsius{Tenths: c.tenths, Note: note}
}

func fromStored(s storedCelsius) celsius { return celsius{tenths: s.Tenths, note: s.Note} }

// What is stored is a value of the other type: bytes, ID, schema.
func TestAsStoresTheOtherType(t *testing.T) {
	c, err := As(toStored, fromStored)
	require.NoError(t, err)
	own, err := For[storedCelsius]()
	require.NoError(t, err)

	v := celsius{tenths: 215, note: "kitchen"}
	b, err := c.Append([]byte("head"), v)
	require.NoError(t, err)
	want, err := own.Append([]byte("head"), storedCelsius{Tenths: 215, Note: "kitchen"})
	require.NoError(t, err)
	require.Equal(t, want, b)
	back, err := c.Decode(b[len("head"):])
	require.NoError(t, err)
	require.Equal(t, v, back)

	used, schema, err := Use(c)
	require.NoError(t, err)
	require.Same(t, c, used)
	ownSchema, err := SchemaOf[storedCelsius]()
	require.NoError(t, err)
	require.Equal(t, ownSchema, schema)
	require.Equal(t, own.ID(), c.ID())

	copied, err := ClonerOf(c)(v)
	require.NoError(t, err)
	require.Equal(t, v, copied)

	_, err = c.Decode([]byte{0xc1})
	require.ErrorIs(t, err, ErrCorrupt)
}

// Older values are read as the other type reads them, and migrated to the type itself.
func TestAsReadsOlderSchemas(t *testing.T) {
	type older struct{ Tenths int16 }
	type whole struct{ Degrees int }
	c, err := As(toStored, fromStored)
	require.NoError(t, err)

	old, err := SchemaOf[older]()
	require.NoError(t, err)
	r, err := Reader(old, c)
	require.NoError(t, err)
	w, err := For[older]()
	require.NoError(t, err)
	b, err := w.Append(nil, older{Tenths: 7})
	require.NoError(t, err)
	v, err := r.Decode(b)
	require.NoError(t, err)
	require.Equal(t, celsius{tenths: 7, note: ""}, v)

	same, err := SchemaOf[storedCelsius]()
	require.NoError(t, err)
	r, err = Reader(same, c)
	require.NoError(t, err)
	require.Same(t, c, r)

	foreign, err := SchemaOf[whole]()
	require.NoError(t, err)
	_, err = Reader(foreign, c)
	require.Error(t, err)
	r, err = Reader(foreign, c, Migrate(func(w whole) (celsius, error) { return celsius{tenths: 10 * w.Degrees}, nil }))
	require.NoError(t, err)
	f, err := For[whole]()
	require.NoError(t, err)
	b, err = f.Append(nil, whole{Degrees: 3})
	require.NoError(t, err)
	v, err = r.Decode(b)
	require.NoError(t, err)
	require.Equal(t, celsius{tenths: 30}, v)
}

// What cannot work is an error before the first record.
func TestAsRefuses(t *testing.T) {
	_, err := As(func(c celsius) func() { return nil }, func(func()) celsius { return celsius{} })
	var te *TypeError
	require.ErrorAs(t, err, &te)

	for name, c := range map[string]func() (Codec[celsius], error){
		"a nil function": func() (Codec[celsius], error) { return As[celsius, storedCelsius](nil, fromStored) },
		"a panic":        func() (Codec[celsius], error) { return As(toStored, func(storedCelsius) celsius { panic("no") }) },
		"another value": func() (Codec[celsius], error) {
			return As(toStored, func(s storedCelsius) celsius { return celsius{tenths: s.Tenths + 1} })
		},
	} {
		own, err := c()
		require.NoError(t, err, name)
		_, _, err = Use(own)
		require.ErrorContains(t, err, "the zero value of codec.celsius", name)
	}
}
