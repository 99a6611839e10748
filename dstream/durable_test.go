package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

// counter is a spec that counts; the call for an idle key gives the negative count.
func counter() dstream.StateSpec[string, int, int, word] {
	return dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[int]) word {
		if s.IsTimingOut() {
			return dstream.KV(w, -s.Get())
		}
		s.Update(s.OrElse(0) + one.OrElse(0))
		return dstream.KV(w, s.Get())
	}).Named("counts")
}

func wordsOf(ssc *dstream.StreamingContext) *dstream.DStream[word] {
	return dstream.MapPair(dstream.QueueNamed[string](ssc, "words", 1), func(w string) (string, int) { return w, 1 })
}

// counts is the job of a counter.
func counts(spec dstream.StateSpec[string, int, int, word]) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.MapWithState(wordsOf(ssc), spec), 10, dstream.Name("out"))
		return nil
	}
}

// durable makes a kit on a checkpoint in memory.
func durableKit(t *testing.T, job dstream.Job, opts ...dstream.ContextOption) (*milltest.Kit, *milltest.In[string]) {
	t.Helper()
	kit := milltest.New(t, time.Second, job, opts...)
	kit.Checkpoint()
	return kit, milltest.Input[string](kit, "words")
}

func stateNow(kit *milltest.Kit) map[string]int { return milltest.State[string, int](kit, "counts") }

// files reads every file of the checkpoint, but for the lock.
func files(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		list, err := fs.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range list {
			name := filepath.Join(dir, f.Name)
			switch {
			case f.Dir:
				walk(name)
			case f.Name != checkpoint.LockName:
				b, err := vfs.ReadFile(fs, name)
				require.NoError(t, err)
				out[strings.TrimPrefix(filepath.ToSlash(name), "checkpoint/")] = string(b)
			}
		}
	}
	walk("checkpoint")
	return out
}

// CP1, MW8: whenever runs stop or crash between batches, however long nothing
// runs, outputs and state are those of a run that nothing happened to.
func TestStopsAndCrashesDoNotShow(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		kit := milltest.New(t, time.Second, twoStates)
		kit.Checkpoint(dstream.SnapshotEvery(1+rng.IntN(5)), dstream.RetainSnapshots(1+rng.IntN(3)),
			dstream.Compress(dstream.Compression(rng.IntN(3))))
		in := milltest.Input[string](kit, "words")
		whole := milltest.New(t, time.Second, twoStates)
		same := milltest.Input[string](whole, "words")
		require.NoError(t, whole.Start())
		for range 20 {
			var batch []string
			for range rng.IntN(4) {
				batch = append(batch, []string{"a", "b", "cc", "dd", "e"}[rng.IntN(5)])
			}
			in.Batch(batch...)
			same.Batch(batch...)
			switch rng.IntN(4) {
			case 0:
				kit.Restart()
				if down := rng.IntN(5); down > 0 {
					kit.StartAt(kit.Now().Add(time.Duration(down) * time.Second))
				}
			case 1:
				kit.CrashKeeping(rng, 50)
			}
			kit.Tick(1)
			whole.AdvanceTime(kit.Now().Sub(whole.Now()))
			whole.Await()
		}
		require.Equal(t, twoStatesOf(whole), twoStatesOf(kit), "seed %d", seed)
		require.Greater(t, kit.Progress()[19].Checkpoint.Term, uint64(1))
	}
}

// SR3: state read back is the state that was written, in as many partitions.
// SR4: an empty state of 10 partitions is still empty, in 10 partitions.
func TestEmptyStateIsReadBack(t *testing.T) {
	kit, in := durableKit(t, counts(counter().NumPartitions(10)))
	kit.Tick(2)
	kit.Restart()
	kit.Tick(1)
	require.Empty(t, stateNow(kit))
	require.Equal(t, 10, kit.Progress()[2].Operators[0].Partitions)
	in.Batch("a", "b", "c")
	kit.Tick(1)
	before := milltest.StateTimes[string, int](kit, "counts")
	kit.Restart()
	kit.Tick(1)
	require.Equal(t, before, milltest.StateTimes[string, int](kit, "counts"))
	require.Len(t, milltest.OutputParts[word](kit, "out")[4], 10)
}

// CP1: a job without state keeps its place in the sources.
func TestStatelessJobGoesOn(t *testing.T) {
	job := func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.ReduceByKey(wordsOf(ssc), func(a, b int) int { return a + b }, dstream.NumPartitions(1)), 10, dstream.Name("out"))
		return nil
	}
	kit, in := durableKit(t, job)
	in.Batch("a", "b", "a").Batch("b")
	kit.Tick(1)
	kit.Crash()
	kit.Tick(1)
	kit.Restart()
	in.Batch("a")
	kit.Tick(1)
	require.Equal(t, [][]word{{{Key: "a", Value: 2}, {Key: "b", Value: 1}}, {{Key: "b", Value: 1}}, {{Key: "a", Value: 1}}}, milltest.Output[word](kit, "out"))
}

// Report 4: deadlines survive a crash; those that passed meanwhile fire at once.
func TestReport4DeadlinesSurviveACrash(t *testing.T) {
	for _, c := range []struct {
		restart int64 // seconds after T0
		ticks   int
		fires   int64
	}{{5, 8, 11}, {60, 3, 61}} { // strict: the batch after T0 + 10
		kit, in := durableKit(t, counts(counter().Timeout(10*time.Second)))
		in.Batch("a")
		kit.Tick(1)
		t0 := kit.Now()
		kit.Advance(1)
		kit.Crash()
		kit.StartAt(t0.Add(time.Duration(c.restart) * time.Second))
		kit.Tick(c.ticks)
		var fired []string
		at := map[uint64]int64{}
		for _, p := range kit.Progress() {
			at[p.Batch.Epoch] = p.Batch.Time.Unix() - t0.Unix()
		}
		for i, batch := range milltest.Output[word](kit, "out") {
			for _, o := range batch {
				if o.Value < 0 {
					fired = append(fired, fmt.Sprint(o.Value, " at ", at[uint64(i+1)]))
				}
			}
		}
		require.Equal(t, []string{fmt.Sprint(-1, " at ", c.fires)}, fired)
		require.Empty(t, stateNow(kit))
	}
}

// Report 9: nothing in a checkpoint names a Go function, type, package or module,
// so a program may change all of them.
func TestReport9NothingOfTheProgramIsStored(t *testing.T) {
	type profile struct{ Count int }
	first := func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.MapWithState(wordsOf(ssc), dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[profile]) int {
			s.Update(profile{s.OrElse(profile{}).Count + one.OrElse(0)})
			return s.Get().Count
		}).Named("counts")), 10, dstream.Name("out"))
		return nil
	}
	kit, in := durableKit(t, first)
	in.Batch("a", "a")
	kit.Tick(1)
	kit.Restart()
	for name, content := range files(t, kit.CheckpointFS()) {
		for _, word := range []string{"statemill", "dstream", "profile", "Report9", "func1", ".go"} {
			require.NotContains(t, content, word, name)
		}
	}
	type account struct{ Count int64 } // another name, a wider integer
	kit.Job(func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.MapWithState(wordsOf(ssc), dstream.FunctionTime(func(_ time.Time, w string, one dstream.Option[int], s *dstream.State[account]) (string, bool) {
			s.Update(account{s.OrElse(account{}).Count + int64(one.OrElse(0))})
			return fmt.Sprint(w, s.Get().Count), true
		}).Named("counts")), 10, dstream.Name("out"))
		return nil
	})
	in.Batch("a")
	kit.Tick(1)
	require.Equal(t, map[string]account{"a": {3}}, milltest.State[string, account](kit, "counts"))
}

// stateJob keeps, per word, what next makes of it.
func stateJob[S any](next func(old S) S) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.MapWithState(wordsOf(ssc), dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[S]) string {
			var zero S
			s.Update(next(s.OrElse(zero)))
			return w
		}).Named("counts")), 10, dstream.Name("out"))
		return nil
	}
}

// A start that fails tells why, and changes no file.
func refused(t *testing.T, kit *milltest.Kit, texts ...string) {
	t.Helper()
	before := files(t, kit.CheckpointFS())
	err := kit.Start()
	require.ErrorIs(t, err, checkpoint.ErrRefused)
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, before, files(t, kit.CheckpointFS()))
	kit.Restart()
}

// Report 10: a changed state type is read, refused or migrated; never silently
// another value.
func TestReport10ChangedStateTypes(t *testing.T) {
	type old struct {
		A int
		B string
	}
	type removed struct{ A int }
	type changed struct {
		A string
		B string
	}
	type renamed struct {
		A  int
		B2 string
	}
	type aliased struct {
		A  int
		B2 string `msgpack:"B2,alias:B"`
	}
	kit, in := durableKit(t, stateJob(func(s old) old { return old{s.A + 1, s.B + "x"} }))
	in.Batch("a")
	kit.Tick(1)
	kit.Restart()

	kit.Job(stateJob(func(s removed) removed { return s })) // (ii)
	refused(t, kit, `"counts"`, "B", "WithMigration")
	kit.Job(stateJob(func(s changed) changed { return s })) // (iii)
	refused(t, kit, `"counts"`, "A", "int64", "string", "state/1")
	kit.Job(stateJob(func(s renamed) renamed { return s })) // (iv)
	refused(t, kit, `"counts"`, "B2")

	kit.Job(stateJob(func(s aliased) aliased { return aliased{s.A + 1, s.B2 + "y"} })) // (iv), by a rule
	in.Batch("a")
	kit.Tick(1)
	require.Equal(t, map[string]aliased{"a": {2, "xy"}}, milltest.State[string, aliased](kit, "counts"))
	kit.Restart()

	var states []map[string]changed
	kit.Job(stateJob(func(s changed) changed { return changed{s.A + "!", s.B} }),
		dstream.WithMigration("counts", migrateAlias[aliased](func(o aliased) changed { return changed{fmt.Sprint("n", o.A), o.B2} })))
	in.Batch().Batch("a")
	kit.Tick(1)
	states = append(states, milltest.State[string, changed](kit, "counts"))
	kit.Tick(1)
	kit.Restart() // the migrated state is what is stored now
	kit.Job(stateJob(func(s changed) changed { return s }))
	kit.Tick(1)
	states = append(states, milltest.State[string, changed](kit, "counts"))
	require.Equal(t, []map[string]changed{{"a": {"n2", "xy"}}, {"a": {"n2!", "xy"}}}, states)
}

// (i) an added field is zero in states of before.
func TestReport10AddedField(t *testing.T) {
	type old struct{ A int }
	type added struct {
		A int
		C string
	}
	kit, in := durableKit(t, stateJob(func(s old) old { return old{s.A + 1} }))
	in.Batch("a", "b")
	kit.Tick(1)
	for range 2 { // and once more, with files of both types
		kit.Restart()
		kit.Job(stateJob(func(s added) added { return added{s.A + 1, s.C + "c"} }))
		in.Batch("a")
		kit.Tick(1)
	}
	require.Equal(t, map[string]added{"a": {3, "cc"}, "b": {1, ""}}, milltest.State[string, added](kit, "counts"))
}

// Report 33: times come back as they went, in UTC, whatever the zone.
func TestReport33Times(t *testing.T) {
	type state struct {
		At   time.Time
		Zero time.Time
		Old  *time.Time
	}
	at := time.Date(2021, 6, 3, 1, 2, 3, 456_789_012, time.FixedZone("there", 8*3600))
	old := time.Date(1911, 1, 1, 0, 0, 0, 1, time.UTC)
	kit, in := durableKit(t, stateJob(func(s state) state {
		if s.At.IsZero() {
			return state{At: at, Old: &old}
		}
		return s
	}))
	in.Batch("a")
	kit.Tick(1)
	kit.Crash()
	kit.Tick(1)
	got := milltest.State[string, state](kit, "counts")["a"]
	require.True(t, got.At.Equal(at))
	require.Equal(t, time.UTC, got.At.Location())
	require.True(t, got.Zero.IsZero())
	require.True(t, got.Old.Equal(old))
}

// Report 34: a damaged file is found by its checksum, before a byte of it is
// decoded, and nothing of the version is served.
func TestReport34DamagedState(t *testing.T) {
	kit, in := durableKit(t, counts(counter().NumPartitions(1)))
	in.Batch("a", "b")
	kit.Tick(1)
	kit.Restart()
	fs := kit.CheckpointFS()
	name := filepath.Join("checkpoint", "state", "1", "0", "1.1.delta")
	b, err := vfs.ReadFile(fs, name)
	require.NoError(t, err)
	b[len(b)/2] ^= 0x40
	require.NoError(t, fs.Remove(name))
	require.NoError(t, vfs.WriteFile(fs, name, b))
	err = kit.Start()
	require.ErrorContains(t, err, "state/1/0/1.1.delta")
	require.ErrorContains(t, err, `counts`)
	require.ErrorContains(t, err, "version 1")
}

// Names of operators that a checkpoint needs are all asked for at once.
func TestUnnamedOperators(t *testing.T) {
	kit, _ := durableKit(t, func(ssc *dstream.StreamingContext) error {
		for range 2 {
			dstream.Print(dstream.MapWithState(wordsOf(ssc), dstream.Function(func(string, dstream.Option[int], *dstream.State[int]) int { return 0 })), 1)
		}
		return nil
	})
	err := kit.Start()
	var v *dstream.ValidationError
	require.True(t, errors.As(err, &v))
	n := 0
	for _, f := range v.Faults {
		if strings.Contains(f.Error(), "has no name") {
			n++
			require.Regexp(t, `durable_test\.go:\d+$`, f.Caller)
		}
	}
	require.Equal(t, 2, n)
}

// A source that sends again, to a later run, what an earlier one has committed is
// found out by the positions of the committed plan.
func TestRedeliveryAfterARestart(t *testing.T) {
	kit, in := durableKit(t, counts(counter().NumPartitions(2)))
	in.Batch("a", "b")
	kit.Tick(1)
	kit.Restart()
	in.Redeliver(0, 2)
	in.Batch("a")
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 2, "b": 1}, stateNow(kit))
	require.Equal(t, int64(2), kit.Progress()[1].Sources[0].Duplicates)
}

// D8: a delta that cannot be written is written again, and nothing is computed
// again.
func TestDeltasAreRetriedAlone(t *testing.T) {
	calls := 0
	kit, in := durableKit(t, stateJob(func(n int) int { calls++; return n + 1 }))
	var f vfs.Faults
	f.Fail(vfs.Rule{Path: "1.1.delta", Kinds: vfs.KindLink, K: 1})
	kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
	in.Batch("a")
	kit.Tick(1)
	require.NoError(t, kit.Err())
	require.Equal(t, 1, f.Hits())
	require.Equal(t, 1, calls)
	require.Equal(t, map[string]int{"a": 1}, stateNow(kit))
	require.Positive(t, kit.Progress()[0].Checkpoint.DeltaBytes)
	require.Equal(t, 1, kit.Progress()[0].Checkpoint.DeltaFiles)
}

// Without a kit: the system's clock, maintenance on a goroutine of its own (which
// has ended when Run returns: see TestMain), a folder of the disk.
func TestRunsOnADisk(t *testing.T) {
	dir := t.TempDir()
	run := func(batches ...[]string) map[string]int {
		got := map[string]int{}
		require.NoError(t, dstream.Run(t.Context(), 2*time.Millisecond, func(ssc *dstream.StreamingContext) error {
			in := dstream.QueueNamed(ssc, "words", 1, batches...)
			ones := dstream.MapPair(in, func(w string) (string, int) { return w, 1 })
			out := dstream.MapWithState(ones, counter().NumPartitions(2))
			dstream.Foreach(out, func(_ context.Context, _ dstream.Batch, p word) error { got[p.Key] = p.Value; return nil })
			return nil
		}, dstream.WithCheckpoint(dir, dstream.SnapshotEvery(1), dstream.MaintenanceInterval(time.Millisecond)), dstream.WithStopWhenDone()))
		return got
	}
	require.Equal(t, map[string]int{"a": 2, "b": 1}, run([]string{"a", "b"}, []string{"a"}))
	require.Equal(t, map[string]int{"b": 2}, run([]string{"a", "b"}, []string{"a"}, []string{"b"}), "what was read is not read again")
}
