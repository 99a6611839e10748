package staterdd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// reload gives what a later run has: another operator, and maps filled in another order.
func reload[K comparable, V, S, M any](t testing.TB, f *fixture[K, V, S, M], spec Spec[K, V, S, M], o Options, seed uint64) *fixture[K, V, S, M] {
	t.Helper()
	op, err := NewOperator(spec, o)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 1))
	var loaded []*statemap.Map[K, S]
	for _, rec := range f.cur.Records() {
		m, err := op.NewMap()
		require.NoError(t, err)
		var all []Timed[K, S]
		for k, e := range rec.StateMap.All() {
			all = append(all, Timed[K, S]{k, e.State, e.Time})
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, e := range all {
			require.NoError(t, m.Put(e.Key, e.State, e.Time))
		}
		loaded = append(loaded, m)
	}
	b := f.cur.Batch()
	b.Time = at(f.cur.Time())
	cur, err := op.FromMaps(b, loaded)
	require.NoError(t, err)
	require.True(t, cur.Sealed())
	return &fixture[K, V, S, M]{t: t, op: op, cur: cur, exec: f.exec, epoch: f.epoch, parts: f.parts}
}

// deltaOf is what a version changed, partition by partition, in order.
func deltaOf[K comparable, S, M any](t testing.TB, r *MapWithStateRDD[K, S, M]) (out []string) {
	t.Helper()
	for i, rec := range r.Records() {
		d, err := rec.StateMap.Delta()
		require.NoError(t, err)
		for e := range d {
			out = append(out, fmt.Sprint(i, e))
		}
	}
	return out
}

// CP1, report 4: versions made of loaded maps go on as if nothing had happened: the same
// outputs in the same order, the same changes in the same order, the same times.
func TestReloadedStateGoesOn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		timeout := rapid.Int64Range(1, 60).Draw(r, "timeout")
		scan := rapid.SampledFrom([]ScanPolicy{EveryBatch, AtCheckpoint}).Draw(r, "scan")
		spec := modelSpec().NumPartitions(3).Timeout(time.Duration(timeout)).TimeoutScan(scan)
		o := Options{Slide: 10}
		whole, cut := start(t, spec, o, 0), start(t, spec, o, 0)
		now := int64(0)
		for range rapid.IntRange(1, 12).Draw(r, "batches") {
			// A run that is down has no batches: the next one comes later.
			now += 10 * rapid.Int64Range(1, 4).Draw(r, "slides")
			if rapid.Bool().Draw(r, "reload") {
				cut = reload(t, cut, spec, o, rapid.Uint64().Draw(r, "seed"))
			}
			data := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) rdd.Pair[string, int] {
				return kv(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(r, "key"), rapid.IntRange(0, 8).Draw(r, "value"))
			}), 0, 8).Draw(r, "data")
			require.Equal(r, whole.batch(now, data...), cut.batch(now, data...))
			require.Equal(r, deltaOf(t, whole.cur), deltaOf(t, cut.cur))
			require.Equal(r, timesOf(t, whole.cur), timesOf(t, cut.cur))
			verifyIndex(r, cut.op, cut.cur)
		}
	})
}

// Design 8: deadlines that passed while nobody ran fire once, in the next batch, after its data.
func TestReloadedDeadlines(t *testing.T) {
	var log []string
	do := map[string]keyedAct{"again": {deadline: 200}}
	spec := keyedSpec(do, &log)
	f := start(t, spec, Options{Slide: 10}, 0)
	set := func(deadline int64) keyedAct { return keyedAct{update: true, state: 1, deadline: deadline} }
	f.batch(10, kv("late", set(30)), kv("early", set(20)), kv("again", set(25)), kv("data", set(20)),
		kv("far", set(500)), kv("alone", keyedAct{deadline: 40}))
	f = reload(t, f, spec, Options{Slide: 10}, 7)
	out := f.batch(100, kv("data", set(300)))
	require.Equal(t, []string{"early", "again", "late", "alone"}, log, "data has a later deadline by now")
	require.Equal(t, "1 data", out[0])
	log = nil
	delete(do, "again")
	f = reload(t, f, spec, Options{Slide: 10}, 8)
	f.batch(210)
	require.Equal(t, []string{"again"}, log, "each deadline fires once")
	require.Equal(t, map[string]st[int]{"far": {1, 500}, "data": {1, 300}}, timesOf(t, f.cur))
}

// Design 8: a timeout that is set or changed between two runs holds for the keys there are.
func TestReloadedTimeoutChanged(t *testing.T) {
	seen := func(k string, v rdd.Option[int], s *State[int]) string {
		if !s.IsTimingOut() {
			s.Update(1)
		}
		return k
	}
	spec := Function(seen).NumPartitions(2)
	f := start(t, spec, Options{Slide: 10}, 0)
	f.batch(10, kv("a", 1), kv("b", 1))
	f.batch(20, kv("b", 1))
	f = reload(t, f, spec.Timeout(15), Options{Slide: 10}, 3)
	require.Equal(t, []string{"a"}, f.batch(30))
	f = reload(t, f, spec.Timeout(100), Options{Slide: 10}, 3)
	require.Empty(t, f.batch(120), "20 is not before 120 - 100")
	require.Equal(t, []string{"b"}, f.batch(130))
}

func TestFromMapsRefuses(t *testing.T) {
	op, err := NewOperator(countSpec().NumPartitions(2), Options{})
	require.NoError(t, err)
	open := func() *statemap.Map[string, int] {
		m, err := op.NewMap()
		require.NoError(t, err)
		return m
	}
	closed := open()
	closed.Seal()
	given := [][]*statemap.Map[string, int]{nil, {open()}, {open(), nil}, {closed, open()}}
	for _, maps := range given {
		_, err = op.FromMaps(Batch{Epoch: 7, Time: at(1)}, maps)
		require.ErrorIs(t, err, ErrMaps)
		require.ErrorContains(t, err, "epoch 7")
	}
	r, err := op.FromMaps(Batch{Epoch: 7, Time: at(50)}, []*statemap.Map[string, int]{open(), open()})
	require.NoError(t, err)
	_, _, err = op.Advance(r, nil, Batch{Epoch: 8, Time: at(50)})
	require.ErrorIs(t, err, ErrBatchTime, "the batch of the loaded version was at 50")
}

// CP3: the rows of a version come in the order of the keys, whatever its maps went through: one
// that was loaded gives what the one that was computed gave, also where older orders are known.
func TestSnapshotsInKeyOrder(t *testing.T) {
	spec := countSpec().NumPartitions(3).Timeout(20)
	rows := func(f *fixture[string, int, int, rdd.Pair[string, int]]) []string {
		var out []string
		pairs, err := rdd.Collect(t.Context(), rdd.Glom(f.cur.Snapshots()))
		require.NoError(t, err)
		times, err := rdd.Collect(t.Context(), rdd.Glom(f.cur.StateTimes()))
		require.NoError(t, err)
		for i := range pairs {
			byKey := func(a, b rdd.Pair[string, int]) int { return strings.Compare(a.Key, b.Key) }
			require.True(t, slices.IsSortedFunc(pairs[i], byKey))
			out = append(out, fmt.Sprint(i, pairs[i], times[i]))
		}
		return out
	}
	f := start(t, spec, Options{Secret: 1}, 1)
	for b := range 12 {
		var data []rdd.Pair[string, int]
		for i := range 40 {
			data = append(data, rdd.KV(fmt.Sprint("k", (b*17+i*i*7)%300), 1))
		}
		f.batch(int64(10*(b+1)), data...)
		want := rows(f)
		again := reload(t, f, spec, Options{Secret: uint64(b + 2)}, uint64(b))
		require.Equal(t, want, rows(again), "batch %d", b)
		if b%3 == 2 {
			f = again
		}
	}
}
