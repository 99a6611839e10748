package guard

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func called(f func() error) (err error) {
	defer Catch(&err)
	return f()
}

func theUsers() error { panic(io.EOF) }

func TestCatch(t *testing.T) {
	require.NoError(t, called(func() error { return nil }))
	own := errors.New("own")
	require.Equal(t, own, called(func() error { return own }), "what is returned stays as it is")

	err := called(theUsers)
	require.ErrorContains(t, err, "panic: EOF\n")
	require.ErrorContains(t, err, "guard.theUsers", "the stack is that of the panic")
	require.NotErrorIs(t, err, io.EOF, "nobody returned it")
}
