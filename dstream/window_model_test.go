package dstream_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/partitioner"
)

// tickModel runs a window tick by tick: every tick of the grid has a batch, empty
// where there was none in truth.
type tickModel struct {
	length, slide int
	batches       map[int][]kv // by tick; only those that there were
	last          int          // the newest tick that was run

	windows [][]int        // batches of the windows that are due
	given   map[int]bool   // batches that some output had
	sums    map[string]int // of the inverse window, as Spark's recurrence has it
	order   []int
}

func (m *tickModel) batchesIn(after, until int) (ticks []int) {
	for _, t := range m.order {
		if t > after && t <= until {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func (m *tickModel) sum(ticks []int) map[string]int {
	sums := map[string]int{}
	for _, t := range ticks {
		for _, p := range m.batches[t] {
			sums[p.Key] += p.Value
		}
	}
	return sums
}

// batch runs all ticks up to t, which has a batch, and gives what is due: the
// batches of the window, and the inverse window's sums.
func (m *tickModel) batch(t int, rows []kv) (due bool, ticks []int, sums map[string]int) {
	m.batches[t] = rows
	m.order = append(m.order, t)
	for m.last++; ; m.last++ {
		if at := m.last; at%m.slide == 0 {
			m.windows = append(m.windows, m.batchesIn(at-m.length, at))
			old := m.sum(m.batchesIn(at-m.slide-m.length, at-m.length))
			came := m.sum(m.batchesIn(at-m.slide, at))
			next := map[string]int{}
			for k, v := range m.sums {
				next[k] = v - old[k] + came[k]
			}
			for k, v := range came {
				if _, ok := m.sums[k]; !ok {
					next[k] = v
				}
			}
			m.sums = next
		}
		if m.last == t {
			break
		}
	}
	if len(m.windows) == 0 {
		return false, nil, nil
	}
	newest := m.windows[len(m.windows)-1]
	for _, w := range m.windows { // no batch of a window is lost
		for _, b := range w {
			if !m.given[b] && !slices.Contains(newest, b) && !slices.Contains(ticks, b) {
				ticks = append(ticks, b)
			}
		}
	}
	sums = m.sum(ticks)
	for k, v := range m.sums {
		sums[k] += v
	}
	ticks = append(ticks, newest...)
	for _, b := range ticks {
		m.given[b] = true
	}
	m.windows = nil
	return true, ticks, sums
}

func sortedSums(sums map[string]int, zero bool) []string {
	out := []string{}
	for k, v := range sums {
		if v != 0 || zero {
			out = append(out, fmt.Sprint(k, v))
		}
	}
	slices.Sort(out)
	return out
}

// Every windowed operator gives what the model gives, for any length and slide, and
// any ticks skipped.
func TestWindowsAreTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		row := rapid.Custom(func(rt *rapid.T) kv {
			return kv{Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key"), Value: rapid.IntRange(1, 9).Draw(rt, "value")}
		})
		batches := rapid.SliceOfN(rapid.SliceOfN(row, 0, 5), 1, 12).Draw(rt, "batches")
		jumps := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 2, 3, 7}), len(batches), len(batches)).Draw(rt, "jumps")
		length, slide := rapid.IntRange(1, 6).Draw(rt, "length"), rapid.IntRange(1, 5).Draw(rt, "slide")
		l, s := time.Duration(length)*sec, time.Duration(slide)*sec
		parts := rapid.IntRange(1, 3).Draw(rt, "partitions")
		by, lies := dstream.NumPartitions(parts), rapid.Bool().Draw(rt, "lies")

		r := newRig(t, sec, func(c ssc) error {
			in := dstream.From(c, "in", newScript(rapid.IntRange(1, 2).Draw(rt, "sources"), batches...))
			values := dstream.Map(in, func(p kv) string { return fmt.Sprint(p.Value) })
			numbers := dstream.Map(in, func(p kv) int { return p.Value })
			keys := dstream.Map(in, func(p kv) string { return p.Key })
			dstream.Print(dstream.Window(in, l, s), 1, dstream.Name("window"))
			dstream.Print(dstream.ReduceByWindow(values, func(a, b string) string { return a + b }, l, s), 1, dstream.Name("reduce"))
			if lies { // nothing to move then
				in = dstream.PartitionBy(in, partitioner.Hash[string](parts))
			}
			dstream.Print(dstream.ReduceByKeyAndWindow(in, add, l, s, by), 1, dstream.Name("byKey"))
			dstream.Print(dstream.GroupByKeyAndWindow(in, l, s, by), 1, dstream.Name("group"))
			dstream.Print(dstream.CountByWindow(in, l, s), 1, dstream.Name("count"))
			dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, nil, l, s, by), 1, dstream.Name("inverse"))
			if slide <= length {
				dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, subtract, notZero, l, s, by), 1, dstream.Name("filter"))
				dstream.Print(dstream.CountByValueAndWindow(keys, l, s, by), 1, dstream.Name("values"))
				dstream.Print(dstream.ReduceByWindowInverse(numbers, add, subtract, l, s), 1, dstream.Name("sum"))
			}
			return nil
		}).start()
		defer func() { require.NoError(rt, r.ssc.Stop(context.Background())) }()

		m := &tickModel{length: length, slide: slide, batches: map[int][]kv{}, given: map[int]bool{}, sums: map[string]int{}}
		var rows [][]kv
		var reduced [][]string
		var plain, inverse, group, values []string
		var count [][]int64
		var sum [][]int
		var times []time.Time
		tick := 0
		for i, batch := range batches {
			tick += jumps[i]
			r.jump(jumps[i])
			due, ticks, sums := m.batch(tick, batch)
			if !due {
				continue
			}
			times = append(times, zero.Add(time.Duration(tick)*sec))
			w, text, groups, counts := []kv{}, "", map[string][]int{}, map[string]int{}
			for _, b := range ticks {
				for _, p := range m.batches[b] {
					w = append(w, p)
					text += fmt.Sprint(p.Value)
					groups[p.Key] = append(groups[p.Key], p.Value)
					counts[p.Key]++
				}
			}
			rows = append(rows, w)
			reduced = append(reduced, []string{})
			if text != "" {
				reduced[len(reduced)-1] = []string{text}
			}
			var g []string
			for k, v := range groups {
				g = append(g, fmt.Sprint(k, v))
			}
			slices.Sort(g)
			group = append(group, fmt.Sprint(g))
			plain = append(plain, fmt.Sprint(sortedSums(m.sum(ticks), true)))
			inverse = append(inverse, fmt.Sprint(sortedSums(sums, true)))
			values = append(values, fmt.Sprint(sortedSums(counts, true)))
			if n := int64(len(w)); len(sums) == 0 {
				count, sum = append(count, []int64{}), append(sum, []int{})
			} else {
				total := 0
				for _, p := range w {
					total += p.Value
				}
				count, sum = append(count, []int64{n}), append(sum, []int{total})
			}
		}
		lines := func(name string) (all []string) {
			for _, b := range texts(out[kv](r, name), func(p kv) string { return fmt.Sprint(p.Key, p.Value) }) {
				all = append(all, fmt.Sprint(b))
			}
			return all
		}
		require.Equal(rt, rows, append([][]kv(nil), out[kv](r, "window")...), "Window, in order")
		require.Equal(rt, times, r.times["window"])
		require.Equal(rt, reduced, append([][]string(nil), out[string](r, "reduce")...), "ReduceByWindow, in order")
		require.Equal(rt, plain, lines("byKey"), "ReduceByKeyAndWindow")
		require.Equal(rt, inverse, lines("inverse"), "ReduceByKeyAndWindowInverse")
		var gotGroups []string
		for _, b := range texts(out[dstream.Pair[string, []int]](r, "group"), func(p dstream.Pair[string, []int]) string { return fmt.Sprint(p.Key, p.Value) }) {
			gotGroups = append(gotGroups, fmt.Sprint(b))
		}
		require.Equal(rt, group, gotGroups, "GroupByKeyAndWindow, values in order")
		if slide > length {
			return // the recurrence is not the window then, as in Spark
		}
		require.Equal(rt, plain, lines("filter"), "inverse with a filter is the plain window")
		require.Equal(rt, count, append([][]int64(nil), out[int64](r, "count")...), "CountByWindow")
		require.Equal(rt, sum, append([][]int(nil), out[int](r, "sum")...), "ReduceByWindowInverse")
		var gotValues []string
		for _, b := range texts(out[dstream.Pair[string, int64]](r, "values"), func(p dstream.Pair[string, int64]) string { return fmt.Sprint(p.Key, p.Value) }) {
			gotValues = append(gotValues, fmt.Sprint(b))
		}
		require.Equal(rt, values, gotValues, "CountByValueAndWindow")
	})
}
