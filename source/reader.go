package source

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/statemill/statemill/internal/clock"
)

const defaultBuffer = 16 << 20

// LineReader reads the lines of an io.Reader. Make it with [Lines] or [Stdin] and
// set the fields before Open. It serves one run.
//
// A goroutine reads between Open and Close and waits while MaxBytes of lines are
// kept. A line is kept until its epoch is committed, so an epoch can be tried
// again; but nothing survives the process: in a new run, the lines of an
// uncommitted epoch give ErrNotReplayable. Offsets are line numbers from 0.
//
// At the end of the input the source is Done. When reading fails, Plan gives the
// lines read before, and then the error.
type LineReader struct {
	// MaxBytes bounds the memory for lines read and not yet committed, and so the
	// size of a batch. 0 means 16 MiB.
	MaxBytes int64
	// MaxLine is the longest line in bytes; a longer one is a LineTooLongError.
	// 0 means 4 MiB.
	MaxLine int
	// CloseReader lets Close close the reader too, if it is an io.Closer. Without
	// it, a read that waits for input when Close is called goes on waiting; its
	// goroutine ends with it.
	CloseReader bool

	name string
	r    io.Reader

	lineSource

	reading bool // inside r.Read
	stopped bool
	done    chan struct{} // closed when the goroutine has ended
}

// Lines returns a source of the lines of r, under a name for messages, which is
// also its partition's.
func Lines(name string, r io.Reader) *LineReader {
	return &LineReader{lineSource: lineSource{what: fmt.Sprintf("lines of %q", name)}, name: name, r: r}
}

// Open starts the reading goroutine.
func (s *LineReader) Open(ctx context.Context, last *Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.r == nil {
		return fmt.Errorf("%v: the reader is nil", s)
	}
	if s.MaxBytes < 0 || s.MaxLine < 0 {
		return fmt.Errorf("%v: MaxBytes is %d and MaxLine %d: neither may be negative", s, s.MaxBytes, s.MaxLine)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil || s.stopped {
		return fmt.Errorf("%v: %w", s, ErrOpened)
	}
	s.buf = newLineBuffer(s.String(), s.name, orDefault(s.MaxBytes, defaultBuffer), last, clock.System())
	s.done = make(chan struct{})
	go s.run(s.buf)
	return nil
}

func (s *LineReader) run(b *lineBuffer) {
	defer close(s.done)
	err := scan(readFunc(s.read), b, orDefault(s.MaxLine, defaultMaxLine))
	switch {
	case err == nil || errors.Is(err, io.EOF):
		b.end(nil)
	default:
		var long *LineTooLongError
		if !errors.As(err, &long) {
			err = fmt.Errorf("%v: reading failed after line %d: %w", s, b.next(), err)
		}
		b.end(err)
	}
}

// read marks the time inside r.Read, for Close.
func (s *LineReader) read(p []byte) (int, error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return 0, io.EOF
	}
	s.reading = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.reading = false
		s.mu.Unlock()
	}()
	return s.r.Read(p)
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Close implements Source. It waits for the reading goroutine, unless that is
// inside the reader's Read and CloseReader is not set.
func (s *LineReader) Close() error {
	s.mu.Lock()
	if s.stopped || s.done == nil {
		s.stopped = true
		s.mu.Unlock()
		return nil
	}
	s.stopped = true
	inside := s.reading
	s.mu.Unlock()
	s.buf.close()
	var err error
	closer, can := s.r.(io.Closer)
	if s.CloseReader && can {
		if err = closer.Close(); err != nil {
			err = fmt.Errorf("%v: closing it: %w", s, err)
		}
		inside = false
	}
	if !inside {
		<-s.done
	}
	return err
}
