package dstream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

type word = dstream.Pair[string, int]

// twoStates has two stateful operators, one behind the other: counts with a
// timeout, and the greatest count of each word's length, with a deadline.
func twoStates(ssc *dstream.StreamingContext) error {
	ones := dstream.MapPair(dstream.QueueNamed[string](ssc, "words", 1), func(w string) (string, int) { return w, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[int]) word {
		if s.IsTimingOut() {
			return dstream.KV(w, -s.Get())
		}
		s.Update(s.OrElse(0) + one.OrElse(0))
		return dstream.KV(w, s.Get())
	}).Named("counts").Timeout(3*time.Second).NumPartitions(2))
	lengths := dstream.MapPair(counts, func(p word) (int, int) { return len(p.Key), p.Value })
	best := dstream.Keyed(lengths, "best", func(c *dstream.Call[int, string], n int, v dstream.Option[int]) error {
		if got, ok := v.Get(); ok {
			if got > c.State.OrElse(0) {
				c.State.Update(got)
				c.SetDeadline(c.Batch.Time.Add(4 * time.Second))
			}
			return nil
		}
		c.Emit(fmt.Sprint("best of ", n, " was ", c.State.Get(), " at ", c.Batch.Time.Unix()))
		return nil
	}, dstream.NumPartitions(2))
	dstream.Print(counts, 10, dstream.Name("counts out"))
	dstream.Print(best, 10, dstream.Name("best out"))
	return nil
}

var twoStatesInput = [][]string{{"a", "bb", "a"}, {"b", "cc", "a"}, {}, {"dd", "dd"}, {}, {}, {"a"}}

// twoStatesResult is all that the outside can see.
type twoStatesResult struct {
	Counts, Best any
	State        any
	Deadlines    any
}

func twoStatesOf(kit *milltest.Kit) twoStatesResult {
	return twoStatesResult{
		Counts: milltest.Output[word](kit, "counts out"), Best: milltest.Output[string](kit, "best out"),
		State: milltest.StateTimes[string, int](kit, "counts"), Deadlines: milltest.StateTimes[int, int](kit, "best"),
	}
}

// uninterrupted runs the whole input in memory, at the given batch times: where
// nothing ran at a tick, there was no batch.
func uninterrupted(t *testing.T, times []int64) twoStatesResult {
	t.Helper()
	kit := milltest.New(t, time.Second, twoStates)
	milltest.Input[string](kit, "words").Batches(twoStatesInput...)
	require.NoError(t, kit.Start())
	for _, at := range times {
		kit.AdvanceTime(time.Unix(0, at).Sub(kit.Now()))
		kit.Await()
	}
	return twoStatesOf(kit)
}

// batchTimes reads the batch times of the epochs from their plans.
func batchTimes(t *testing.T, kit *milltest.Kit) (times []int64) {
	t.Helper()
	root := checkpoint.OpenRoot(kit.CheckpointStore("reader"))
	for n := uint64(1); n <= kit.Epoch(); n++ {
		p, err := root.Plan(t.Context(), n)
		require.NoError(t, err)
		times = append(times, p.Time)
	}
	return times
}

// finish runs what is left of the input.
func finish(kit *milltest.Kit, epochs int) {
	for i := 0; i < 2*epochs && !kit.Ended() && kit.Epoch() < uint64(epochs); i++ {
		kit.Tick(1)
	}
}

// everyCall is the step of loops over all calls: the race detector is slow.
func everyCall() int {
	if invariants.Enabled || testing.Short() {
		return 11
	}
	return 1
}

// Report 13, 31: wherever the process dies, in any call to the file system and in
// the middle of a write, with any part of what was not synced lost, the next run
// ends up with the outputs and the state of a run that nothing has happened to.
func TestCrashAtEveryCall(t *testing.T) {
	n := len(twoStatesInput)
	known := map[string]twoStatesResult{}
	want := func(kit *milltest.Kit) twoStatesResult {
		times := batchTimes(t, kit)
		key := fmt.Sprint(times)
		if _, ok := known[key]; !ok {
			known[key] = uninterrupted(t, times)
		}
		return known[key]
	}
	for k := 1; ; k += everyCall() {
		var f vfs.Faults
		f.Fail(vfs.Rule{K: k, Dead: true, Forever: true})
		kit := milltest.New(t, time.Second, twoStates)
		kit.Checkpoint(dstream.SnapshotEvery(3), dstream.RetainSnapshots(20)) // so that all plans are kept
		kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
		milltest.Input[string](kit, "words").Batches(twoStatesInput...)
		kit.Tick(n)
		err := kit.Err()
		if f.Hits() == 0 {
			require.NoError(t, err)
			require.Equal(t, want(kit), twoStatesOf(kit))
			t.Logf("%d calls", k-1)
			require.Greater(t, k, 200)
			return
		}
		kit.CrashKeeping(rand.New(rand.NewPCG(uint64(k), 1)), []int{0, 50, 100}[k%3])
		kit.WrapCheckpoint(nil)
		finish(kit, n)
		require.NoError(t, kit.Err(), "call %d; before: %v", k, err)
		require.Equal(t, want(kit), twoStatesOf(kit), "call %d: %v", k, err)
	}
}
