package exactlyonce

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/oracle"
	"github.com/statemill/statemill/source"
)

// probed is a source whose input some programs do not find.
type probed struct {
	*oracle.Script[string]
	err  error
	last **source.Plan // it was asked with
}

func (p probed) Probe(_ context.Context, last *source.Plan) error {
	*p.last = last
	return p.err
}

func (p probed) Open(ctx context.Context, last *source.Plan) error {
	return errors.Join(p.err, p.Script.Open(ctx, last))
}

// P1, CE17: a start that fails because its input is not there takes nothing from the run that is at
// work on a store without locks; one that finds it takes over.
func TestFailingStartHarmsNobody(t *testing.T) {
	w := newWorld(t, "a", false)
	missing, asked := error(nil), (*source.Plan)(nil)
	w.other = func(l *life, tag string) {
		words := dstream.From(l.ssc, "words", source.Source[string](probed{w.script(), missing, &asked}))
		dstream.ForeachRDD(words, func(context.Context, dstream.Batch, *dstream.RDD[string]) error { return nil })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	healthy := w.life(nil)
	require.NoError(t, healthy.ssc.Start())
	require.Nil(t, asked)
	tick := func() error {
		healthy.clock.Advance(time.Second)
		return healthy.h.WaitTick(ctx, healthy.clock.Now())
	}
	require.NoError(t, tick())

	missing = errors.New("the topic does not exist")
	failing := w.life(nil)
	err := failing.ssc.Start()
	require.ErrorIs(t, err, missing)
	var read *dstream.ReadError
	require.ErrorAs(t, err, &read)
	require.Equal(t, "words", read.Source)
	require.NotNil(t, asked)
	require.Len(t, asked.Ranges, 2, "it is asked after the newest plan")
	require.NoError(t, tick(), "the healthy run goes on")

	missing = nil
	w.later()
	require.NoError(t, w.life(nil).runTo(3))
	require.Error(t, tick(), "now it is overtaken")
	require.True(t, stopped(healthy.ssc.Stop(ctx)))
}
