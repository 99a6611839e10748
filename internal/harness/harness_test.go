package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaiting(t *testing.T) {
	h := New()
	ctx, cancel := context.WithCancel(context.Background())
	at := time.Unix(5, 0)
	h.TickHandled(time.Unix(4, 0).UnixNano())
	cancel()
	require.ErrorIs(t, h.WaitTick(ctx, at), context.Canceled)
	h.TickHandled(at.UnixNano())
	h.TickHandled(at.UnixNano() - 1) // never goes back
	require.NoError(t, h.WaitTick(ctx, at))

	boom := errors.New("boom")
	h.Ended(boom)
	require.NoError(t, h.WaitTick(ctx, at)) // it was handled all the same
	err := h.WaitTick(context.Background(), at.Add(1))
	var ended *EndedError
	require.ErrorAs(t, err, &ended)
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "ended before the batch of 1970-01-01T00:00:05.000000001Z: boom")
	require.ErrorContains(t, h.WaitStarted(context.Background()), "the start")
	require.ErrorContains(t, &EndedError{Waited: "x"}, "before x")
	done, got := h.Result()
	require.True(t, done)
	require.Equal(t, boom, got)
	require.Nil(t, h.Engine())
}

func TestReplacedSources(t *testing.T) {
	h := New()
	h.ReplaceSource("b", 1)
	h.ReplaceSource("a", 2)
	require.Equal(t, []string{"a", "b"}, h.Unused())
	src, ok := h.Source("a")
	require.True(t, ok)
	require.Equal(t, 2, src)
	_, ok = h.Source("c")
	require.False(t, ok)
	require.Equal(t, []string{"b"}, h.Unused())
}

func TestWithoutHooksNothingChanges(t *testing.T) {
	h := New()
	ran := false
	require.NoError(t, h.Output(context.Background(), OutputCall{Run: func(context.Context) error { ran = true; return nil }}))
	require.True(t, ran)
	require.NoError(t, h.Read(ReadCall{}))
	require.NoError(t, h.Plan("x", 1, 0))
	require.Zero(t, h.Workers()+h.BlockSize())
	require.False(t, h.RetriesAtOnce())
}
