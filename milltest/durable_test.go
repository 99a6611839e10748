package milltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// counting counts words, and times keys out after the given time.
func counting(idle time.Duration) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		words := dstream.QueueNamed[string](ssc, "words", 1)
		ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
		spec := dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[int]) dstream.Pair[string, int] {
			if s.IsTimingOut() {
				return dstream.KV(w, -s.Get())
			}
			s.Update(s.OrElse(0) + one.OrElse(0))
			return dstream.KV(w, s.Get())
		}).Named("counts").NumPartitions(2)
		if idle > 0 {
			spec = spec.Timeout(idle)
		}
		dstream.Print(dstream.MapWithState(ones, spec), 10, dstream.Name("out"))
		return nil
	}
}

type total = dstream.Pair[string, int]

func TestRestartGoesOn(t *testing.T) {
	kit := milltest.New(t, time.Second, counting(0))
	kit.Checkpoint()
	in := milltest.Input[string](kit, "words")
	in.Batch("a", "b", "a")
	kit.Tick(1)
	kit.Restart()
	in.Batch("a")
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 3, "b": 1}, milltest.State[string, int](kit, "counts"))
	require.Equal(t, [][]total{{{Key: "b", Value: 1}, {Key: "a", Value: 1}, {Key: "a", Value: 2}}, {{Key: "a", Value: 3}}}, milltest.Output[total](kit, "out"))
	kit.Crash()
	in.Batch("b")
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 3, "b": 2}, milltest.State[string, int](kit, "counts"))
}

// A run that dies between making a plan and writing it down has planned nothing:
// the next run gets the same batch, whatever was queued behind it.
func TestALostPlanIsGivenAgain(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, counting(0))
	kit.Checkpoint()
	in := milltest.Input[string](kit, "words")
	in.Batch("a").Batch("b").Empty(1).Batch("c")
	kit.Tick(1)
	kit.Restart()
	var f vfs.Faults
	f.Fail(vfs.Rule{Path: "offsets/2", Kinds: vfs.KindLink, Dead: true, Forever: true})
	kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), vfs.ErrInjected)
	require.Equal(t, 2, in.Pending())
	kit.Crash()
	kit.WrapCheckpoint(nil)
	kit.Tick(3)
	require.Equal(t, [][]total{{{Key: "a", Value: 1}}, {{Key: "b", Value: 1}}, {}, {{Key: "c", Value: 1}}}, milltest.Output[total](kit, "out"))
	require.Zero(t, in.Pending())
}

// What a run does after its crash, nobody sees: no output, no file. Its epoch,
// which was planned, is redone without a tick.
func TestACrashInMidBatch(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, counting(0))
	kit.Checkpoint()
	in := milltest.Input[string](kit, "words")
	in.Batch("a").Batch("b")
	kit.Tick(1)
	gate := kit.BlockOutput("out")
	kit.Advance(1)
	gate.Entered()
	kit.Crash()
	require.NoError(t, kit.Err())
	gate.Release()
	require.NoError(t, kit.Start())
	require.True(t, kit.Await())
	require.Equal(t, uint64(2), kit.Epoch())
	require.Equal(t, [][]total{{{Key: "a", Value: 1}}, {{Key: "b", Value: 1}}}, milltest.Output[total](kit, "out"))
	p := kit.Progress()
	require.True(t, p[len(p)-1].Redo)
	require.Equal(t, kit.Now(), p[len(p)-1].Batch.Time, "its own batch time")
}

// Time passes while nothing runs; the clock does not go back.
func TestTimePassesWhileDown(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, counting(5*time.Second))
	kit.Checkpoint()
	in := milltest.Input[string](kit, "words")
	in.Batch("a")
	kit.Tick(1)
	kit.Restart()
	kit.StartAt(time.Unix(100, 0))
	kit.Tick(1)
	require.Equal(t, time.Unix(101, 0).UTC(), kit.Now())
	require.Equal(t, [][]total{{{Key: "a", Value: 1}}, {{Key: "a", Value: -1}}}, milltest.Output[total](kit, "out"))
}

// Another version of the job may have other outputs; what older ones wrote stays.
func TestAnotherJob(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, counting(0))
	kit.Checkpoint()
	kit.Workers(2)
	kit.BlockSize(3)
	milltest.Input[string](kit, "words").Batch("a").Batch("a")
	kit.Tick(1)
	kit.Restart()
	kit.Job(func(ssc *dstream.StreamingContext) error {
		ones := dstream.MapPair(dstream.QueueNamed[string](ssc, "words", 1), func(w string) (string, int) { return w, 1 })
		dstream.Print(dstream.MapWithState(ones, dstream.Function(func(w string, _ dstream.Option[int], s *dstream.State[int]) string {
			s.Update(s.OrElse(0) + 10)
			return w
		}).Named("counts")), 10, dstream.Name("other"))
		return nil
	})
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 11}, milltest.State[string, int](kit, "counts"))
	require.Equal(t, [][]string{nil, {"a"}}, milltest.Output[string](kit, "other"))
	require.Equal(t, [][]total{{{Key: "a", Value: 1}}, nil}, milltest.Output[total](kit, "out"))
}

// Exactly-once sinks are captured and left alone, with and without a checkpoint.
func TestSinksAreCaptured(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		out := vfs.NewObjects()
		kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
			dstream.Output(dstream.QueueNamed[string](ssc, "words", 1), "lines", sink.Lines(sink.NewFiles("files", out),
				func(dst []byte, w string) ([]byte, error) { return append(dst, w...), nil }))
			return nil
		})
		if durable {
			kit.Checkpoint()
		}
		milltest.Input[string](kit, "words").Batch("a", "b")
		kit.Tick(1)
		require.Equal(t, [][]string{{"a", "b"}}, milltest.Output[string](kit, "lines"))
		list, err := out.List(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, list)
	}
}

func TestRestartNeedsACheckpoint(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*milltest.Kit){
		"Restart": (*milltest.Kit).Restart, "Crash": (*milltest.Kit).Crash,
	} {
		require.Contains(t, fatal(t, func(tb testing.TB) {
			kit := milltest.New(tb, time.Second, wordCount)
			milltest.Input[string](kit, "lines")
			kit.Tick(1)
			do(kit)
		}), name+" of a job without a checkpoint")
	}
	require.Contains(t, fatal(t, func(tb testing.TB) {
		kit := milltest.New(tb, time.Second, wordCount)
		kit.Checkpoint()
		milltest.Input[string](kit, "lines").FailPlans(1000, errors.New("no broker"))
		kit.Tick(1)
		kit.Restart()
	}), "no broker")
}
