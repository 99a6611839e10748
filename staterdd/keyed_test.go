package staterdd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

// keyedAct tells the keyed test function what to do with the key.
type keyedAct struct {
	update, remove, clear bool
	state                 int
	deadline              int64 // 0: leave it
}

// keyedSpec does what the record says; in a deadline call, what onDeadline says.
func keyedSpec(onDeadline map[string]keyedAct, log *[]string) Spec[string, keyedAct, int, string] {
	return Keyed(func(c *Call[int, string], k string, v rdd.Option[keyedAct]) error {
		a, ok := v.Get()
		if !ok {
			d, has := c.Deadline()
			if !has || !d.Before(c.Batch.Time) {
				panic("a deadline call without a passed deadline")
			}
			*log = append(*log, k)
			a = onDeadline[k]
			c.Emit("deadline of " + k)
		} else {
			c.Emit("1 " + k)
			c.Emit("2 " + k)
		}
		if c.State.IsTimingOut() {
			panic("state is usable in deadline calls")
		}
		if a.remove {
			c.State.Remove()
		}
		if a.update {
			c.State.Update(a.state)
		}
		if a.clear {
			c.ClearDeadline()
		}
		if a.deadline != 0 {
			c.SetDeadline(at(a.deadline))
		}
		return nil
	}).NumPartitions(1)
}

func TestDeadlines(t *testing.T) {
	type states = map[string]st[int]
	var log []string
	do := map[string]keyedAct{
		"keep":  {update: true, state: 9},
		"again": {deadline: 50},
		"both":  {update: true, state: 8, deadline: 60},
		"gone":  {remove: true},
		"stub":  {remove: true, deadline: 70},
	}
	f := start(t, keyedSpec(do, &log), Options{Slide: 10}, 0)
	set := func(n int, deadline int64) keyedAct { return keyedAct{update: true, state: n, deadline: deadline} }
	out := f.batch(10,
		kv("keep", set(1, 20)), kv("again", set(2, 15)), kv("both", set(3, 20)), kv("gone", set(4, 20)),
		kv("stub", set(5, 18)), kv("none", set(6, 20)), kv("free", keyedAct{update: true, state: 7}),
		kv("alone", keyedAct{deadline: 20}), kv("nothing", keyedAct{}))
	require.Equal(t, []string{"1 keep", "2 keep"}, out[:2])
	require.Len(t, out, 18)
	require.Equal(t, states{
		"keep": {1, 20}, "again": {2, 15}, "both": {3, 20}, "gone": {4, 20}, "stub": {5, 18}, "none": {6, 20},
		"free": {7, noDeadline}, "alone": {0, ^20},
	}, timesOf(t, f.cur))
	require.Equal(t, map[string]int{"keep": 1, "again": 2, "both": 3, "gone": 4, "stub": 5, "none": 6, "free": 7}, snapshotOf(t, f.cur))
	_, ok, err := f.cur.Get("alone")
	require.NoError(t, err)
	require.False(t, ok, "a deadline without state")

	require.Equal(t, []string{"deadline of again", "deadline of stub"}, f.batch(20), "strict: those at 20 wait")
	require.Equal(t, []string{"again", "stub"}, log)
	log = nil
	require.Len(t, f.batch(30), 5)
	require.Equal(t, []string{"alone", "both", "gone", "keep", "none"}, log, "by deadline, then key")
	// Removed unless updated or given a new deadline.
	require.Equal(t, states{
		"keep": {9, noDeadline}, "again": {2, 50}, "both": {8, 60}, "stub": {0, ^70}, "free": {7, noDeadline},
	}, timesOf(t, f.cur))

	// A record leaves the deadline alone, moves it both ways, clears it; remove takes it away.
	f.batch(40, kv("again", keyedAct{update: true, state: 22}), kv("both", keyedAct{deadline: 45}),
		kv("stub", keyedAct{update: true, state: 5}), kv("keep", keyedAct{deadline: 45}))
	require.Equal(t, states{
		"keep": {9, 45}, "again": {22, 50}, "both": {8, 45}, "stub": {5, 70}, "free": {7, noDeadline},
	}, timesOf(t, f.cur))
	log = nil
	f.batch(50, kv("both", keyedAct{clear: true}), kv("stub", keyedAct{remove: true}), kv("again", keyedAct{deadline: 500}))
	require.Equal(t, []string{"keep"}, log)
	require.Equal(t, states{
		"keep": {9, noDeadline}, "again": {22, 500}, "both": {8, noDeadline}, "free": {7, noDeadline},
	}, timesOf(t, f.cur))
	log = nil
	f.batch(60, kv("keep", keyedAct{remove: true, deadline: 65}), kv("free", keyedAct{remove: true}))
	require.Equal(t, states{"keep": {0, ^65}, "again": {22, 500}, "both": {8, noDeadline}}, timesOf(t, f.cur))
	f.batch(62, kv("keep", keyedAct{clear: true}))
	require.Equal(t, states{"again": {22, 500}, "both": {8, noDeadline}}, timesOf(t, f.cur))
	f.batch(600, kv("late", keyedAct{update: true, state: 1, deadline: 1}))
	require.Equal(t, []string{"late", "again"}, log, "a deadline in the past fires in the same batch, after the data")
}

// Deadlines are state: they survive Restore, abort and retry, and fire once.
func TestDeadlinesAreState(t *testing.T) {
	var log []string
	f := start(t, keyedSpec(nil, &log), Options{Slide: 10}, 0)
	f.batch(10, kv("a", keyedAct{update: true, state: 1, deadline: 20}), kv("b", keyedAct{deadline: 1000}))
	all, err := rdd.Collect(t.Context(), f.cur.StateTimes())
	require.NoError(t, err)
	op, err := NewOperator(keyedSpec(nil, &log).NumPartitions(3), Options{Slide: 10})
	require.NoError(t, err)
	cur, err := op.Restore(at(10), func(yield func(Timed[string, int]) bool) {
		for _, e := range all {
			if !yield(e) {
				return
			}
		}
	})
	require.NoError(t, err)
	g := &fixture[string, keyedAct, int, string]{t: t, op: op, cur: cur, exec: rdd.Local(1, nil), parts: 1}
	for range 3 {
		next, err := g.next(600, kv("b", keyedAct{deadline: 500}))
		require.NoError(t, err)
		require.NoError(t, next.Seal())
		require.ElementsMatch(t, []string{"1 b", "2 b", "deadline of a", "deadline of b"}, mappedOf(t, next))
		require.NoError(t, next.Abort())
	}
	require.Len(t, g.batch(600), 1)
	require.Empty(t, g.batch(700))
	require.Equal(t, map[string]st[int]{"b": {0, ^1000}}, timesOf(t, g.cur))
	require.Equal(t, []string{"deadline of b"}, g.batch(1001))
	require.Empty(t, timesOf(t, g.cur))
}

// The initial state of a keyed operator has no deadlines. The values that go with a deadline
// call are private copies like any other.
func TestKeyedReferences(t *testing.T) {
	spec := Keyed(func(c *Call[map[string]int, int], k string, v rdd.Option[int]) error {
		m := c.State.OrElse(map[string]int{})
		m["n"] += v.OrElse(100)
		c.SetDeadline(c.Batch.Time.Add(10))
		if v.IsSome() {
			c.State.Update(m)
		}
		return nil
	}).InitialState(func(yield func(string, map[string]int) bool) { yield("a", map[string]int{"n": 1}) })
	f := start(t, spec, Options{Slide: 10}, 10)
	require.Equal(t, map[string]st[map[string]int]{"a": {map[string]int{"n": 1}, noDeadline}}, timesOf(t, f.cur))
	first := f.cur
	require.NoError(t, first.Retain())
	f.batch(10, kv("a", 1), kv("a", 1))
	require.Equal(t, map[string]map[string]int{"a": {"n": 1}}, snapshotOf(t, first))
	require.Equal(t, map[string]map[string]int{"a": {"n": 3}}, snapshotOf(t, f.cur))
	second := f.cur
	require.NoError(t, second.Retain())
	f.batch(30)
	require.Equal(t, map[string]map[string]int{"a": {"n": 3}}, snapshotOf(t, second))
	require.Equal(t, map[string]st[map[string]int]{"a": {map[string]int{"n": 3}, 40}}, timesOf(t, f.cur),
		"a change in place without Update is lost")
}

func TestDeadlineRange(t *testing.T) {
	for _, c := range []struct {
		t    time.Time
		want int64
	}{
		{time.Time{}, 0}, {at(-5), 0}, {at(5), 5},
		{time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), noDeadline - 1},
	} {
		require.Equal(t, c.want, clampDeadline(c.t))
		for _, has := range []bool{true, false} {
			d, ok, state := UnpackDeadline(packDeadline(c.want, has))
			require.True(t, ok)
			require.Equal(t, has, state)
			require.Equal(t, c.want, d)
		}
	}
	_, ok, state := UnpackDeadline(noDeadline)
	require.False(t, ok)
	require.True(t, state)
}
