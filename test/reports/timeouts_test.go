package reports

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

type pair = dstream.Pair[string, int]

// stateful is a kit on a job of one operator "op" with one output "out".
func stateful[M any](t *testing.T, spec dstream.StateSpec[string, int, int, M], opts ...dstream.ContextOption) (*milltest.Kit, *milltest.In[pair]) {
	t.Helper()
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "in", source.NewQueue[pair](1))
		dstream.Print(dstream.MapWithState(in, spec.Named("op").NumPartitions(2)), 10, dstream.Name("out"))
		return nil
	}, opts...)
	return kit, milltest.Input[pair](kit, "in")
}

// calls is a function that stores the last value and emits how it was called.
func calls(batch time.Time, key string, v dstream.Option[int], s *dstream.State[int]) (string, bool) {
	if s.IsTimingOut() {
		return fmt.Sprintf("%d s: timeout(%s, state=%d)", batch.Unix(), key, s.Get()), true
	}
	n, _ := v.Get()
	text := fmt.Sprintf("%d s: f(%s, %d, state=%d)", batch.Unix(), key, n, s.OrElse(0))
	s.Update(n)
	return text, true
}

// flat gives the outputs of all batches one after the other.
func flat(kit *milltest.Kit) (all []string) {
	for _, batch := range milltest.Output[string](kit, "out") {
		all = append(all, batch...)
	}
	return all
}

// report 1: a key that just got data is not timed out in the same batch.
func TestDataComesBeforeTimeouts(t *testing.T) {
	t.Parallel()
	kit, in := stateful(t, dstream.FunctionTime(calls).Timeout(5*time.Second))
	in.Batch(dstream.KV("a", 1)).Empty(5).Batch(dstream.KV("a", 2)) // T0 = 1 s, and T0+6 s

	kit.Tick(7)
	assert.Equal(t, []string{"1 s: f(a, 1, state=0)", "7 s: f(a, 2, state=1)"}, flat(kit))
	assert.Equal(t, map[string]int{"a": 2}, milltest.State[string, int](kit, "op"))

	kit.Tick(5) // up to T0+11 s: exactly the timeout, which is not yet over it
	assert.Len(t, flat(kit), 2)
	kit.Tick(1)
	assert.Equal(t, "13 s: timeout(a, state=2)", flat(kit)[2])
	kit.Tick(10)
	assert.Len(t, flat(kit), 3, "once only")
	assert.Empty(t, milltest.State[string, int](kit, "op"))
}

// report 2: timeouts come though the stream is quiet, at most one interval late,
// whatever the checkpoint interval.
func TestTimeoutsOfAQuietStream(t *testing.T) {
	t.Parallel()
	for _, batches := range []int{1, 10, 100} {
		kit, in := stateful(t, dstream.FunctionTime(calls).Timeout(3*time.Second).
			CheckpointInterval(time.Duration(batches)*time.Second))
		in.Batch(dstream.KV("a", 1)) // T0 = 1 s
		kit.Tick(30)
		// The deadline is T0+3 s; strictly after it is T0+4 s.
		assert.Equal(t, []string{"1 s: f(a, 1, state=0)", "5 s: timeout(a, state=1)"}, flat(kit), "checkpoint every %d batches", batches)
		p := kit.Progress()
		assert.Zero(t, p[4].InputRows, "the batch of the timeout has no input")
		assert.EqualValues(t, 1, p[4].Operators[0].TimedOut)
	}
}

// report 3: a timeout is set, and the function never sets state.
func TestTimeoutWithoutState(t *testing.T) {
	t.Parallel()
	timeouts := 0
	kit, in := stateful(t, dstream.FunctionTime(func(_ time.Time, _ string, _ dstream.Option[int], s *dstream.State[int]) (int, bool) {
		if s.IsTimingOut() {
			timeouts++
		}
		return s.OrElse(-1), true
	}).Timeout(time.Second), dstream.WithParallelism(1))
	in.Batch(dstream.KV("a", 1), dstream.KV("b", 2))
	kit.Tick(11)
	require.NoError(t, kit.Err())
	assert.Equal(t, []int{-1, -1}, milltest.Output[int](kit, "out")[0])
	assert.Empty(t, milltest.State[string, int](kit, "op"))
	assert.Zero(t, timeouts)
	op := kit.Progress()[0].Operators[0]
	assert.Zero(t, op.Changed+op.Removed, "the delta of the batch is empty")
	assert.Zero(t, op.Keys)
	assert.EqualValues(t, 2, op.Calls)
}
