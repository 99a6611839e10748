package dstream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// hungSource and hungUnit do not close until they are let go.
type hungSource struct {
	*script[string]
	gate chan struct{}
}

func (s hungSource) Close() error { <-s.gate; return s.script.Close() }

type hungUnit struct {
	*sink.Files
	gate chan struct{}
}

func (u hungUnit) Close() error { <-u.gate; return u.Files.Close() }

// linesTo writes lines to files through a unit that stands before it.
func linesTo(files *sink.Files, unit sink.Unit) sink.Sink[string] {
	door := sink.Lines(files, sink.Text[string])
	return sink.Sink[string]{Unit: unit, Target: door.Target, Encode: door.Encode}
}

// report 27, 38: a batch's error is told though what is to be closed after it hangs: within
// the stop timeout, whoever waits for it, together with what did not close. Nothing is
// said to be tried again, or to be ready, meanwhile.
func TestFailureIsToldThoughAClosingHangs(t *testing.T) {
	boom := errors.New("boom")
	for what, closing := range map[string]string{"source": "close of source in", "sink": "close of sink files"} {
		for _, waits := range []string{"Run", "Run with a deadline", "Wait", "Stop", "Stop twice"} {
			t.Run(what+" "+waits, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					gate := make(chan struct{})
					letGo := sync.OnceFunc(func() { close(gate) })
					defer letGo()
					store := vfs.NewObjects()
					c := dstream.New(time.Second, dstream.WithStopTimeout(5*time.Second), dstream.WithOutput(discard{}),
						dstream.WithCheckpointStore(store))
					var in *dstream.DStream[string]
					files := sink.NewFiles("files", vfs.NewObjects())
					unit := sink.Unit(files)
					src := newScript(1, []string{"a"}, []string{"b"}, []string{"c"})
					if what == "source" {
						in = dstream.From(c, "in", hungSource{src, gate})
					} else {
						in, unit = dstream.From(c, "in", src), hungUnit{files, gate}
					}
					dstream.Output(in, "rows", linesTo(files, unit))
					dstream.ForeachRDD(in, func(_ context.Context, b dstream.Batch, _ *dstream.RDD[string]) error {
						if b.Epoch == 2 {
							return boom
						}
						return nil
					}, dstream.Name("out"))
					before := clock.System().Now()
					wait := c.Wait
					if waits == "Run" {
						wait = func() error { return c.Run(context.Background()) }
					} else if waits == "Run with a deadline" {
						ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
						defer cancel()
						wait = func() error { return c.Run(ctx) }
					} else {
						require.NoError(t, c.Start())
						<-time.After(3 * time.Second)
						if waits != "Wait" {
							wait = func() error { return c.Stop(context.Background()) }
						}
					}
					var err error
					result := make(chan error, 2)
					go func() { result <- wait() }()
					<-time.After(3 * time.Second)
					if waits == "Stop twice" {
						go func() { result <- wait() }()
					}
					health := c.Health()
					require.Empty(t, health.Failing)
					require.ErrorIs(t, health.NotReady, dstream.ErrNotReady)
					require.ErrorIs(t, c.Healthy(), boom)
					require.NotContains(t, c.Healthy().Error(), "tried again")
					require.False(t, c.Ready())

					select {
					case err = <-result:
					case <-time.After(time.Minute):
						require.Fail(t, "it waits for the closing")
					}
					after(t, before, 13*time.Second)
					require.ErrorIs(t, err, boom)
					require.ErrorIs(t, err, dstream.ErrStopTimeout)
					var batch *dstream.BatchError
					require.ErrorAs(t, err, &batch)
					require.EqualValues(t, 2, batch.Batch.Epoch)
					var late *dstream.StopTimeoutError
					require.ErrorAs(t, err, &late)
					require.Equal(t, []string{closing}, late.Tasks)
					require.True(t, late.Idle)
					require.EqualValues(t, 1, late.Batch.Epoch)
					require.ErrorContains(t, err, closing)
					require.NotContains(t, err.Error(), "aborted")
					for range 2 {
						require.ErrorIs(t, c.Wait(), boom)
						require.ErrorIs(t, c.Stop(context.Background()), boom)
					}
					letGo()
					<-dstream.Done(c)
					require.ErrorIs(t, c.Wait(), boom)
				})
			})
		}
	}
}

// report 27: what closes slowly, but within the stop timeout, adds nothing to the error.
func TestSlowClosingAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		gate := make(chan struct{})
		c := dstream.New(time.Second, dstream.WithStopTimeout(5*time.Second))
		dstream.Foreach(dstream.From(c, "in", hungSource{newScript(1, []string{"a"}), gate}),
			func(context.Context, dstream.Batch, string) error { return boom })
		time.AfterFunc(4*time.Second, func() { close(gate) })
		err := c.Run(context.Background())
		require.ErrorIs(t, err, boom)
		require.NotErrorIs(t, err, dstream.ErrStopTimeout)
		require.Empty(t, c.Health().Failing, "nothing is tried again after the end")
	})
}
