package sink_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

// aborting is a unit that notes how its transactions are aborted.
type aborting struct {
	sink.Unit
	abort func(ctx context.Context) error
}

func (a *aborting) Begin(context.Context, uint64) (sink.Tx, error) { return abortingTx{a}, nil }

func (a *aborting) Name() string { return "out" }

type abortingTx struct{ u *aborting }

func (t abortingTx) Write(ctx context.Context, _ sink.Part, rows sink.Rows) error {
	return errors.Join(rows(func([]byte) error { return nil }), ctx.Err())
}

func (t abortingTx) Commit(context.Context, sink.Memory) error { return nil }

func (t abortingTx) Abort(ctx context.Context) error { return t.u.abort(ctx) }

// A run that is stopped while it writes, or before it writes again, aborts what it has
// begun: its context has ended, and no other call comes.
func TestStoppedRunAborts(t *testing.T) {
	for _, when := range []string{"in a write", "before a write", "at the end"} {
		t.Run(when, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			aborts := 0
			u := &aborting{abort: func(ctx context.Context) error { aborts++; return ctx.Err() }}
			stop := when == "in a write"
			out := sink.Bind(sink.Sink[string]{Unit: u, Encode: sink.Text[string]}, "a", 1, func(_ context.Context, _ int, yield func(string) error) error {
				if stop {
					cancel()
				}
				return yield("row")
			})
			w, err := sink.NewWriter(u, 1, []sink.Output{out}, nil)
			require.NoError(t, err)
			_, err = w.Prepare(ctx, false)
			if stop {
				require.Equal(t, "sink out: epoch 1: output a: partition 0: context canceled", err.Error(), "and nothing went wrong with the abort")
				require.Equal(t, 1, aborts)
				return
			}
			require.NoError(t, err)
			cancel()
			if when == "before a write" {
				_, _ = w.Prepare(ctx, false)
				require.GreaterOrEqual(t, aborts, 1)
				return
			}
			require.NoError(t, w.Abort(ctx))
			require.NoError(t, w.Abort(ctx), "there is none any more")
			require.Equal(t, 1, aborts)
		})
	}
}

// An abort that hangs is given up some seconds after the run was stopped, and not before.
func TestAbortIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		u := &aborting{abort: func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		w, err := sink.NewWriter(u, 1, nil, nil)
		require.NoError(t, err)
		_, err = w.Prepare(ctx, false)
		require.NoError(t, err)
		stopped := errors.New("stopped")
		began := time.Now()
		time.AfterFunc(time.Minute, func() { cancel(stopped) })
		require.ErrorIs(t, w.Abort(ctx), stopped)
		require.Equal(t, time.Minute+5*time.Second, time.Since(began))
	})
}
