package source_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

type failing struct {
	text io.Reader
	err  error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.text.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return n, err
}

// What was read before an error is delivered first; then every plan says it.
func TestLinesReadError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("device gone")
		s := source.Lines("tape", failing{strings.NewReader("one\ntwo\nhalf a li"), gone})
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		lines, p := step(t, s)
		require.Equal(t, []string{"one", "two"}, lines, "a line cut by an error is none")
		require.NoError(t, s.Committed(t.Context(), p))
		for range 2 {
			_, err := s.Plan(t.Context(), source.Limits{})
			require.ErrorIs(t, err, gone)
			require.ErrorContains(t, err, `lines of "tape"`)
			require.ErrorContains(t, err, "after line 2")
		}
		require.False(t, s.Done())
		require.NoError(t, s.Close())
	})
}

// A closed standard input is a clear error.
func TestClosedStdin(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "stdin", "text\n")
	r, err := fsys.Open("stdin")
	require.NoError(t, err)
	require.NoError(t, r.Close())
	s := source.Lines("stdin", r)
	require.NoError(t, s.Open(t.Context(), nil))
	for {
		if _, err = s.Plan(t.Context(), source.Limits{}); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorContains(t, err, `lines of "stdin"`)
	require.NoError(t, s.Close())
}

func TestLinesBadUse(t *testing.T) {
	ctx := t.Context()
	require.ErrorContains(t, source.Lines("x", nil).Open(ctx, nil), "reader is nil")
	s := source.Lines("x", strings.NewReader("a"))
	s.MaxBytes = -1
	require.ErrorContains(t, s.Open(ctx, nil), "negative")
	s.MaxBytes = 0
	require.ErrorIs(t, s.Committed(ctx, source.Plan{}), source.ErrNotOpen)
	require.NoError(t, s.Open(ctx, nil))
	require.ErrorIs(t, s.Open(ctx, nil), source.ErrOpened)
	require.Equal(t, `lines of "x", line 3`, s.Locate("x", 2))
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Open(ctx, nil), source.ErrOpened)
	require.Equal(t, `lines of "stdin"`, source.Stdin().String())
}

func TestLinesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.Lines("x", strings.NewReader("short\n"+strings.Repeat("y", 101)+"\n"))
		s.MaxLine = 100
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		lines, p := step(t, s)
		require.Equal(t, []string{"short"}, lines)
		require.NoError(t, s.Committed(t.Context(), p))
		_, err := s.Plan(t.Context(), source.Limits{})
		var long *source.LineTooLongError
		require.ErrorAs(t, err, &long)
		require.Equal(t, int64(1), long.Offset)
		require.NoError(t, s.Close())
	})
}

// The buffer is bounded, keeps an uncommitted plan's lines, and frees committed
// ones.
func TestLinesBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("12345678901234\n", 1000)
		s := source.Lines("x", strings.NewReader(text))
		s.MaxBytes = 300 // ten lines with their headers
		defer s.Close()
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		lines, p := step(t, s)
		require.Len(t, lines, 10)
		synctest.Wait()
		again, _ := step(t, s)
		require.Empty(t, again, "full until the commit")
		require.Equal(t, lines, readAll(t, s, p)[0], "the epoch is tried again")
		require.NoError(t, s.Committed(t.Context(), p))
		require.ErrorIs(t, s.Read(t.Context(), p.Ranges[0], nil), source.ErrNotReplayable)
		synctest.Wait()
		lines, _ = step(t, s)
		require.Len(t, lines, 10)
		require.NoError(t, s.Close(), "the reader waits for room: Close wakes it")
	})
}

// A read that waits for input does not hold up Close.
func TestLinesCloseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := source.Lines("x", r)
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		require.NoError(t, s.Close())
		w.Close() // its goroutine ends with the read
		synctest.Wait()

		r, w = io.Pipe()
		s = source.Lines("x", r)
		s.CloseReader = true
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		require.NoError(t, s.Close())
		_, err := w.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

// A new run counts on from the last plan.
func TestLinesNumbersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.Lines("x", strings.NewReader("a\n"))
		require.NoError(t, s.Open(t.Context(), &source.Plan{Ranges: []source.Range{{Partition: "x", From: 5, Until: 7}}}))
		synctest.Wait()
		p, err := s.Plan(context.Background(), source.Limits{})
		require.NoError(t, err)
		require.Equal(t, []source.Range{{Partition: "x", From: 7, Until: 8}}, p.Ranges)
		require.NoError(t, s.Close())
	})
}
