package dstream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// countCalls is the state of UpdateStateByKey in the cases below: one more a call.
func countCalls(_ []int, calls dstream.Option[int]) dstream.Option[int] {
	return dstream.Some(calls.OrElse(0) + 1)
}

// runJob runs n batches of a second, of which the first has the record a.
func runJob(t *testing.T, n int, job func(c ssc)) *milltest.Kit {
	t.Helper()
	kit := milltest.New(t, sec, func(c ssc) error { job(c); return nil }, dstream.WithParallelism(1))
	milltest.Input[string](kit, "words").Batch("a")
	kit.Tick(n)
	require.NoError(t, kit.Err())
	return kit
}

// given is what an output gave in each batch; "-" where it did not run.
func given[T any](kit *milltest.Kit, name string) []string {
	var all []string
	for _, b := range milltest.Output[T](kit, name) {
		if b == nil {
			all = append(all, "-")
			continue
		}
		all = append(all, fmt.Sprint(b))
	}
	return all
}

// D9, F2, F12: an operator has the slide of its parent, and is called at its slides alone; so is
// all that is made of it. The values are Spark's.
func TestStateAtSlides(t *testing.T) {
	var slides []time.Duration
	kit := runJob(t, 8, func(c ssc) {
		w := dstream.Window(wordsOf(c), 4*sec, 2*sec)
		u := dstream.UpdateStateByKey(w, countCalls)
		dstream.Print(u, 0, dstream.Name("u"))
		dstream.Print(u.StateSnapshots(), 0, dstream.Name("snapshots"))
		dstream.Print(dstream.Window(u, 4*sec, 2*sec), 0, dstream.Name("window"))
		dstream.Print(dstream.LeftOuterJoin(u, w), 0, dstream.Name("joined"))
		n := dstream.UpdateStateByKey(w, func(v []int, n dstream.Option[int]) dstream.Option[int] { return dstream.Some(n.OrElse(0) + len(v)) })
		i := dstream.ReduceByKeyAndWindowInverse(n, add, subtract, nil, 2*sec, 2*sec)
		dstream.Print(i, 0, dstream.Name("inverse"))
		chained := dstream.UpdateStateByKey(dstream.Map(u, func(p kv) kv { return p }), countCalls)
		dstream.Print(chained, 0, dstream.Name("chained"))
		slides = append(slides, u.SlideDuration(), u.StateSnapshots().SlideDuration(), n.SlideDuration(), i.SlideDuration(), chained.SlideDuration())
	})
	for _, s := range slides {
		require.Equal(t, 2*sec, s)
	}
	require.Equal(t, []string{"-", "[{a 1}]", "-", "[{a 2}]", "-", "[{a 3}]", "-", "[{a 4}]"}, given[kv](kit, "u"))
	require.Equal(t, given[kv](kit, "u"), given[kv](kit, "snapshots"))
	require.Equal(t, given[kv](kit, "u"), given[kv](kit, "chained"))
	require.Equal(t, []string{"-", "[{a 1}]", "-", "[{a 1} {a 2}]", "-", "[{a 2} {a 3}]", "-", "[{a 3} {a 4}]"}, given[kv](kit, "window"), "two RDDs")
	require.Equal(t, []string{"-", "[{a 1}]", "-", "[{a 2}]", "-", "[{a 2}]", "-", "[{a 2}]"}, given[kv](kit, "inverse"))
	require.Equal(t, []string{"-", "[{a {1 {1 true}}}]", "-", "[{a {2 {1 true}}}]", "-", "[{a {3 {0 false}}}]", "-", "[{a {4 {0 false}}}]"},
		given[dstream.Pair[string, dstream.Joined[int, dstream.Option[int]]]](kit, "joined"))
	for _, p := range kit.Progress() {
		for _, o := range p.Operators[:1] {
			at := p.Batch.Time.Unix()
			require.Equal(t, min(at/2, 1), o.Keys, "batch %d", at)
			require.Equal(t, (at+1)%2, o.Calls, "batch %d", at)
		}
	}
}

// C5, C9: idle keys time out, and deadlines pass, at the slides of a window: the key is touched at
// 2 and 4 s, when the window has its record.
func TestTimeoutsOverAWindow(t *testing.T) {
	final := dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) string {
		if s.IsTimingOut() {
			return "over"
		}
		s.Update(v.OrElse(0))
		return k
	}).Timeout(2 * sec)
	kit := runJob(t, 24, func(c ssc) {
		w := dstream.Window(wordsOf(c), 4*sec, 2*sec)
		m := dstream.MapWithState(w, final)
		dstream.Print(m, 0, dstream.Name("exact"))
		dstream.Print(m.StateSnapshots(), 0, dstream.Name("snapshots"))
		dstream.Print(dstream.MapWithState(w, final.Named("spark").TimeoutScan(dstream.AtCheckpoint)), 0, dstream.Name("at checkpoint"))
		keyed := dstream.Keyed(w, "keyed", func(c *dstream.Call[int, string], k string, v dstream.Option[int]) error {
			if _, ok := v.Get(); !ok {
				c.Emit("over")
				return nil
			}
			c.State.Update(1)
			c.SetDeadline(c.Batch.Time.Add(sec / 2)) // 4.5 s
			c.Emit(k)
			return nil
		})
		dstream.Print(keyed, 0, dstream.Name("keyed"))
	})
	require.Equal(t, []string{"-", "[a]", "-", "[a]", "-", "[]", "-", "[over]"}, given[string](kit, "exact")[:8], "6 s is 2 s idle, and not more")
	require.Equal(t, []string{"-", "[{a 1}]", "-", "[{a 1}]", "-", "[{a 1}]", "-", "[]"}, given[kv](kit, "snapshots")[:8])
	require.Equal(t, []string{"-", "[a]", "-", "[a]", "-", "[over]", "-", "[]"}, given[string](kit, "keyed")[:8])
	spark := given[string](kit, "at checkpoint")
	require.Equal(t, "[over]", spark[19], "D8: ten slides")
	for i, b := range spark {
		require.Equal(t, i%2 == 0, b == "-")
		require.Equal(t, i == 19, b == "[over]")
	}
}

// A snapshot is due by batch times, also of one in which the version was carried on: it is the
// state after that epoch.
func TestSnapshotBetweenSlides(t *testing.T) {
	kit := milltest.New(t, sec, func(c ssc) error {
		m := dstream.MapWithState(dstream.Window(wordsOf(c), 2*sec, 2*sec).Named("w"), dstream.Function(func(k string, v dstream.Option[int], s *dstream.State[int]) int {
			s.Update(s.OrElse(0) + v.OrElse(0))
			return s.Get()
		}).Named("m").CheckpointInterval(4*sec))
		dstream.Print(m, 0, dstream.Name("out"))
		return nil
	}, dstream.WithParallelism(1))
	kit.Checkpoint(dstream.RetainSnapshots(9))
	kit.StartAt(time.Unix(1, 0)) // slides at 3, 5, 7 …; snapshots at 4, 8 …
	milltest.Input[string](kit, "words").Batches([]string{"a"}, []string{"a"}, nil, []string{"a"}, []string{"b"}, nil)
	kit.Tick(4)
	names := map[string]bool{}
	objects, err := kit.CheckpointStore("reader").List(t.Context(), "state/")
	require.NoError(t, err)
	for _, o := range objects {
		names[o.Name] = true
	}
	require.Contains(t, names, "state/2/0/3.1.snapshot", "of the batch at 4 s")
	require.NotContains(t, names, "state/2/0/3.1.delta", "nothing has changed in it")
	require.Contains(t, names, "state/2/0/2.1.delta")
	kit.Crash()
	kit.Tick(2)
	require.NoError(t, kit.Err())
	require.Equal(t, map[string]int{"a": 3, "b": 1}, milltest.State[string, int](kit, "m"))
}
