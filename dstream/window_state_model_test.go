package dstream_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// slid are the settings of a job with state over a window, in seconds.
type slid struct {
	first, length, slide, timeout, deadline, checkpoint int

	initial bool
}

func seconds(n int) time.Duration { return time.Duration(n) * sec }

// called is the function of the updates: calls are told from values, and a key goes that is idle
// for long.
func called(values []int, state dstream.Option[int]) dstream.Option[int] {
	s := state.OrElse(0) + 1 + 10*len(values)
	if len(values) == 0 && s > 60 {
		return dstream.None[int]()
	}
	return dstream.Some(s)
}

// job has all stateful operators over one window, and windows over state.
func (s slid) job(c ssc) error {
	in := wordsOf(c)
	dstream.Print(in, 0, dstream.Name("each"))
	w := dstream.Window(in, seconds(s.length), seconds(s.slide)).Named("w")
	spec := counter().Timeout(seconds(s.timeout)).NumPartitions(2)
	opts := []dstream.OpOption{dstream.NumPartitions(2)}
	exact := spec.Named("m")
	if s.initial {
		first := func(yield func(string, int) bool) { _ = yield("y", 5) && yield("a", 100) }
		exact = exact.InitialState(first)
		opts = append(opts, dstream.InitialState[string, int](first))
	}
	m := dstream.MapWithState(w, exact)
	dstream.Print(m, 0, dstream.Name("exact"))
	dstream.Print(m.StateSnapshots(), 0, dstream.Name("snapshots"))
	dstream.Print(dstream.MapWithState(w, spec.Named("c").CheckpointInterval(seconds(s.checkpoint)).TimeoutScan(dstream.AtCheckpoint)), 0, dstream.Name("spark"))
	dstream.Print(dstream.Keyed(w, "k", func(c *dstream.Call[int, word], k string, v dstream.Option[int]) error {
		if _, ok := v.Get(); !ok {
			c.Emit(dstream.KV(k, -c.State.OrElse(0)))
			return nil
		}
		c.State.Update(c.State.OrElse(0) + 1)
		c.SetDeadline(c.Batch.Time.Add(seconds(s.deadline)))
		return nil
	}), 0, dstream.Name("keyed"))
	u := dstream.UpdateStateByKey(w, called, append(opts, dstream.Name("u"))...)
	dstream.Print(u, 0, dstream.Name("update"))
	dstream.Print(dstream.UpdateStateByKey(m, called, dstream.Name("uu")), 0, dstream.Name("chained"))
	dstream.Print(dstream.Window(u, 2*seconds(s.slide), seconds(s.slide)).Named("wu"), 0, dstream.Name("window"))
	dstream.Print(dstream.ReduceByKeyAndWindowInverse(u, add, subtract, nil, 2*seconds(s.slide), seconds(s.slide), dstream.Name("iu")), 0, dstream.Name("inverse"))
	return nil
}

// timed is a state of the model with its time.
type timed struct{ state, at int }

// idle removes what is due, and gives the outputs of its final calls.
func idle(state map[string]timed, before int) (out []word) {
	for k, e := range state {
		if e.at < before {
			out = append(out, dstream.KV(k, -e.state))
			delete(state, k)
		}
	}
	return out
}

func update(state map[string]int, rows []word) (out []word) {
	values := map[string][]int{}
	for _, r := range rows {
		values[r.Key] = append(values[r.Key], r.Value)
	}
	for k := range state {
		values[k] = append(values[k], nil...) // called, too
	}
	for k, v := range values {
		before := dstream.None[int]()
		if s, ok := state[k]; ok {
			before = dstream.Some(s)
		}
		if s, ok := called(v, before).Get(); ok {
			state[k] = s
			out = append(out, dstream.KV(k, s))
		} else {
			delete(state, k)
		}
	}
	return out
}

// run is what the job must give for batches at these times: what it gives in one is sorted, and
// "-" where nothing is due.
func (s slid) run(times []int, batches [][]word) map[string][]string {
	out := map[string][]string{}
	window := &tickModel{length: s.length, slide: s.slide, batches: map[int][]kv{}, given: map[int]bool{}, sums: map[string]int{}}
	over := &tickModel{length: 2, slide: 1, batches: map[int][]kv{}, given: map[int]bool{}, sums: map[string]int{}}
	m, c, k := map[string]timed{}, map[string]timed{}, map[string]timed{}
	u, uu := map[string]int{}, map[string]int{}
	grid := func(t int) int { return s.first + (t-s.first)/s.slide*s.slide }
	for i, at := range times {
		var rows []word
		if i < len(batches) {
			rows = batches[i]
		}
		due, ticks, _ := window.batch(at-s.first, rows)
		if i == 0 && s.initial {
			first := at
			if !due {
				first = grid(at) + s.slide
			}
			m["y"], m["a"], u["y"], u["a"] = timed{5, first}, timed{100, first}, 5, 100
		}
		given := map[string][]word{}
		if due {
			before := grid(at) - s.slide // of the first batch
			if i > 0 {
				before = grid(times[i-1])
			}
			var data []word
			for _, b := range ticks {
				data = append(data, window.batches[b]...)
			}
			for _, r := range data {
				m[r.Key], c[r.Key] = timed{m[r.Key].state + r.Value, at}, timed{c[r.Key].state + r.Value, at}
				k[r.Key] = timed{k[r.Key].state + 1, at + s.deadline}
				given["exact"] = append(given["exact"], dstream.KV(r.Key, m[r.Key].state))
				given["spark"] = append(given["spark"], dstream.KV(r.Key, c[r.Key].state))
			}
			given["exact"] = append(given["exact"], idle(m, at-s.timeout)...)
			if grid(at)/s.checkpoint > before/s.checkpoint {
				given["spark"] = append(given["spark"], idle(c, at-s.timeout)...)
			}
			given["keyed"] = idle(k, at)
			for key, e := range m {
				given["snapshots"] = append(given["snapshots"], dstream.KV(key, e.state))
			}
			given["update"] = update(u, data)
			given["chained"] = update(uu, given["exact"])
			_, slides, sums := over.batch((grid(at)-s.first)/s.slide, given["update"])
			for _, b := range slides {
				given["window"] = append(given["window"], over.batches[b]...)
			}
			for key, v := range sums {
				given["inverse"] = append(given["inverse"], dstream.KV(key, v))
			}
		}
		for _, name := range slidOutputs {
			text := "-"
			if due {
				text = inAnyOrder(given[name])
			}
			out[name] = append(out[name], text)
		}
	}
	return out
}

var slidOutputs = []string{"exact", "snapshots", "spark", "keyed", "update", "chained", "window", "inverse"}

func inAnyOrder(rows []word) string {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b word) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value)) })
	return fmt.Sprint(rows)
}

// D5, D6, D9, C5: state over windows is that of the model, which is called at slides alone, whatever ticks are
// skipped and wherever runs stop, crash and begin anew: between two slides, within a batch, before the first slide.
func TestStateOverWindowsIsTheModel(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 6))
		s := slid{first: rng.IntN(9), length: 1 + rng.IntN(6), slide: 2 + rng.IntN(3), timeout: 1 + rng.IntN(6), deadline: rng.IntN(6), initial: rng.IntN(2) == 0}
		s.checkpoint = s.slide * (1 + rng.IntN(3))
		crashes := rng.IntN(4) > 0
		kit := milltest.New(t, sec, s.job, dstream.WithParallelism(2))
		kit.Checkpoint(dstream.SnapshotEvery(1+rng.IntN(5)), dstream.RetainSnapshots(50)) // so that all plans are kept
		kit.StartAt(time.Unix(int64(s.first), 0))
		in := milltest.Input[string](kit, "words")
		var batches [][]word
		for range 14 {
			var names []string
			var rows []word
			for range rng.IntN(3) {
				names = append(names, []string{"a", "b", "c"}[rng.IntN(3)])
				rows = append(rows, dstream.KV(names[len(names)-1], 1))
			}
			in.Batch(names...)
			batches = append(batches, rows)
		}
		require.NoError(t, kit.Start()) // now: where the grid begins
		for kit.Epoch() < 14 {
			switch what := rng.IntN(6); {
			case what > 2 || !crashes:
			case what == 0:
				kit.Restart()
				kit.StartAt(kit.Now().Add(seconds(rng.IntN(4))))
			case what == 1:
				kit.CrashKeeping(rng, 50)
			default: // in a batch, when its deltas are written
				gate := kit.BlockOutput("each")
				kit.Advance(1)
				gate.Entered()
				kit.CrashKeeping(rng, 50)
				gate.Release()
			}
			require.NoError(t, kit.Start())
			kit.AdvanceTime([]time.Duration{sec, sec, 2 * sec, 3 * sec, 6 * sec}[rng.IntN(5)])
			kit.Await()
			require.NoError(t, kit.Err(), "seed %d", seed)
		}
		var times []int
		for _, at := range batchTimes(t, kit) {
			times = append(times, int(at/int64(sec)))
		}
		want := s.run(times, batches)
		for _, name := range slidOutputs {
			var got []string
			for _, b := range milltest.Output[word](kit, name) {
				text := "-"
				if b != nil {
					text = inAnyOrder(b)
				}
				got = append(got, text)
			}
			require.Equal(t, want[name], got, "seed %d, %+v: %s at %v", seed, s, name, times)
		}
	}
}
