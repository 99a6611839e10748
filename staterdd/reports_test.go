package staterdd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

const second = int64(time.Second)

// report 1: data first, expiry after.
func TestDataBeforeTimeout(t *testing.T) {
	var calls []ruleCall
	f := start(t, ruleSpec(&calls).Timeout(5*time.Second), Options{Slide: time.Second}, 100*second)
	f.batch(100*second, kv("a", upsert))
	calls = nil
	f.batch(106*second, kv("a", upsert))
	require.Equal(t, []ruleCall{{"a", true, 0, false}}, calls)
	require.Equal(t, map[string]st[int]{"a": {1, 106 * second}}, timesOf(t, f.cur))
	calls = nil
	for s := int64(107); s <= 111; s++ {
		f.batch(s * second)
		require.Empty(t, calls)
	}
	require.Equal(t, []string{"timed out 1"}, f.batch(112*second))
	require.Equal(t, []ruleCall{{"a", false, 1, true}}, calls)
}

// report 2: timeouts come when the stream is quiet, at the same time whatever the checkpoint
// interval; only AtCheckpoint waits for it (C9).
func TestTimeoutsOfAQuietStream(t *testing.T) {
	fired := func(spec Spec[string, int, int, string]) (at []int64) {
		f := start(t, spec.Timeout(3*time.Second), Options{Slide: time.Second}, 101*second)
		f.batch(101*second, kv("a", upsert))
		for s := int64(102); s < 230; s++ {
			for range f.batch(s * second) {
				at = append(at, s)
			}
		}
		return at
	}
	var calls []ruleCall
	for _, interval := range []time.Duration{1, 10, 100} {
		require.Equal(t, []int64{105}, fired(ruleSpec(&calls).CheckpointInterval(interval*time.Second)))
	}
	require.Equal(t, []int64{110}, fired(ruleSpec(&calls).TimeoutScan(AtCheckpoint)), "10 slides by default")
	require.Equal(t, []int64{200}, fired(ruleSpec(&calls).TimeoutScan(AtCheckpoint).CheckpointInterval(100*time.Second)))
	require.Equal(t, []int64{105}, fired(ruleSpec(&calls).TimeoutScan(AtCheckpoint).CheckpointInterval(time.Second)))
}

// A multiple that lies between two batches counts, also when ticks were skipped.
func TestCheckpointBetweenBatches(t *testing.T) {
	var calls []ruleCall
	f := start(t, ruleSpec(&calls).Timeout(time.Second).TimeoutScan(AtCheckpoint), Options{Slide: time.Second}, 101*second)
	f.batch(101*second, kv("a", upsert))
	require.Empty(t, f.batch(109*second))
	require.Len(t, f.batch(111*second), 1)
}

// report 3: a timeout, and a function that never sets state.
func TestTimeoutWithoutState(t *testing.T) {
	f := start(t, Function(func(k string, v rdd.Option[int], s *State[int]) int {
		require.False(t, s.IsTimingOut())
		return s.OrElse(0)
	}).Timeout(time.Second), Options{Parallelism: 2, Slide: time.Second}, 0)
	f.batch(second, kv("a", 1), kv("b", 2))
	require.Empty(t, timesOf(t, f.cur))
	for _, r := range f.cur.Records() {
		require.Zero(t, r.StateMap.DeltaLen())
	}
	for s := int64(2); s < 12; s++ {
		require.Empty(t, f.batch(s*second))
	}
}
