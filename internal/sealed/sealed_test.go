package sealed_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/sealed"
)

func TestSealAndOpen(t *testing.T) {
	b, sum := sealed.Seal([]byte(`{"a":1`))
	require.Equal(t, `{"a":1,"sum":"61a0fe76ffe4dee06812ff298dd1912b"}`+"\n", string(b))
	require.True(t, json.Valid(b))
	object, again, err := sealed.Open(b)
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, string(object))
	require.Equal(t, sum, again)
	object[0] = 'x' // its own bytes
	require.EqualValues(t, '{', b[0])
}

// Every flipped byte, every cut and an addition are found.
func TestDamageIsFound(t *testing.T) {
	b, _ := sealed.Seal([]byte(`{"a":1`))
	for i := range b {
		c := append([]byte{}, b...)
		c[i] ^= 0x10
		_, _, err := sealed.Open(c)
		require.Error(t, err, "byte %d", i)
		_, _, err = sealed.Open(b[:i])
		require.Error(t, err, "cut at %d", i)
	}
	_, _, err := sealed.Open(b[:sealed.TailLen-1])
	require.ErrorIs(t, err, sealed.ErrShort)
	_, _, err = sealed.Open(append(b, '\n'))
	require.ErrorIs(t, err, sealed.ErrCut)
	b[1]++
	object, _, err := sealed.Open(b)
	require.ErrorIs(t, err, sealed.ErrSum)
	require.Len(t, object, len(`{"a":1}`))
}
