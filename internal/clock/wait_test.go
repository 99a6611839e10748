package clock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWait(t *testing.T) {
	k := NewManual(time.Unix(0, 0))
	ctx, end := context.WithCancelCause(t.Context())
	waited := make(chan error)
	wait := func() { go func() { waited <- Wait(ctx, k, time.Second) }() }
	wait()
	require.NoError(t, k.BlockUntil(t.Context(), 1))
	k.Advance(time.Second)
	require.NoError(t, <-waited)
	wait()
	require.NoError(t, k.BlockUntil(t.Context(), 1))
	why := errors.New("enough")
	end(why)
	require.ErrorIs(t, <-waited, why)
	require.NoError(t, k.BlockUntil(t.Context(), 0), "the timer is stopped")
}
