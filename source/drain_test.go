package source_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/source"
)

// rest plans, reads and commits until the source is done.
func rest(t *testing.T, s *source.LineReader) (lines []string) {
	t.Helper()
	for !s.Done() {
		got, p := step(t, s)
		require.NotEmpty(t, got, "the source waits for something though it was drained")
		lines = append(lines, got...)
		require.NoError(t, s.Committed(t.Context(), p))
	}
	return lines
}

// What has come is kept, also what the reader holds while the buffer is full; what comes later is
// not, and the source is done (G2).
func TestLinesDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := source.Lines("x", r)
		s.MaxBytes = 40 // two lines
		require.NoError(t, s.Open(t.Context(), nil))
		_, err := io.WriteString(w, "one\ntwo\nthree\nfour\nfi")
		require.NoError(t, err)
		synctest.Wait() // the reader waits for room
		require.False(t, s.Done())
		s.Drain(t.Context())
		s.Drain(t.Context())
		require.Equal(t, []string{"one", "two", "three", "four"}, rest(t, s))
		require.NoError(t, s.Close())
		r.Close()
	})
}

// A reader that waits for input does not hold up the drain, and what it gets later is dropped.
func TestLinesDrainWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := source.Lines("x", r)
		require.NoError(t, s.Open(t.Context(), nil))
		_, err := io.WriteString(w, "one\n")
		require.NoError(t, err)
		synctest.Wait()
		s.Drain(t.Context())
		require.Equal(t, []string{"one"}, rest(t, s))
		_, err = io.WriteString(w, "two\n")
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, s.Done())
		require.Empty(t, rest(t, s))
		require.NoError(t, s.Close())
	})
}

// An input that never gives back the reader ends the drain with its context.
func TestLinesDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.Lines("x", strings.NewReader(strings.Repeat("a line\n", 100)))
		s.Drain(t.Context()) // before Open
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		s.Drain(ended)
		require.Len(t, rest(t, s), 100)
		require.NoError(t, s.Close())
	})
}

// A drained socket keeps what was sent, and does not connect again.
func TestSocketDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		n := &network{next: []func(net.Conn){func(c net.Conn) {
			io.WriteString(c, "one\ntwo\n")
			<-gone
			c.Close()
		}, says("three\n")}}
		s := source.Socket("host:1")
		s.Dial = n.dial
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		s.Drain(t.Context())
		close(gone)
		synctest.Wait()
		p, err := s.Plan(t.Context(), source.Limits{Records: source.NoLimit, Bytes: source.NoLimit})
		require.NoError(t, err)
		require.Equal(t, []source.Range{{Partition: "host:1", Until: 2}}, p.Ranges)
		require.True(t, s.Done())
		require.NoError(t, s.Close())
		require.Equal(t, 1, n.dials)
	})
}
