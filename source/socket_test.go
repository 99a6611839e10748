package source_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// Bad input: nobody listens.
func TestSocketRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	s := source.Socket(addr)
	for range 2 { // the engine may try again
		err = s.Open(t.Context(), nil)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "dial", op.Op)
		require.ErrorContains(t, err, addr)
		require.ErrorContains(t, err, "does a server listen")
	}
	require.NoError(t, s.Close())
}

// network is a server of scripted connections over net.Pipe.
type network struct {
	dials int
	next  []func(server net.Conn) // nil: refused
}

var errRefused = errors.New("refused")

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	n.dials++
	if len(n.next) == 0 {
		return nil, errRefused
	}
	handle := n.next[0]
	n.next = n.next[1:]
	if handle == nil {
		return nil, errRefused
	}
	client, server := net.Pipe()
	go handle(server)
	return client, nil
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, text)
		c.Close()
	}
}

// A lost connection is made again, with pauses that grow up to a limit, and an
// error after so many attempts in a row.
func TestSocketReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{next: []func(net.Conn){says("one\n"), nil, nil, says("two\n"), says(""), nil}}
		manual := clock.NewManual(time.Unix(0, 0))
		s := source.Socket("host:1")
		s.Dial, s.Clock = n.dial, manual
		s.Attempts, s.FirstPause, s.MaxPause = 4, time.Second, 3*time.Second
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		require.Equal(t, 2, n.dials, "the first attempt comes at once")
		manual.Advance(time.Second - 1)
		synctest.Wait()
		require.Equal(t, 2, n.dials)
		manual.Advance(1)
		synctest.Wait()
		require.Equal(t, 3, n.dials)
		manual.Advance(2 * time.Second)
		synctest.Wait()
		// Connected: "two" came, so the count began anew; then a connection that
		// said nothing, which counts as a failure.
		require.Equal(t, 5, n.dials)
		lines, p := step(t, s)
		require.Equal(t, []string{"one", "two"}, lines)
		require.NoError(t, s.Committed(t.Context(), p))
		for _, pause := range []time.Duration{1, 2, 3} {
			manual.Advance(pause * time.Second)
			synctest.Wait()
		}
		require.Equal(t, 8, n.dials)
		_, err := s.Plan(t.Context(), source.Limits{})
		require.ErrorIs(t, err, errRefused)
		require.ErrorContains(t, err, "4 attempts")
		require.NoError(t, s.Close())
	})
}

func TestSocketNoReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.Socket("host:1")
		s.Dial, s.Attempts = (&network{next: []func(net.Conn){says("one\n")}}).dial, -1
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		lines, _ := step(t, s)
		require.Equal(t, []string{"one"}, lines)
		_, err := s.Plan(t.Context(), source.Limits{})
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, s.Close())
	})
}

// Close ends the goroutine in each of its waits: for bytes, for room, for a pause.
func TestSocketClose(t *testing.T) {
	for name, next := range map[string][]func(net.Conn){
		"bytes": {func(c net.Conn) { io.Copy(io.Discard, c) }},
		"room":  {says("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\nc\n")},
		"pause": {says(""), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := source.Socket("host:1")
				s.Dial, s.MaxBytes = (&network{next: next}).dial, 20
				s.Clock = clock.NewManual(time.Unix(0, 0))
				require.NoError(t, s.Open(t.Context(), nil))
				synctest.Wait()
				require.NoError(t, s.Close())
				require.ErrorIs(t, s.Open(t.Context(), nil), source.ErrOpened)
			})
		})
	}
}

func TestSocketBadUse(t *testing.T) {
	s := source.Socket("host:1")
	s.Attempts = -2
	require.ErrorContains(t, s.Open(t.Context(), nil), "may be negative")
	require.ErrorIs(t, s.Committed(t.Context(), source.Plan{}), source.ErrNotOpen)
	require.False(t, s.Done())
	require.Equal(t, `socket "host:1", line 1`, s.Locate("host:1", 0))
}

func TestSocketTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.Socket("host:1")
		s.Dial, s.MaxLine = (&network{next: []func(net.Conn){says("12345678901\n")}}).dial, 10
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		_, err := s.Plan(t.Context(), source.Limits{})
		var long *source.LineTooLongError
		require.ErrorAs(t, err, &long)
		require.NoError(t, s.Close())
	})
}
