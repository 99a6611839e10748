package dstream_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// slowOpen and slowFence wait for what does not come.
type slowOpen struct {
	*script[string]
	deaf chan struct{} // if set it is waited for, and the context is not looked at
}

func (s slowOpen) Open(ctx context.Context, _ *source.Plan) error {
	if s.deaf != nil {
		<-s.deaf
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

type slowFence struct{ *sink.Files }

func (slowFence) Fence(ctx context.Context, _ sink.Fence) error { <-ctx.Done(); return ctx.Err() }

// report 27, 37: a Stop while the context starts ends the opening of its sources and
// sinks: nothing runs yet that is to be finished. It is no error of the run, as when the
// context of Run ends then.
func TestStopWhileStarting(t *testing.T) {
	for _, what := range []string{"source", "sink", "source of Run"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dstream.New(time.Second, dstream.WithCheckpointStore(vfs.NewObjects()), dstream.WithIORetry(time.Hour))
				files := sink.NewFiles("files", vfs.NewObjects())
				unit, src := sink.Unit(files), source.Source[string](newScript(1, []string{"a"}))
				if what != "sink" {
					src = slowOpen{newScript(1, []string{"a"}), nil}
				} else {
					unit = slowFence{files}
				}
				dstream.Output(dstream.From(c, "in", src), "rows", linesTo(files, unit))
				started := make(chan error, 1)
				if what == "source of Run" {
					go func() { started <- c.Run(context.Background()) }()
				} else {
					go func() { started <- c.Start() }()
				}
				synctest.Wait()
				require.Empty(t, started)
				before := clock.System().Now()
				require.NoError(t, c.Stop(context.Background()))
				if err := <-started; what == "source of Run" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, dstream.ErrStopped)
				}
				require.NoError(t, c.Wait())
				require.ErrorIs(t, c.Start(), dstream.ErrStopped)
				after(t, before, 0)
			})
		})
	}
}

// report 27: a source whose opening ignores the stop is named.
func TestStopNamesWhatOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := make(chan struct{})
		c := dstream.New(time.Second, dstream.WithStopTimeout(time.Second), dstream.WithOutput(discard{}))
		dstream.Print(dstream.From(c, "in", slowOpen{newScript(1, []string{"a"}), deaf}), 1)
		started := make(chan error, 1)
		go func() { started <- c.Start() }()
		synctest.Wait()
		err := c.Stop(context.Background())
		require.ErrorIs(t, err, dstream.ErrStopTimeout)
		require.ErrorContains(t, err, "opening of source in")
		close(deaf)
		<-started
		<-dstream.Done(c)
	})
}
