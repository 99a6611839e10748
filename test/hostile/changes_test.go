package hostile

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
)

// A timeout may come, go and change: the times of the keys are in the state.
func TestTimeoutChanges(t *testing.T) {
	w := newWorld(t)
	job := func(d time.Duration) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			s := count()
			if d > 0 {
				s = s.Timeout(d)
			}
			dstream.Print(dstream.MapWithState(w.words(ssc, "a"), s), 1, dstream.Name("o"))
			return nil
		}
	}
	x, none := map[string]int{"x": 1}, map[string]int{}
	w.topic("a").add("x")
	require.Equal(t, x, w.once(2, job(0)))
	require.Equal(t, x, w.once(3, job(10*time.Second)))
	require.Equal(t, none, w.once(1, job(3*time.Second)))
	w.topic("a").add("x")
	require.Equal(t, x, w.once(1, job(3*time.Second)))
	require.Equal(t, x, w.once(20, job(0)))
	require.Equal(t, x, w.once(1, job(time.Hour)))
	require.Equal(t, none, w.once(1, job(5*time.Second)))
}

// What cannot go on is refused by name, and the old program goes on after it.
func TestOtherOperators(t *testing.T) {
	w := newWorld(t)
	w.topic("a").add("x")
	w.once(2, sources(w, "a"))
	refused := func(job dstream.Job, texts ...string) {
		err := w.life(job).ssc.Start()
		require.Error(t, err)
		for _, text := range texts {
			require.ErrorContains(t, err, text)
		}
	}
	refused(func(ssc *dstream.StreamingContext) error { return nil }, "no output operations")
	refused(func(ssc *dstream.StreamingContext) error { dstream.Print(w.words(ssc, "a"), 1); return nil },
		`operator "counts"`, "1 keys", `WithDrop("counts")`)
	refused(func(ssc *dstream.StreamingContext) error {
		k := dstream.MapPair(w.words(ssc, "a"), func(p word) (float64, int) { return 0, 1 })
		dstream.Print(dstream.MapWithState(k, dstream.Function(func(float64, dstream.Option[int], *dstream.State[int]) int { return 0 }).Named("counts")), 1, dstream.Name("o"))
		return nil
	}, `operator "counts"`, "key type", "string", "float64")
	refused(func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.Keyed(w.words(ssc, "a"), "counts", func(*dstream.Call[int, string], string, dstream.Option[int]) error { return nil }), 1, dstream.Name("o"))
		return nil
	}, `operator "counts"`, "mapWithState", "keyed")
	// WithDrop of what is there drops nothing; a new initial state is for new roots.
	require.Equal(t, map[string]int{"x": 1}, w.once(2, sources(w, "a"), dstream.WithDrop("counts", "other")))
	require.Equal(t, map[string]int{"x": 1}, w.once(2, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.MapWithState(w.words(ssc, "a"), count().InitialState(maps.All(map[string]int{"x": 9, "y": 9}))), 1, dstream.Name("o"))
		return nil
	}))
}

// Operators are found by name, whatever their order.
func TestOperatorsInAnotherOrder(t *testing.T) {
	w := newWorld(t)
	job := func(names ...string) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			in := w.words(ssc, "a")
			for _, n := range names {
				dstream.Print(dstream.MapWithState(in, count().Named(n)), 1, dstream.Name("out "+n))
			}
			return nil
		}
	}
	w.topic("a").add("x")
	w.once(2, job("counts", "b"))
	w.topic("a").add("x")
	require.Equal(t, map[string]int{"x": 2}, w.once(2, job("c", "b", "counts")))
	w.topic("a").add("x")
	require.Equal(t, map[string]int{"x": 3}, w.once(1, job("b", "counts", "c")))
	require.Equal(t, map[string]int{"x": 2}, state[string, int](t, w.last, "c"))
}

// Another interval goes on, on the old grid's zero, and never back in time.
func TestOtherInterval(t *testing.T) {
	w := newWorld(t)
	var last time.Time
	for i, d := range []time.Duration{7 * time.Second, time.Second, 300 * time.Millisecond, time.Minute} {
		w.topic("a").add("x")
		l := w.lifeEvery(d, sources(w, "a"))
		require.NoError(t, l.ssc.Start())
		require.NoError(t, l.tick(3))
		require.Equal(t, map[string]int{"x": i + 1}, state[string, int](t, l, "counts"))
		for _, p := range l.done {
			require.True(t, p.Batch.Time.After(last), "%v after %v", p.Batch.Time, last)
			last = p.Batch.Time
		}
		require.NoError(t, l.stop())
	}
	require.Contains(t, w.last.text(), "the batch interval was")
}

// A clock that was set back over a stop is waited for, and told of; one that was set
// ahead makes one batch.
func TestClockIsSet(t *testing.T) {
	w := newWorld(t)
	w.topic("a").add("x")
	w.once(3, sources(w, "a"))
	at := w.now
	w.topic("a").add("x")
	w.now = at.Add(-time.Hour)
	l := w.life(sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	require.Contains(t, l.text(), "the clock is 1h0m0s behind the last batch")
	require.Equal(t, map[string]int{"x": 1}, state[string, int](t, l, "counts"))
	l.clock.Set(at)
	require.NoError(t, l.tick(1))
	require.Equal(t, map[string]int{"x": 2}, state[string, int](t, l, "counts"))
	require.NoError(t, l.stop())
	w.now = w.now.Add(1000 * time.Hour)
	require.Equal(t, map[string]int{"x": 2}, w.once(1, sources(w, "a")))
	require.Len(t, w.last.done, 1)
}

// A context starts once; a second start changes nothing.
func TestDoubleStart(t *testing.T) {
	w := newWorld(t)
	w.topic("a").add("x")
	l := w.life(sources(w, "a"))
	require.NoError(t, l.ssc.Start())
	require.ErrorIs(t, l.ssc.Start(), dstream.ErrStarted)
	require.NoError(t, l.tick(1))
	require.NoError(t, l.stop())
	require.ErrorIs(t, l.ssc.Start(), dstream.ErrStopped)
	_, err := w.fs.Stat(w.dir + "/owner/2")
	require.Error(t, err)
	require.ErrorIs(t, w.life(sources(w, "a"), dstream.WithRescale(), dstream.WithTakeover(99)).ssc.Start(), dstream.ErrInvalid)
	require.NotErrorIs(t, err, checkpoint.ErrOwned)
}
