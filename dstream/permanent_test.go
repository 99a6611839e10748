package dstream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// gone is an error that says of itself that it stays.
type gone struct{}

func (gone) Error() string   { return "gone for good" }
func (gone) Permanent() bool { return true }

// goneAt fails for good in one of its calls, and counts them.
type goneAt struct {
	*source.Queue[string]
	call  string
	calls int
}

func (s *goneAt) fail(call string) error {
	if call != s.call {
		return nil
	}
	s.calls++
	return fmt.Errorf("wrapped: %w", gone{})
}

func (s *goneAt) Open(ctx context.Context, last *source.Plan) error {
	if err := s.fail("open"); err != nil {
		return err
	}
	return s.Queue.Open(ctx, last)
}

func (s *goneAt) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	if err := s.fail("plan"); err != nil {
		return source.Plan{}, err
	}
	return s.Queue.Plan(ctx, l)
}

func (s *goneAt) Read(ctx context.Context, r source.Range, emit func(int64, string) error) error {
	if err := s.fail("read"); err != nil {
		return err
	}
	return s.Queue.Read(ctx, r, emit)
}

// A source's permanent error ends the run at once: waiting out the retry limit
// would only hide it.
func TestPermanentErrorsAreNotTriedAgain(t *testing.T) {
	for _, call := range []string{"open", "plan", "read"} {
		t.Run(call, func(t *testing.T) {
			src := &goneAt{Queue: source.NewQueue(1, []string{"a"}), call: call}
			err := dstream.Run(t.Context(), 10*time.Millisecond, func(ssc *dstream.StreamingContext) error {
				dstream.Print(dstream.From(ssc, "in", src), 1)
				return nil
			}, dstream.WithIORetry(time.Hour), dstream.WithOutput(discard{}))
			require.ErrorIs(t, err, gone{})
			require.Equal(t, 1, src.calls)
		})
	}
}
