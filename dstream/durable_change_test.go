package dstream_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/vfs"
)

func migrateAlias[From, To any](f func(From) To) codec.Migration {
	return codec.Migrate(func(v From) (To, error) { return f(v), nil })
}

// Report 11: another number of partitions is refused, naming both numbers and the
// ways out, or the state is laid out anew; no key starts again.
func TestReport11PartitionCount(t *testing.T) {
	var keys []string
	for i := range 300 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	kit, in := durableKit(t, counts(counter().NumPartitions(4).Timeout(time.Hour)))
	in.Batches(keys, keys, keys)
	kit.Tick(3)
	want := milltest.StateTimes[string, int](kit, "counts")
	kit.Restart()
	for _, n := range []int{8, 3, 5} {
		kit.Job(counts(counter().NumPartitions(n).Timeout(time.Hour)))
		refused(t, kit, fmt.Sprint("the program gives ", n), "WithRescale", "statemill rescale")
		var notices []checkpoint.NoticeKind
		kit.Job(counts(counter().NumPartitions(n).Timeout(time.Hour)), dstream.WithRescale(),
			dstream.WithListener(dstream.Listener{Notice: func(n dstream.Notice) { notices = append(notices, n.Kind) }}))
		kit.Tick(1)
		require.Contains(t, notices, checkpoint.NoticeChange)
		require.NoError(t, kit.Err())
		require.Equal(t, want, milltest.StateTimes[string, int](kit, "counts"))
		last := kit.Progress()[len(kit.Progress())-1]
		require.Equal(t, n, last.Operators[0].Partitions)
		kit.Restart()
	}
	// Without a number, the root's is taken.
	kit.Job(counts(counter()), dstream.WithParallelism(2))
	in.Batch(keys...)
	kit.Tick(1)
	require.Equal(t, 4, stateNow(kit)["key7"])
	require.Equal(t, 5, kit.Progress()[len(kit.Progress())-1].Operators[0].Partitions)
}

// change is a job before and after a change of layout, types or operators.
type change struct {
	name   string
	before dstream.Job
	after  dstream.Job
	opts   []dstream.ContextOption
	check  func(t *testing.T, kit *milltest.Kit, msg string)
}

type tally struct{ N int }

func changes() []change {
	count := func(want map[string]int) func(*testing.T, *milltest.Kit, string) {
		return func(t *testing.T, kit *milltest.Kit, msg string) { require.Equal(t, want, stateNow(kit), msg) }
	}
	both := func(names ...string) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			words := wordsOf(ssc)
			for _, name := range names {
				dstream.Print(dstream.MapWithState(words, counter().Named(name).NumPartitions(2)), 10, dstream.Name("out of "+name))
			}
			return nil
		}
	}
	final := map[string]int{"a": 4, "b": 2, "c": 1}
	return []change{
		{"rescale", counts(counter().NumPartitions(2)), counts(counter().NumPartitions(3)), []dstream.ContextOption{dstream.WithRescale()}, count(final)},
		{"migration", counts(counter().NumPartitions(2)), func(ssc *dstream.StreamingContext) error {
			dstream.Print(dstream.MapWithState(wordsOf(ssc), dstream.Function(func(w string, one dstream.Option[int], s *dstream.State[tally]) word {
				s.Update(tally{s.OrElse(tally{}).N + one.OrElse(0)})
				return dstream.KV(w, s.Get().N)
			}).Named("counts").NumPartitions(2)), 10, dstream.Name("out"))
			return nil
		}, []dstream.ContextOption{dstream.WithMigration("counts", migrateAlias(func(n int) tally { return tally{n} }))},
			func(t *testing.T, kit *milltest.Kit, msg string) {
				require.Equal(t, map[string]tally{"a": {4}, "b": {2}, "c": {1}}, milltest.State[string, tally](kit, "counts"), msg)
			}},
		{"drop", both("counts", "gone"), both("counts"), []dstream.ContextOption{dstream.WithDrop("gone")}, count(final)},
		{"new operator", both("counts"), func(ssc *dstream.StreamingContext) error {
			dstream.Print(dstream.MapWithState(wordsOf(ssc), counter().NumPartitions(2)), 10, dstream.Name("out of counts"))
			fresh := counter().Named("fresh").NumPartitions(2).InitialState(maps.All(map[string]int{"a": 100, "z": 7}))
			dstream.Print(dstream.MapWithState(wordsAgain(ssc), fresh), 10, dstream.Name("fresh"))
			return nil
		}, nil, func(t *testing.T, kit *milltest.Kit, msg string) {
			require.Equal(t, final, stateNow(kit), msg)
			require.Equal(t, map[string]int{"a": 100, "z": 7, "m": 1}, milltest.State[string, int](kit, "fresh"), msg)
		}},
	}
}

// wordsAgain is a source that only a later program has.
func wordsAgain(ssc *dstream.StreamingContext) *dstream.DStream[word] {
	return dstream.MapPair(dstream.QueueNamed(ssc, "more", 1, []string{"m"}), func(w string) (string, int) { return w, 1 })
}

// P8, D4, D5: a change of layout, type or operators, with and without an epoch that
// was planned and not committed, and with a crash in every call: no count is lost
// and none doubled.
func TestChangesSurviveCrashes(t *testing.T) {
	for _, c := range changes() {
		for _, pending := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, "/", pending), func(t *testing.T) {
				for k := 1; crashInChange(t, c, pending, k); k += everyCall() {
				}
			})
		}
	}
}

// crashInChange lets the k-th call of the program after the change be its last;
// false if it made fewer calls.
func crashInChange(t *testing.T, c change, pending bool, k int) bool {
	msg := fmt.Sprint(c.name, ", pending ", pending, ", call ", k)
	kit, in := durableKit(t, c.before)
	in.Batch("a", "b", "a").Batch("c", "a").Batch("b", "a")
	kit.Tick(1)
	if pending {
		leavePending(t, kit)
	} else {
		kit.Tick(1)
		kit.Restart()
	}
	kit.Job(c.after, c.opts...)
	var f vfs.Faults
	f.Fail(vfs.Rule{K: k, Dead: true, Forever: true})
	kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
	kit.Tick(2)
	err := kit.Err()
	kit.Crash()
	kit.WrapCheckpoint(nil)
	for i := 0; i < 6 && !kit.Ended(); i++ {
		kit.Tick(1)
	}
	require.NoError(t, kit.Err(), "%s: %v", msg, err)
	require.Zero(t, in.Pending(), msg)
	c.check(t, kit, msg)
	return f.Hits() > 0
}

// leavePending crashes in the middle of an epoch: planned, its deltas written, not
// committed.
func leavePending(t *testing.T, kit *milltest.Kit) {
	t.Helper()
	kit.Restart()
	var f vfs.Faults
	f.Fail(vfs.Rule{Path: "commits/2", Kinds: vfs.KindLink, Dead: true, Forever: true})
	kit.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
	kit.Tick(1)
	require.Error(t, kit.Err())
	require.Positive(t, f.Hits())
	kit.Crash()
	kit.WrapCheckpoint(nil)
}

// An operator of the checkpoint that the program does not have is no accident: it
// is named, and dropped only when that is said. What was dropped starts anew.
func TestMissingOperator(t *testing.T) {
	two := func(names ...string) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			words := wordsOf(ssc)
			for _, name := range names {
				dstream.Print(dstream.MapWithState(words, counter().Named(name)), 10, dstream.Name("out of "+name))
			}
			return nil
		}
	}
	kit, in := durableKit(t, two("counts", "other"))
	in.Batch("a", "a").Batch("a").Batch("a")
	kit.Tick(1)
	kit.Restart()
	kit.Job(two("counts"))
	refused(t, kit, `"other"`, "WithDrop")
	kit.Job(two("counts"), dstream.WithDrop("other"))
	kit.Tick(1)
	kit.Restart()
	kit.Job(two("counts", "other"), dstream.WithDrop("other"))
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 4}, stateNow(kit))
	require.Equal(t, map[string]int{"a": 1}, milltest.State[string, int](kit, "other"))
}

// D3: an initial state is durable with the first epoch, whether its keys get data
// or not, and is not read again.
func TestInitialStateIsDurable(t *testing.T) {
	reads := 0
	spec := counter().NumPartitions(2).InitialState(func(yield func(string, int) bool) {
		reads++
		for k, v := range maps.All(map[string]int{"a": 10, "b": 20, "c": 30, "d": 40}) { // in any order
			if !yield(k, v) {
				return
			}
		}
	})
	kit, in := durableKit(t, counts(spec))
	in.Batch("a")
	kit.Tick(1)
	kit.Crash()
	in.Batch("b")
	kit.Tick(1)
	require.Equal(t, map[string]int{"a": 11, "b": 21, "c": 30, "d": 40}, stateNow(kit))
	require.Equal(t, 1, reads)
}

// Design 3, report 31: the redo of an epoch writes the same bytes: from memory,
// after a reload, and after an attempt that failed.
func TestRedoWritesTheSameBytes(t *testing.T) {
	batches := [][]string{{"a", "b", "cc", "a"}, {"dd", "a", "e"}, {}, {}, {"b", "e"}, {}, {"a", "f"}}
	deltas := func(kit *milltest.Kit) map[string]string {
		out := map[string]string{}
		for name, content := range files(t, kit.CheckpointFS()) {
			if n, ok := checkpoint.ParseStateName(name); ok && strings.HasSuffix(name, ".delta") {
				n.Term = 0
				if before, ok := out[n.String()]; ok {
					require.Equal(t, before, content, "two runs wrote %s differently", n)
				}
				out[n.String()] = content
			}
		}
		return out
	}
	run := func(opts ...dstream.ContextOption) *milltest.Kit {
		kit := milltest.New(t, time.Second, twoStates, opts...)
		kit.Checkpoint(dstream.SnapshotEvery(100))
		milltest.Input[string](kit, "words").Batches(batches...)
		return kit
	}
	whole := run()
	whole.Tick(len(batches))
	want := deltas(whole)
	require.Greater(t, len(want), 10)

	reloaded := run()
	for n := range batches {
		var f vfs.Faults // each epoch is redone by a run that loads
		f.Fail(vfs.Rule{Path: fmt.Sprint("commits/", n+1), Kinds: vfs.KindLink, Dead: true, Forever: true})
		reloaded.WrapCheckpoint(func(fs vfs.FS) vfs.FS { return vfs.WithFaults(fs, &f) })
		reloaded.Tick(1)
		require.Error(t, reloaded.Err())
		reloaded.Crash()
		reloaded.WrapCheckpoint(nil)
		require.NoError(t, reloaded.Start())
		reloaded.Await()
		require.Equal(t, uint64(n+1), reloaded.Epoch(), "the redo needs no tick")
		reloaded.Restart()
	}
	require.Equal(t, want, deltas(reloaded))

	retried := milltest.New(t, time.Second, twoStates, dstream.WithTaskRetries(1))
	retried.Checkpoint(dstream.SnapshotEvery(100))
	in := milltest.Input[string](retried, "words")
	for _, b := range batches {
		in.Batch(b...)
		in.FailReads(1, 1, fmt.Errorf("no"))
		retried.Tick(1)
	}
	require.Equal(t, want, deltas(retried))
}
