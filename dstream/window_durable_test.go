package dstream_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/partitioner"
)

// windows has every kind of window over one input, and over state.
func windows(length, slide time.Duration, filtered bool) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := wordsOf(ssc)
		by := dstream.NumPartitions(2)
		values := dstream.Map(in, func(p word) string { return p.Key })
		dstream.Print(dstream.Window(in, length, slide).Named("window"), 0, dstream.Name("window out"))
		dstream.Print(dstream.ReduceByWindow(values, func(a, b string) string { return a + b }, length, slide).Named("reduce"), 0, dstream.Name("reduce out"))
		dstream.Print(dstream.GroupByKeyAndWindow(in, length, slide, by, dstream.Name("group")), 0, dstream.Name("group out"))
		dstream.Print(dstream.ReduceByKeyAndWindow(in, add, length, slide, by, dstream.Name("byKey")), 0, dstream.Name("byKey out"))
		dstream.Print(dstream.CountByWindow(in, length, slide).Named("count"), 0, dstream.Name("count out"))
		lengths := dstream.Map(in, func(p word) int { return len(p.Key) })
		dstream.Print(dstream.ReduceByWindowInverse(lengths, add, subtract, length, slide).Named("sum"), 0, dstream.Name("sum out"))
		dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, length, slide, by, dstream.Name("inverse")), 0, dstream.Name("inverse out"))
		if filtered {
			dstream.Print(dstream.CountByValueAndWindow(values, length, slide, dstream.Name("values")), 0, dstream.Name("values out"))
		}
		counts := dstream.MapWithState(in, counter().Timeout(3*time.Second))
		dstream.Print(dstream.Window(counts, length, slide).Named("of state"), 0, dstream.Name("of state out"))
		inner := dstream.Window(counts.StateSnapshots(), 2*time.Second, time.Second).Named("inner")
		dstream.Print(dstream.ReduceByKeyAndWindow(dstream.Window(inner, 3*time.Second, 2*time.Second).Named("outer"), add, 4*time.Second, 2*time.Second, dstream.Name("outermost")), 0, dstream.Name("nested out"))
		return nil
	}
}

// windowsOut is all that outputs have seen, in order where it is promised.
func windowsOut(kit *milltest.Kit, filtered bool) map[string]any {
	out := map[string]any{
		"reduce": milltest.Output[string](kit, "reduce out"),
		"group":  milltest.Output[dstream.Pair[string, []int]](kit, "group out"),
		"count":  milltest.Output[int64](kit, "count out"),
		"sum":    milltest.Output[int](kit, "sum out"),
	}
	for _, name := range []string{"window", "byKey", "inverse", "of state"} {
		out[name] = milltest.Output[word](kit, name+" out")
	}
	if filtered {
		out["values"] = milltest.Output[dstream.Pair[string, int64]](kit, "values out")
	}
	nested := milltest.Output[word](kit, "nested out") // of snapshots, which are in no order
	for _, b := range nested {
		slices.SortFunc(b, func(a, b word) int { return cmpWords(a, b) })
	}
	out["nested"] = nested
	return out
}

func cmpWords(a, b word) int { return slices.Compare([]byte(a.Key), []byte(b.Key)) }

// CP1: whenever runs stop or crash, after every batch too, and however long nothing runs, all
// windows are those of a run that nothing has happened to.
func TestWindowsSurvive(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 10))
		slide := 1 + rng.IntN(4)
		length := 1 + rng.IntN(6)
		filtered := slide <= length
		always := seed%4 == 0 // killed at every batch
		job := windows(time.Duration(length)*time.Second, time.Duration(slide)*time.Second, filtered)
		kit := milltest.New(t, time.Second, job, dstream.WithParallelism(2))
		kit.Checkpoint(dstream.SnapshotEvery(1+rng.IntN(5)), dstream.RetainSnapshots(1+rng.IntN(3)))
		in := milltest.Input[string](kit, "words").Partitions(2)
		whole := milltest.New(t, time.Second, job, dstream.WithParallelism(2))
		same := milltest.Input[string](whole, "words").Partitions(2)
		require.NoError(t, whole.Start())
		require.NoError(t, kit.Start()) // now: where the slides' grid begins
		for range 14 {
			var batch []string
			for range rng.IntN(4) {
				batch = append(batch, []string{"a", "b", "cc", "dd", "e"}[rng.IntN(5)])
			}
			in.Batch(batch...)
			same.Batch(batch...)
			switch what := rng.IntN(4); {
			case always, what == 1:
				kit.CrashKeeping(rng, 50)
			case what == 0:
				kit.Restart()
				if down := rng.IntN(5); down > 0 {
					kit.StartAt(kit.Now().Add(time.Duration(down) * time.Second))
				}
			}
			kit.Tick(1)
			require.NoError(t, kit.Err(), "seed %d", seed)
			whole.AdvanceTime(kit.Now().Sub(whole.Now()))
			whole.Await()
		}
		require.NoError(t, whole.Err())
		want, got := windowsOut(whole, filtered), windowsOut(kit, filtered)
		for name := range want {
			require.Equal(t, want[name], got[name], "seed %d: %s of %d s every %d s", seed, name, length, slide)
		}
	}
}

// A window's cost on disk is that of its batches, and of what moves: the results that stay as
// they are are not written again.
func TestWindowsCostWhatChanges(t *testing.T) {
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		w := dstream.ReduceByKeyAndWindowInverse(wordsOf(ssc), add, subtract, nil, 60*time.Second, time.Second, dstream.Name("w"))
		dstream.Print(w, 1, dstream.Name("out"))
		return nil
	}, dstream.WithParallelism(1))
	kit.Checkpoint()
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprint("word", i))
	}
	milltest.Input[string](kit, "words").Batches(all, []string{"word7"}, nil)
	kit.Tick(2)
	kit.Crash()
	kit.Tick(1)
	require.NoError(t, kit.Err())
	p := kit.Progress()
	require.Less(t, 10*p[1].Checkpoint.DeltaBytes, p[0].Checkpoint.DeltaBytes)
	require.Len(t, milltest.Output[word](kit, "out")[2], 500)
	require.Equal(t, 2, milltest.State[string, int](kit, "w")["word7"])
	for _, op := range p[2].Operators {
		require.Contains(t, []string{"w", "w batches"}, op.Name)
		require.LessOrEqual(t, op.Changed, int64(1))
	}
}

// The log of a window holds no more than what windows still read.
func TestWindowLogsAreCleared(t *testing.T) {
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.Window(wordsOf(ssc), 3*time.Second, 2*time.Second).Named("w"), 1, dstream.Name("out"))
		return nil
	}, dstream.WithParallelism(1))
	kit.Checkpoint()
	milltest.Input[string](kit, "words").Batches(make([][]string, 20)...)
	kit.Tick(20)
	require.NoError(t, kit.Err())
	p := kit.Progress()
	require.EqualValues(t, 5, p[19].Operators[0].Keys, "a batch each, of length and slide")
}

// Between two runs the program may lay its records out anew.
func TestWindowsAreLaidOutAnew(t *testing.T) {
	job := func(p dstream.Partitioner[string]) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			in := wordsOf(ssc)
			dstream.Print(dstream.ReduceByKeyAndWindow(in, add, 3*time.Second, time.Second, dstream.PartitionedBy(p), dstream.Name("w")), 0, dstream.Name("out"))
			dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, 3*time.Second, time.Second, dstream.PartitionedBy(p), dstream.Name("i")), 0, dstream.Name("i out"))
			return nil
		}
	}
	kit := milltest.New(t, time.Second, job(partitioner.Hash[string](2)))
	kit.Checkpoint()
	milltest.Input[string](kit, "words").Batches([]string{"a", "b"}, []string{"a", "c"}, []string{"b"}, nil, nil)
	kit.Tick(2)
	kit.Restart()
	kit.Job(job(partitioner.Hash[string](5)), dstream.WithRescale())
	kit.Tick(3)
	require.NoError(t, kit.Err())
	for name, want := range map[string][]string{
		"out":   {"a1 b1", "a2 b1 c1", "a2 b2 c1", "a1 b1 c1", "b1"},
		"i out": {"a1 b1", "a2 b1 c1", "a2 b2 c1", "a1 b1 c1", "a0 b1 c0"},
	} {
		all := milltest.Output[word](kit, name)
		require.Equal(t, want, show(append(all[:2:2], all[len(all)-3:]...)), name)
	}
}

// A window needs a name, by which its batches are found again, and records that can be stored.
func TestWindowsOnACheckpoint(t *testing.T) {
	for want, job := range map[string]func(c ssc){
		"dstream.Window: the window has no name, and a checkpoint is set": func(c ssc) { dstream.Print(dstream.Window(numbers(c), sec, sec), 1) },
		"dstream.CountByWindow: the window has no name":                   func(c ssc) { dstream.Print(dstream.CountByWindow(numbers(c), sec, sec), 1) },
		"dstream.Window: state cannot be stored": func(c ssc) {
			fs := dstream.Map(numbers(c), func(int) func() { return nil })
			dstream.Print(dstream.Window(fs, sec, sec).Named("w"), 1)
		},
		"two stateful operators are named \"w batches\"": func(c ssc) {
			dstream.Print(dstream.Window(numbers(c), sec, sec).Named("w"), 1, dstream.Name("1"))
			dstream.Print(dstream.Window(numbers2(c), sec, sec).Named("w"), 1, dstream.Name("2"))
		},
	} {
		t.Run(want, func(t *testing.T) {
			c := dstream.New(sec, dstream.WithCheckpoint(t.TempDir()))
			job(c)
			require.ErrorContains(t, c.Validate(), want)
			require.Empty(t, c.Notes())
		})
	}
}
