package receiver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hand is a receiver by hand: what is put on the channel is stored, and the
// answer comes back.
type hand struct {
	in  chan []string
	out chan error
	end chan error
}

func newHand() *hand {
	return &hand{in: make(chan []string), out: make(chan error), end: make(chan error)}
}

func (h *hand) Receive(ctx context.Context, store receiver.Store[string]) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-h.end:
			return err
		case records := <-h.in:
			h.out <- store(ctx, records...)
		}
	}
}

func (h *hand) store(records ...string) error {
	h.in <- records
	return <-h.out
}

func strings(t require.TestingT) codec.Codec[string] {
	c, err := codec.For[string]()
	require.NoError(t, err)
	return c
}

func open(t *testing.T, fsys vfs.FS, h *hand, last *source.Plan) *receiver.Source[string] {
	s := receiver.New(fsys, "in", strings(t), receiver.Receiver[string](h))
	s.SegmentBytes = 100
	require.NoError(t, s.Open(t.Context(), last))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// read reads a plan.
func read(t require.TestingT, s *receiver.Source[string], p source.Plan) (out []string) {
	for _, r := range p.Ranges {
		next := r.From
		require.NoError(t, s.Read(context.Background(), r, func(offset int64, v string) error {
			require.Equal(t, next, offset)
			next++
			out = append(out, v)
			return nil
		}))
		require.Equal(t, r.Until, next)
	}
	return out
}

func plan(t require.TestingT, s *receiver.Source[string]) source.Plan {
	p, err := s.Plan(context.Background(), source.Limits{})
	require.NoError(t, err)
	return p
}

func records(from, until int) (out []string) {
	for i := from; i < until; i++ {
		out = append(out, fmt.Sprintf("record %d", i))
	}
	return out
}
