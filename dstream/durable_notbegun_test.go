package dstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// slowPlan is a source whose second plan waits until it is given up.
type slowPlan struct {
	*source.Queue[int]
	plans int
	asked context.CancelFunc
}

func (s *slowPlan) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	if s.plans++; s.plans == 1 {
		return s.Queue.Plan(ctx, l)
	}
	s.asked()
	<-ctx.Done()
	return source.Plan{}, ctx.Err()
}

// A stop that comes before the batch is planned is a clean one, with a checkpoint too.
func TestStopBeforeThePlanIsClean(t *testing.T) {
	store, err := vfs.NewDir(vfs.NewMem(), "/ckpt", "run")
	require.NoError(t, err)
	for name, opts := range map[string][]dstream.ContextOption{"memory": nil, "checkpoint": {dstream.WithCheckpointStore(store)}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			in := &slowPlan{Queue: source.NewQueue[int](1), asked: cancel}
			require.NoError(t, dstream.Run(ctx, time.Millisecond, func(ssc *dstream.StreamingContext) error {
				dstream.Print(dstream.From(ssc, "in", source.Source[int](in)), 1)
				return nil
			}, opts...))
			require.Equal(t, 2, in.plans)
		})
	}
}
