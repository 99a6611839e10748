package spark

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/staterdd"
)

type (
	pair   = dstream.Pair[string, int]
	opt    = dstream.Option[int]
	state  = dstream.State[int]
	states = map[string]int
)

// inputA is the input that most of these tests share.
var inputA = []string{"", "a", "a b", "a b c", "a b", "a", ""}

// stage is a kit on a job that maps keys to (key, 1) and runs spec over them.
func stage[M any](t *testing.T, interval time.Duration, spec dstream.StateSpec[string, int, int, M]) (*milltest.Kit, *milltest.In[string]) {
	kit := milltest.New(t, interval, func(ssc *dstream.StreamingContext) error {
		keys := dstream.From(ssc, "keys", source.NewQueue[string](2))
		ones := dstream.MapPair(keys, func(k string) (string, int) { return k, 1 })
		mapped := dstream.MapWithState(ones, spec.Named("op"))
		dstream.Print(mapped, 10, dstream.Name("out"))
		dstream.Print(mapped.StateSnapshots(), 10, dstream.Name("snapshots"))
		return nil
	})
	return kit, milltest.Input[string](kit, "keys").Partitions(2)
}

// play runs one batch for every text of keys.
func play[M any](t *testing.T, input []string, spec dstream.StateSpec[string, int, int, M]) (outputs [][]M, snapshots []states) {
	t.Helper()
	kit, in := stage(t, time.Second, spec)
	for _, keys := range input {
		in.Batch(strings.Fields(keys)...)
	}
	kit.Tick(len(input))
	require.NoError(t, kit.Err())
	return milltest.Output[M](kit, "out"), snapshotsOf(kit)
}

func snapshotsOf(kit *milltest.Kit) (all []states) {
	for _, batch := range milltest.Output[pair](kit, "snapshots") {
		s := states{}
		for _, p := range batch {
			s[p.Key] = p.Value
		}
		all = append(all, s)
	}
	return all
}

// add is the running count.
func add(one opt, s *state) int {
	n := s.OrElse(0) + one.OrElse(0)
	s.Update(n)
	return n
}

// sets compares batches as multisets.
func sets[T any](t *testing.T, want, got [][]T) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		assert.ElementsMatch(t, want[i], got[i], "batch %d", i+1)
	}
}

var countSnapshots = []states{{}, {"a": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 2, "c": 1}, {"a": 4, "b": 3, "c": 1}, {"a": 5, "b": 3, "c": 1}, {"a": 5, "b": 3, "c": 1}}

// MW1
func TestRunningCountShortForm(t *testing.T) {
	t.Parallel()
	out, snaps := play(t, inputA, dstream.Function(func(_ string, one opt, s *state) int { return add(one, s) }))
	sets(t, [][]int{{}, {1}, {2, 1}, {3, 2, 1}, {4, 3}, {5}, {}}, out)
	assert.Equal(t, countSnapshots, snaps)
}

// MW2
func TestRunningCountLongForm(t *testing.T) {
	t.Parallel()
	out, snaps := play(t, inputA, dstream.FunctionTime(func(_ time.Time, k string, one opt, s *state) (string, bool) {
		add(one, s)
		return k + k, true
	}))
	sets(t, [][]string{{}, {"aa"}, {"aa", "bb"}, {"aa", "bb", "cc"}, {"aa", "bb"}, {"aa"}, {}}, out)
	assert.Equal(t, countSnapshots, snaps)
}

// MW3
func TestMappedIsTheUpdatedPartOfTheSnapshots(t *testing.T) {
	t.Parallel()
	out, snaps := play(t, inputA, dstream.Function(func(k string, one opt, s *state) pair { return dstream.KV(k, add(one, s)) }))
	for i, batch := range out {
		keys := map[string]bool{}
		for _, p := range batch {
			keys[p.Key] = true
			assert.Equal(t, snaps[i][p.Key], p.Value, "batch %d", i+1)
		}
		assert.Len(t, keys, len(strings.Fields(inputA[i])))
	}
}

// MW4
func TestInitialState(t *testing.T) {
	t.Parallel()
	initial := states{"a": 5, "b": 10, "c": -20, "d": 0}
	out, snaps := play(t, inputA, dstream.FunctionTime(func(_ time.Time, _ string, one opt, s *state) (int, bool) {
		return add(one, s), false
	}).InitialState(maps.All(initial)))
	sets(t, make([][]int, 7), out)
	with := func(a, b, c int) states { return states{"a": a, "b": b, "c": c, "d": 0} }
	assert.Equal(t, []states{
		initial, with(6, 10, -20), with(7, 11, -20), with(8, 12, -19), with(9, 13, -19), with(10, 13, -19), with(10, 13, -19),
	}, snaps)
}

// MW5
func TestRemoving(t *testing.T) {
	t.Parallel()
	input := []string{"", "a", "a b", "a b c", "a b c", "a b", "a", ""}
	out, snaps := play(t, input, dstream.FunctionTime(func(_ time.Time, k string, _ opt, s *state) (string, bool) {
		if s.Exists() {
			s.Remove()
			return k, true
		}
		s.Update(1)
		return "", false
	}))
	sets(t, [][]string{{}, {}, {"a"}, {"b"}, {"a", "c"}, {"b"}, {"a"}, {}}, out)
	assert.Equal(t, []states{{}, {"a": 1}, {"b": 1}, {"a": 1, "c": 1}, {"b": 1}, {"a": 1}, {}, {}}, snaps)
}

// MW6, by both rules of when idle keys are looked for. Spark leaves open in which
// batch they come; here it is as early as can be.
func TestTimingOut(t *testing.T) {
	t.Parallel()
	input := append([]string{"a b c", "a b", "a", "", "", "a"}, slices.Repeat([]string{"a"}, 20)...)
	for name, tc := range map[string]struct {
		scan staterdd.ScanPolicy
		b, c int // the batches in which b and c time out
	}{
		"every batch":   {staterdd.EveryBatch, 6, 5},
		"at checkpoint": {staterdd.AtCheckpoint, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			out, snaps := play(t, input, dstream.FunctionTime(func(_ time.Time, k string, _ opt, s *state) (string, bool) {
				if s.IsTimingOut() {
					return k, true
				}
				s.Update(1)
				return "", false
			}).Timeout(3*time.Second).TimeoutScan(tc.scan))
			when := map[string][]int{}
			for i, batch := range out {
				for _, k := range batch {
					when[k] = append(when[k], i+1)
				}
			}
			assert.Equal(t, map[string][]int{"b": {tc.b}, "c": {tc.c}}, when)
			assert.Contains(t, snaps, states{"a": 1, "b": 1, "c": 1})
			assert.Equal(t, states{"a": 1}, snaps[len(snaps)-1])
		})
	}
}

// MW7: the checkpoint interval is ten batches unless it is given. It shows in
// when AtCheckpoint looks for idle keys.
func TestCheckpointInterval(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ batch, given, want time.Duration }{
		{100 * time.Millisecond, 0, time.Second},
		{time.Second, 0, 10 * time.Second},
		{10 * time.Second, 0, 100 * time.Second},
		{100 * time.Millisecond, 2 * time.Second, 2 * time.Second},
		{time.Second, 2 * time.Second, 2 * time.Second},
		{10 * time.Second, 20 * time.Second, 20 * time.Second},
	} {
		spec := dstream.FunctionTime(func(batch time.Time, _ string, _ opt, s *state) (time.Duration, bool) {
			if s.IsTimingOut() {
				return batch.Sub(time.Unix(0, 0)), true
			}
			s.Update(1)
			return 0, false
		}).Timeout(time.Millisecond).TimeoutScan(staterdd.AtCheckpoint)
		if tc.given > 0 {
			spec = spec.CheckpointInterval(tc.given)
		}
		kit, in := stage(t, tc.batch, spec)
		in.Batch("a")
		kit.Tick(int(tc.want / tc.batch))
		out := slices.Concat(milltest.Output[time.Duration](kit, "out")...)
		assert.Equal(t, []time.Duration{tc.want}, out, "batches of %v, checkpoint interval %v", tc.batch, tc.given)
	}
}

// MW9: all four types are inferred from a function literal.
func TestTypesAreInferred(t *testing.T) {
	t.Parallel()
	type visit struct{ page string }
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.QueueStream(ssc, []dstream.Pair[int64, visit]{{Key: 7, Value: visit{"/"}}, {Key: 7, Value: visit{"/b"}}})
		pages := dstream.MapWithState(in, dstream.Function(
			func(user int64, v dstream.Option[visit], pages *dstream.State[[]string]) int {
				p, _ := v.Get()
				all := append(pages.OrElse(nil), p.page)
				pages.Update(all)
				return len(all)
			}).Named("pages"))
		dstream.Print(pages, 1)
		return nil
	})
	kit.Tick(1)
	out := milltest.Output[int](kit, "pages")
	sort.Ints(out[0])
	assert.Equal(t, [][]int{{1, 2}}, out)
	assert.Equal(t, map[int64][]string{7: {"/", "/b"}}, milltest.State[int64, []string](kit, "pages"))
}

// An operator may take another one's outputs, or its state, in the same batch.
func TestStateOfState(t *testing.T) {
	t.Parallel()
	spec := func(name string) dstream.StateSpec[string, int, int, pair] {
		return dstream.Function(func(k string, one opt, s *state) pair { return dstream.KV(k, add(one, s)) }).Named(name)
	}
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		first := dstream.MapWithState(dstream.From(ssc, "in", source.NewQueue[pair](1)), spec("first"))
		dstream.Print(dstream.MapWithState(first, spec("of outputs")), 1)
		dstream.Print(dstream.MapWithState(first.StateSnapshots(), spec("of states")), 1)
		return nil
	})
	milltest.Input[pair](kit, "in").Batch(dstream.KV("a", 1)).Batch(dstream.KV("a", 2), dstream.KV("a", 3)).Empty(1)
	kit.Tick(3)
	require.NoError(t, kit.Err())
	assert.Equal(t, states{"a": 1 + 3 + 6}, milltest.State[string, int](kit, "of outputs"))
	assert.Equal(t, states{"a": 1 + 6 + 6}, milltest.State[string, int](kit, "of states"))
}
