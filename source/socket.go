package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/statemill/statemill/internal/clock"
)

// SocketReader reads the lines that a TCP server sends. Make it with [Socket] and
// set the fields before Open. It serves one run.
//
// Open connects, so that a refused connection is an error at the start. When the
// connection ends later, the source connects again, with growing pauses, up to
// Attempts times in a row; then Plan gives the lines received and, after them,
// the error. What the server sent while nobody was connected is not known; a line
// cut by a broken connection is dropped, one before an orderly end counts.
//
// Lines are kept until their epoch is committed and not longer: see [LineReader].
type SocketReader struct {
	// MaxBytes bounds the memory for lines received and not yet committed; when it
	// is full the server is made to wait. 0 means 16 MiB.
	MaxBytes int64
	// MaxLine is the longest line in bytes; a longer one is a LineTooLongError.
	// 0 means 4 MiB.
	MaxLine int
	// EndAtEOF takes an orderly end of the connection for the end of the input: the
	// source is then Done and does not connect again.
	EndAtEOF bool
	// Attempts is how many times in a row a lost connection is tried again before
	// it is an error. 0 means 10; -1 none.
	Attempts int
	// FirstPause is the pause before the second attempt; it doubles up to MaxPause.
	// 0 means 100 ms and 10 s.
	FirstPause, MaxPause time.Duration
	// Clock times the pauses. Nil means the system's.
	Clock clock.Clock
	// Dial connects. Nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	addr string

	lineSource

	cancel context.CancelFunc
	closed bool
	done   chan struct{} // closed when the goroutine has ended
}

// Socket returns a source of the lines that the server at addr ("host:port")
// sends. Its one partition is named by the address.
func Socket(addr string) *SocketReader {
	return &SocketReader{lineSource: lineSource{what: fmt.Sprintf("socket %q", addr)}, addr: addr}
}

// Open connects and starts the reading goroutine. It can be called again after
// an error.
func (s *SocketReader) Open(ctx context.Context, last *Plan) error {
	if s.MaxBytes < 0 || s.MaxLine < 0 || s.Attempts < -1 || s.FirstPause < 0 || s.MaxPause < 0 {
		return fmt.Errorf("%v: MaxBytes is %d, MaxLine %d, Attempts %d, FirstPause %v, MaxPause %v: none may be negative (Attempts: -1)",
			s, s.MaxBytes, s.MaxLine, s.Attempts, s.FirstPause, s.MaxPause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil || s.closed {
		return fmt.Errorf("%v: %w", s, ErrOpened)
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("%v: cannot connect: %w (does a server listen there?)", s, err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.buf = newLineBuffer(s.String(), s.addr, orDefault(s.MaxBytes, defaultBuffer), last, s.clock())
	s.cancel, s.done = cancel, make(chan struct{})
	go s.run(run, conn, s.buf)
	return nil
}

func (s *SocketReader) dial(ctx context.Context) (net.Conn, error) {
	if s.Dial != nil {
		return s.Dial(ctx, "tcp", s.addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", s.addr)
}

func (s *SocketReader) run(ctx context.Context, conn net.Conn, b *lineBuffer) {
	defer close(s.done)
	failures := 0 // connections in a row that failed or gave no line
	for {
		before := b.next()
		err := s.receive(ctx, conn, b)
		var long *LineTooLongError
		switch {
		case ctx.Err() != nil || err == nil || errors.Is(err, errDrained):
			return
		case s.EndAtEOF && errors.Is(err, io.EOF):
			b.end(nil)
			return
		case errors.As(err, &long):
			b.end(err)
			return
		}
		if b.next() > before {
			failures = 0
		}
		lost := fmt.Sprintf("%v: the connection was lost: %v", s, err)
		b.tell(lost, lost)
		if conn, err = s.again(ctx, &failures, err); err != nil {
			b.end(err)
			return
		}
		b.tell(fmt.Sprintf("%v: connected again", s), "")
	}
}

// receive reads one connection to its end and closes it.
func (s *SocketReader) receive(ctx context.Context, conn net.Conn, b *lineBuffer) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	return scan(conn, b, orDefault(s.MaxLine, defaultMaxLine))
}

// again connects anew after lost, with a pause before each attempt but the first
// in a row.
func (s *SocketReader) again(ctx context.Context, failures *int, lost error) (net.Conn, error) {
	attempts := max(orDefault(s.Attempts, 10), 0)
	for *failures < attempts {
		if *failures > 0 {
			pause := orDefault(s.FirstPause, 100*time.Millisecond) << min(*failures-1, 20)
			if !s.wait(ctx, min(pause, orDefault(s.MaxPause, 10*time.Second))) {
				return nil, ctx.Err()
			}
		}
		*failures++
		conn, err := s.dial(ctx)
		if err == nil {
			return conn, nil
		}
		lost = err
	}
	return nil, fmt.Errorf("%v: the connection was lost and %d attempts to connect again in a row failed: %w", s, attempts, lost)
}

func (s *SocketReader) wait(ctx context.Context, d time.Duration) bool {
	return clock.Wait(ctx, s.clock(), d) == nil
}

func (s *SocketReader) clock() clock.Clock {
	if s.Clock == nil {
		return clock.System()
	}
	return s.Clock
}

// Close implements Source: it closes the connection and waits for the goroutine.
func (s *SocketReader) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.done == nil {
		return nil
	}
	s.cancel()
	s.buf.close()
	<-s.done
	return nil
}
