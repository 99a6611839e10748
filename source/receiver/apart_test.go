package receiver_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// Report 13: a receiver whose goroutine ends, as after require in a test or t.FailNow, has failed: it is told, the
// source reports it, and it is called again.
func TestGoexitIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := clock.NewManual(time.Unix(0, 0).UTC())
		calls := 0
		s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](receiver.Func[string](
			func(ctx context.Context, store receiver.Store[string]) error {
				if calls++; calls == 1 {
					runtime.Goexit()
				}
				return store(ctx, "a")
			})))
		s.Clock, s.FirstPause = k, time.Second
		var events []receiver.Event
		s.OnEvent = func(e receiver.Event) { events = append(events, e) }
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		require.Len(t, events, 2)
		require.Equal(t, receiver.Failed, events[1].Kind)
		require.ErrorIs(t, events[1].Err, receiver.ErrGoexit)
		require.Contains(t, fmt.Sprint(s.Report().Warnings), "runtime.Goexit")
		require.False(t, s.Done())
		k.Advance(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a"}, read(t, s, plan(t, s)))
		require.True(t, s.Done())
		require.NoError(t, s.Close())
	})
}

// Report 13: what goes wrong in OnEvent ends neither the process nor the receiver; it is a notice.
func TestOnEventGoesWrong(t *testing.T) {
	for what, wrong := range map[string]func(){
		"panic: oops": func() { panic("oops") }, "runtime.Goexit": runtime.Goexit,
	} {
		h := newHand()
		s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](h))
		s.OnEvent = func(receiver.Event) { wrong() }
		require.NoError(t, s.Open(t.Context(), nil))
		require.NoError(t, h.store("a"))
		notices := s.Report().Notices
		require.Len(t, notices, 1)
		require.Contains(t, notices[0].Text, `receiver log "in": OnEvent: `+what)
		require.NotContains(t, notices[0].Text, "\n")
		require.NoError(t, s.Close())
	}
}

// The error of a panic has the stack, for who wrote the receiver; the report has one line.
func TestPanicHasItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](receiver.Func[string](thePanic)))
		var failed error
		s.OnEvent = func(e receiver.Event) {
			if e.Kind == receiver.Failed {
				failed = e.Err
			}
		}
		s.Clock = clock.NewManual(time.Unix(0, 0))
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		require.ErrorContains(t, failed, "panic: oops\n")
		require.ErrorContains(t, failed, "thePanic")
		require.Equal(t, []string{`receiver log "in": the receiver failed: panic: oops; it is called again after 1s`}, s.Report().Warnings)
		require.NoError(t, s.Close())
	})
}

func thePanic(context.Context, receiver.Store[string]) error { panic("oops") }
