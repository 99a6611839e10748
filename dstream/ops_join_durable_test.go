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
)

// joins has every join of two streams, and one of a window with a batch.
func joins(parts int) dstream.Job {
	return func(c ssc) error {
		a, b := dstream.QueueNamed[kv](c, "a", 1), dstream.QueueNamed[kv](c, "b", 1)
		by := dstream.NumPartitions(parts)
		none := func(o dstream.Option[int]) string { return option(o) }
		show := func(s dstream.Stream[string], name string) { dstream.Print(s, 0, dstream.Name(name)) }
		show(dstream.Map(dstream.Join(a, b, by), func(p dstream.Pair[string, dstream.Joined[int, int]]) string {
			return fmt.Sprintf("%s %d %d", p.Key, p.Value.Left, p.Value.Right)
		}), "inner")
		show(dstream.Map(dstream.LeftOuterJoin(a, b, by), func(p dstream.Pair[string, dstream.Joined[int, dstream.Option[int]]]) string {
			return fmt.Sprintf("%s %d %s", p.Key, p.Value.Left, none(p.Value.Right))
		}), "left")
		show(dstream.Map(dstream.RightOuterJoin(a, b, by), func(p dstream.Pair[string, dstream.Joined[dstream.Option[int], int]]) string {
			return fmt.Sprintf("%s %s %d", p.Key, none(p.Value.Left), p.Value.Right)
		}), "right")
		show(dstream.Map(dstream.FullOuterJoin(a, b, by), func(p dstream.Pair[string, dstream.Joined[dstream.Option[int], dstream.Option[int]]]) string {
			return fmt.Sprintf("%s %s %s", p.Key, none(p.Value.Left), none(p.Value.Right))
		}), "full")
		show(dstream.Map(dstream.Cogroup(a, b, by), func(p dstream.Pair[string, dstream.Grouped[int, int]]) string {
			return fmt.Sprintf("%s %v %v", p.Key, p.Value.Left, p.Value.Right)
		}), "cogroup")
		show(dstream.Map(dstream.SubtractByKey(a, b, by), func(p kv) string { return fmt.Sprint(p) }), "subtract")
		show(dstream.Map(dstream.Join(dstream.Window(a, 3*time.Second, time.Second).Named("last three"), b, by),
			func(p dstream.Pair[string, dstream.Joined[int, int]]) string {
				return fmt.Sprintf("%s %d %d", p.Key, p.Value.Left, p.Value.Right)
			}), "window")
		return nil
	}
}

// CP1: joins give what a plain model gives, in every batch, with the job killed after every batch; of a
// window, with what earlier runs have read, and with ticks that nobody saw.
func TestJoinsSurvive(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 20))
		kit := milltest.New(t, time.Second, joins(1+rng.IntN(3)), dstream.WithParallelism(2))
		kit.Checkpoint(dstream.SnapshotEvery(1 + rng.IntN(4)))
		a, b := milltest.Input[kv](kit, "a"), milltest.Input[kv](kit, "b")
		draw := func() (rows []kv) {
			for range rng.IntN(5) {
				rows = append(rows, dstream.KV([]string{"a", "b", "c"}[rng.IntN(3)], rng.IntN(9)))
			}
			return rows
		}
		type batch struct {
			at int
			as []kv
		}
		var before []batch
		tick := 0
		require.NoError(t, kit.Start())
		begin := kit.Now()
		for n := range 10 {
			as, bs := draw(), draw()
			a.Batch(as...)
			b.Batch(bs...)
			if n > 0 {
				kit.CrashKeeping(rng, 50)
				if down := rng.IntN(3); down > 0 {
					kit.StartAt(kit.Now().Add(time.Duration(down) * time.Second))
				}
			}
			kit.Tick(1)
			require.NoError(t, kit.Err(), "seed %d", seed)
			tick = int(kit.Now().Sub(begin) / time.Second)
			before = append(before, batch{tick, as})
			var window []kv
			for _, x := range before {
				if x.at > tick-3 {
					window = append(window, x.as...)
				}
			}
			rest := []string{}
			for _, p := range as {
				if !slices.ContainsFunc(bs, func(q kv) bool { return q.Key == p.Key }) {
					rest = append(rest, fmt.Sprint(p))
				}
			}
			slices.Sort(rest)
			for name, want := range map[string][]string{
				"inner": joinModel(as, bs, false, false), "left": joinModel(as, bs, true, false),
				"right": joinModel(as, bs, false, true), "full": joinModel(as, bs, true, true),
				"cogroup": groupModel(as, bs), "subtract": rest, "window": joinModel(window, bs, false, false),
			} {
				all := milltest.Output[string](kit, name)
				require.Len(t, all, n+1, "seed %d: %s", seed, name)
				got := slices.Sorted(slices.Values(all[n]))
				require.Equal(t, want, append([]string{}, got...), "seed %d, batch %d: %s", seed, n, name)
			}
		}
		require.NoError(t, kit.Stop())
	}
}

// groupModel is the cogroup of two batches, sorted.
func groupModel(as, bs []kv) []string {
	groups := map[string]*[2][]int{}
	for side, rows := range [][]kv{as, bs} {
		for _, p := range rows {
			if groups[p.Key] == nil {
				groups[p.Key] = &[2][]int{}
			}
			groups[p.Key][side] = append(groups[p.Key][side], p.Value)
		}
	}
	lines := []string{}
	for k, g := range groups {
		lines = append(lines, fmt.Sprintf("%s %v %v", k, g[0], g[1]))
	}
	slices.Sort(lines)
	return lines
}
