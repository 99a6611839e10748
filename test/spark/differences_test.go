package spark

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/staterdd"
)

// What differs from Spark on purpose (docs/spark.md), each with what Statemill
// gives instead. Null batches and failing functions are asserted by the replay
// of recorded cases, batches that never overlap by the tests of dstream.

// counting is a job over the source "keys" with one running count, "op".
func counting(ssc *dstream.StreamingContext) error {
	keys := dstream.From(ssc, "keys", source.NewQueue[string](1))
	ones := dstream.MapPair(keys, func(k string) (string, int) { return k, 1 })
	dstream.Print(dstream.MapWithState(ones, dstream.Function(func(_ string, one opt, s *state) int { return add(one, s) }).Named("op")), 10)
	return nil
}

// G1: any number of contexts may be active in a process, each with state of its
// own. F6: none of them needs a checkpoint directory.
func TestSeveralActiveContexts(t *testing.T) {
	one, two := milltest.New(t, time.Second, counting), milltest.New(t, time.Second, counting)
	milltest.Input[string](one, "keys").Batch("a").Batch("a")
	milltest.Input[string](two, "keys").Batch("b")
	one.Tick(1)
	two.Tick(1)
	one.Tick(1)
	require.Equal(t, states{"a": 2}, milltest.State[string, int](one, "op"))
	require.Equal(t, states{"b": 1}, milltest.State[string, int](two, "op"))
}

// G1: a second start is an error, and the run goes on.
func TestSecondStart(t *testing.T) {
	kit := milltest.New(t, time.Second, counting)
	milltest.Input[string](kit, "keys").Batch("a").Batch("a")
	kit.Tick(1)
	require.ErrorIs(t, kit.Context().Start(), dstream.ErrStarted)
	kit.Tick(1)
	require.Equal(t, states{"a": 2}, milltest.State[string, int](kit, "op"))
	require.NoError(t, kit.Stop())
	require.ErrorIs(t, kit.Context().Start(), dstream.ErrStopped)
}

// G3: a failed batch ends the run: no later batch is made, and the state of the
// batch before is the newest readable one.
func TestFailedBatchEndsTheRun(t *testing.T) {
	boom := errors.New("boom")
	kit, in := stage(t, time.Second, dstream.FunctionErr(func(_ time.Time, k string, one opt, s *state) (int, bool, error) {
		if k == "bad" {
			return 0, false, boom
		}
		return add(one, s), true, nil
	}))
	in.Batch("a").Batch("a", "bad", "b").Batch("a")
	kit.Tick(3)
	require.ErrorIs(t, kit.Err(), boom)
	require.True(t, kit.Ended())
	require.Len(t, kit.Progress(), 1)
	require.Equal(t, states{"a": 1}, milltest.State[string, int](kit, "op"))
}

// G7: a failed output fails its batch although a later one would succeed: it is
// not lost in silence.
func TestEarlierFailedOutputIsNotLost(t *testing.T) {
	boom := errors.New("boom")
	later := 0
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		keys := dstream.From(ssc, "keys", source.NewQueue[string](1))
		dstream.Print(keys, 1, dstream.Name("first"))
		dstream.Foreach(keys, func(context.Context, dstream.Batch, string) error { later++; return nil }, dstream.Name("second"))
		return nil
	})
	milltest.Input[string](kit, "keys").Batch("a").Batch("b")
	kit.Tick(1)
	kit.FailOutput("first", 1, boom)
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), boom)
	require.ErrorContains(t, kit.Err(), "first")
	require.Len(t, kit.Progress(), 1)
	require.Equal(t, 1, later, "outputs run in the order of their registration: the second one has not run in batch 2")
}

// B4: Spark takes any timeout; here one that is not more than 0 is an error at
// start.
func TestTimeoutMustBePositive(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Nanosecond, -time.Hour} {
		kit, _ := stage(t, time.Second, dstream.Function(func(_ string, one opt, s *state) int { return add(one, s) }).Timeout(d))
		err := kit.Start()
		require.ErrorIs(t, err, dstream.ErrInvalid)
		require.ErrorIs(t, err, staterdd.ErrTimeout)
		require.ErrorContains(t, err, d.String())
	}
}

// J4: a limit that comes to 0 records is no limit in Spark; here it is refused,
// and one record a batch is one record a batch. report 36
func TestLimitIsNeverNone(t *testing.T) {
	kit := milltest.New(t, time.Second, counting, dstream.WithMaxRatePerPartition(0.5))
	require.ErrorContains(t, kit.Start(), "less than one record per interval")
	kit = milltest.New(t, time.Second, counting, dstream.WithMaxRatePerPartition(1))
	milltest.Input[string](kit, "keys").Backlog(0, "a", "a", "a")
	kit.Tick(1)
	require.EqualValues(t, 1, kit.Progress()[0].InputRows)
	kit.Tick(1)
	require.Equal(t, states{"a": 2}, milltest.State[string, int](kit, "op"))
}

// E9, E10: Spark shortens a chain of deltas only when it writes a checkpoint;
// here a chain that is due is shortened as versions are made, and Export gives
// own entries and one flat base without changing the map.
func TestChainsAreShortWithoutCheckpoints(t *testing.T) {
	m, err := statemap.New[string, int](statemap.Options[string]{DeltaChainThreshold: 3})
	require.NoError(t, err)
	require.NoError(t, m.Put("a", 0, 1))
	first := m
	for i := 1; i <= 20; i++ {
		m, err = m.Copy()
		require.NoError(t, err)
		require.NoError(t, m.Put("a", i, int64(i+1)))
		require.LessOrEqual(t, first.DeltaChainLength(), 3)
	}
	d, err := m.Export()
	require.NoError(t, err)
	require.Len(t, d.Base, 1)
	require.Len(t, d.Own, 1)
	v, ok, err := first.Get("a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Zero(t, v)
}
