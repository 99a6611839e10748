package dstream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// overState has the windows whose batches nobody could compute anew: over a MapWithState, plain and
// inverse.
func overState(ssc *dstream.StreamingContext) error {
	counts := dstream.MapWithState(wordsOf(ssc), counter().Timeout(3*time.Second))
	by := dstream.NumPartitions(1)
	dstream.Print(dstream.Window(counts, 3*time.Second, 2*time.Second).Named("window"), 0, dstream.Name("window out"))
	dstream.Print(dstream.ReduceByKeyAndWindowInverse(counts, add, subtract, nil, 3*time.Second, time.Second, by, dstream.Name("inverse")), 0, dstream.Name("inverse out"))
	return nil
}

var overStateInput = [][]string{{"a", "bb", "a"}, {"b"}, {}, {"bb"}}

func overStateOf(kit *milltest.Kit) map[string]any {
	return map[string]any{
		"window": milltest.Output[word](kit, "window out"), "inverse": milltest.Output[word](kit, "inverse out"),
		"counts": milltest.StateTimes[string, int](kit, "counts"), "sums": milltest.State[string, int](kit, "inverse"),
	}
}

// overStateAt is what a run gives that nothing happens to, with batches at these times.
func overStateAt(t *testing.T, times []int64) map[string]any {
	t.Helper()
	kit := milltest.New(t, time.Second, overState)
	milltest.Input[string](kit, "words").Batches(overStateInput...)
	require.NoError(t, kit.Start())
	for _, at := range times {
		kit.AdvanceTime(time.Unix(0, at).Sub(kit.Now()))
		kit.Await()
	}
	return overStateOf(kit)
}

// Report 13, CP1: wherever the process dies, in any call to the file system, windows over state are
// afterwards those of a run that nothing has happened to.
func TestWindowsCrashAtEveryCall(t *testing.T) {
	step := 1
	if invariants.Enabled || testing.Short() {
		step = 17
	}
	known := map[string]map[string]any{}
	want := func(kit *milltest.Kit) map[string]any {
		times := batchTimes(t, kit)
		key := fmt.Sprint(times)
		if known[key] == nil {
			known[key] = overStateAt(t, times)
		}
		return known[key]
	}
	for k := 1; ; k += step {
		var f vfs.Faults
		f.Fail(vfs.Rule{K: k, Dead: true, Forever: true})
		kit := milltest.New(t, time.Second, overState)
		kit.Checkpoint(dstream.SnapshotEvery(2), dstream.RetainSnapshots(20)) // so that all plans are kept
		kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
		milltest.Input[string](kit, "words").Batches(overStateInput...)
		kit.Tick(len(overStateInput))
		err := kit.Err()
		if f.Hits() == 0 {
			require.NoError(t, err)
			require.Equal(t, want(kit), overStateOf(kit))
			require.Greater(t, k, 100)
			return
		}
		kit.CrashKeeping(rand.New(rand.NewPCG(uint64(k), 2)), []int{0, 50, 100}[k%3])
		kit.WrapCheckpoint(nil)
		finish(kit, len(overStateInput))
		require.NoError(t, kit.Err(), "call %d; before: %v", k, err)
		require.Equal(t, want(kit), overStateOf(kit), "call %d: %v", k, err)
	}
}

// CP1: a window over MapWithState, killed in every batch while its output runs, which is when the
// epoch's deltas are written and its commit is not, and after every batch.
func TestWindowOverStateKilledAtEveryBatch(t *testing.T) {
	kit := milltest.New(t, time.Second, overState)
	kit.Checkpoint(dstream.SnapshotEvery(2), dstream.RetainSnapshots(20))
	milltest.Input[string](kit, "words").Batches(overStateInput...)
	rng := rand.New(rand.NewPCG(3, 3))
	for n := uint64(1); n <= uint64(len(overStateInput)); n++ {
		gate := kit.BlockOutput("inverse out")
		kit.Advance(1)
		gate.Entered()
		kit.CrashKeeping(rng, 50)
		gate.Release()
		require.NoError(t, kit.Start())
		kit.Await() // the batch is done again
		require.NoError(t, kit.Err())
		require.Equal(t, n, kit.Epoch())
		kit.CrashKeeping(rng, 50)
	}
	require.NoError(t, kit.Start())
	require.Equal(t, overStateAt(t, batchTimes(t, kit)), overStateOf(kit))
}
