package source

import (
	"context"
	"fmt"
	"sync"
)

// lineSource is what sources of lines that cannot be read again share: all but
// how they are opened, read and closed. Its mu protects what they add to it, too.
type lineSource struct {
	what string // for messages

	mu  sync.Mutex
	buf *lineBuffer // set by Open
}

func (s *lineSource) String() string { return s.what }

// Plan implements Source.
func (s *lineSource) Plan(ctx context.Context, l Limits) (Plan, error) {
	b, err := s.buffer()
	if err != nil {
		return Plan{}, err
	}
	return b.plan(ctx, l)
}

// Read implements Source.
func (s *lineSource) Read(ctx context.Context, r Range, emit func(offset int64, line string) error) error {
	b, err := s.buffer()
	if err != nil {
		return err
	}
	return b.read(ctx, r, emit)
}

// Committed implements Source: the lines of p are forgotten.
func (s *lineSource) Committed(ctx context.Context, p Plan) error {
	b, err := s.buffer()
	if err != nil {
		return err
	}
	return b.committed(ctx, p)
}

// Drain implements Drainer: lines that have come are kept, those that come later are
// not read, and a line whose end has not come is dropped.
func (s *lineSource) Drain(ctx context.Context) {
	if b, err := s.buffer(); err == nil {
		b.drain(ctx)
	}
}

// Done implements Bounded: the input has ended (of a socket: with EndAtEOF), or the
// source was drained, and every line is in a plan.
func (s *lineSource) Done() bool {
	b, err := s.buffer()
	return err == nil && b.done()
}

// Report implements Reporter: the lines that wait, and what is wrong. Its counter "lines"
// counts those that came.
func (s *lineSource) Report() Report {
	b, err := s.buffer()
	if err != nil {
		return Report{}
	}
	return b.report()
}

// Locate implements Locator.
func (s *lineSource) Locate(_ string, offset int64) string {
	return fmt.Sprintf("%v, line %d", s, offset+1)
}

func (s *lineSource) buffer() (*lineBuffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf == nil {
		return nil, fmt.Errorf("%v: %w", s, ErrNotOpen)
	}
	return s.buf, nil
}
