package dstream_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// lateOpen is a source that says when it is being opened, and waits.
type lateOpen struct {
	*script[string]
	there, gate chan struct{}
}

func (s *lateOpen) Open(ctx context.Context, last *source.Plan) error {
	close(s.there)
	<-s.gate
	return s.script.Open(ctx, last)
}

// Report 19: a probe may ask from the first moment on, beside the start, and is never
// told too early that the context is ready. (What it reads of the run is written under
// a lock: the race detector sees it.)
func TestProbeBesideTheStart(t *testing.T) {
	for name, opts := range map[string][]dstream.ContextOption{
		"memory": nil, "checkpoint": {dstream.WithCheckpointStore(vfs.NewObjects())},
	} {
		t.Run(name, func(t *testing.T) {
			src := &lateOpen{newScript(1, []string{"a"}, []string{"b"}), make(chan struct{}), make(chan struct{})}
			r := newRig(t, time.Second, func(c ssc) error {
				dstream.Print(dstream.Window(dstream.From(c, "in", source.Source[string](src)), 2*time.Second, time.Second).Named("w"), 1)
				return nil
			}, opts...)
			asked, stop := make(chan struct{}, 1), make(chan struct{})
			var probes sync.WaitGroup
			probes.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_, _ = r.ssc.Healthy(), r.ssc.ReadyErr()
					_, _ = r.ssc.LastProgress()
					_ = r.ssc.Validate()
					select {
					case asked <- struct{}{}:
					default:
					}
				}
			})
			defer probes.Wait()
			var once sync.Once
			end := func() { once.Do(func() { close(stop) }) }
			defer end()
			<-asked
			started := make(chan error, 1)
			go func() { started <- r.ssc.Start() }()
			<-src.there
			require.ErrorIs(t, r.ssc.ReadyErr(), dstream.ErrNotReady)
			require.ErrorContains(t, r.ssc.Healthy(), "the sources are being opened")
			close(src.gate)
			require.NoError(t, <-started)
			require.NoError(t, r.ssc.ReadyErr())
			r.tick(2)
			end()
			require.NoError(t, r.ssc.Stop(t.Context()))
		})
	}
}
