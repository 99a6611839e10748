package staterdd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/rdd"
)

type total struct{ Sum, Idle int }

// totals sums up values: a key goes after three calls without data, or by a value of -1; -2 is a
// key that does not want to begin.
func totals(trace func(k string, values []int)) Spec[string, int, total, rdd.Pair[string, total]] {
	return UpdateErr(func(_ time.Time, k string, values []int, old rdd.Option[total]) (rdd.Option[total], error) {
		trace(k, values)
		s := old.OrElse(total{})
		s.Idle++
		for _, v := range values {
			if v < 0 {
				return rdd.None[total](), nil
			}
			s.Sum, s.Idle = s.Sum+v, 0
		}
		if s.Idle > 3 {
			return rdd.None[total](), nil
		}
		return rdd.Some(s), nil
	})
}

// The rule against plain maps: any batches, partitions, blocks, aborts, with and without calls of
// keys that have no data; calls and outputs in the order that is promised.
func TestUpdateIsTheModel(t *testing.T) { // US1, US3
	rapid.Check(t, func(rt *rapid.T) {
		var calls []string
		parts := rapid.IntRange(1, 3).Draw(rt, "partitions")
		touched := rapid.Bool().Draw(rt, "only with data")
		spec := totals(func(k string, values []int) { calls = append(calls, fmt.Sprint(k, values)) }).NumPartitions(parts)
		if touched {
			spec = spec.OnlyWithData()
		}
		want := map[string]total{}
		for i := range rapid.IntRange(0, 5).Draw(rt, "initial") {
			want[fmt.Sprint("k", i)] = total{Sum: i}
		}
		spec = spec.InitialState(maps.All(maps.Clone(want)))
		f := start(t, spec, Options{BlockSize: rapid.IntRange(1, 4).Draw(rt, "block")}, 0)
		f.exec = rdd.Local(1, nil)
		for n := range rapid.IntRange(1, 15).Draw(rt, "batches") {
			data := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) rdd.Pair[string, int] {
				return kv(fmt.Sprint("k", rapid.IntRange(0, 12).Draw(rt, "key")), rapid.IntRange(-1, 4).Draw(rt, "value"))
			}), 0, 20).Draw(rt, "data")
			now := int64(n + 1)
			// What the data are called for, in first-seen order of each partition.
			lists, first := map[string][]int{}, make([][]string, parts)
			for _, p := range data {
				i := f.op.Partitioner().Partition(p.Key)
				if lists[p.Key] == nil {
					first[i] = append(first[i], p.Key)
				}
				lists[p.Key] = append(lists[p.Key], p.Value)
			}
			var wantCalls []string
			var wantOut []rdd.Pair[string, total]
			before, next := want, maps.Clone(want)
			call := func(k string) {
				wantCalls = append(wantCalls, fmt.Sprint(k, lists[k]))
				s, alive := next[k], true
				s.Idle++
				for _, v := range lists[k] {
					if alive = v >= 0; !alive {
						break
					}
					s.Sum, s.Idle = s.Sum+v, 0
				}
				if alive && s.Idle <= 3 {
					next[k] = s
				} else {
					delete(next, k)
				}
			}
			for i := range parts {
				for _, k := range first[i] {
					call(k)
				}
				keys := slices.SortedFunc(maps.Keys(next), f.op.key.Compare)
				for _, k := range keys {
					if f.op.Partitioner().Partition(k) != i {
						continue
					}
					if lists[k] == nil && !touched {
						call(k)
					}
					if s, ok := next[k]; ok {
						wantOut = append(wantOut, kv(k, s))
					}
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "abort") == 0 {
				gone, err := f.next(now, data...)
				require.NoError(rt, err)
				if rapid.Bool().Draw(rt, "sealed") {
					require.NoError(rt, gone.Seal())
				}
				require.NoError(rt, gone.Abort())
				require.Equal(rt, before, snapshotOf(t, f.cur))
			}
			calls = nil
			out := f.batch(now, data...)
			require.Equal(rt, wantCalls, calls)
			require.Equal(rt, append([]rdd.Pair[string, total](nil), wantOut...), append([]rdd.Pair[string, total](nil), out...))
			require.Equal(rt, next, snapshotOf(t, f.cur))
			require.EqualValues(rt, len(wantCalls), f.cur.Stats().Calls)
			require.EqualValues(rt, len(next), f.cur.Stats().Keys)
			want = next
		}
	})
}

// A state that comes back equal is not in the delta, and keeps its time.
func TestEqualStatesAreNotWritten(t *testing.T) {
	t.Run("==", func(t *testing.T) {
		notWritten(t, func(v []int, old int) int { return old + len(v) }, nil)
	})
	t.Run("stored form", func(t *testing.T) {
		notWritten(t, func(v []int, old map[string]int) map[string]int {
			if old == nil {
				old = map[string]int{}
			}
			old["n"] += len(v) // in place: it is a copy
			return old
		}, nil)
	})
	t.Run("immutable", func(t *testing.T) {
		notWritten(t, func(v []int, old []int) []int { return append(slices.Clip(old), v...) }, func(s updateSpec[[]int]) updateSpec[[]int] { return s.Immutable() })
	})
	t.Run("own", func(t *testing.T) {
		notWritten(t, func(v []int, old [2]int) [2]int { return [2]int{old[0] + len(v), old[1] + 1} },
			func(s updateSpec[[2]int]) updateSpec[[2]int] {
				return s.Same(func(a, b [2]int) bool { return a[0] == b[0] })
			})
	})
}

type updateSpec[S any] = Spec[string, int, S, rdd.Pair[string, S]]

func notWritten[S any](t *testing.T, f func([]int, S) S, more func(updateSpec[S]) updateSpec[S]) {
	spec := Update[string](func(v []int, old rdd.Option[S]) rdd.Option[S] {
		var zero S
		return rdd.Some(f(v, old.OrElse(zero)))
	}).NumPartitions(1)
	if more != nil {
		spec = more(spec)
	}
	d := start(t, spec, Options{}, 0)
	d.batch(1, kv("a", 1), kv("b", 1), kv("c", 1))
	require.EqualValues(t, 3, d.cur.Stats().Changed)
	require.Len(t, d.batch(2), 3, "all are given all the same")
	require.EqualValues(t, 0, d.cur.Stats().Changed)
	require.Len(t, d.batch(3, kv("b", 2)), 3)
	require.EqualValues(t, 1, d.cur.Stats().Changed)
	times := timesOf(t, d.cur)
	require.Equal(t, []int64{1, 3, 1}, []int64{times["a"].Time, times["b"].Time, times["c"].Time})
	require.EqualValues(t, 3, d.cur.Stats().Calls)
}

// Values may be kept and appended to; states of older versions never change.
func TestUpdateReferences(t *testing.T) {
	d := start(t, Update[string](func(v []int, old rdd.Option[[]int]) rdd.Option[[]int] {
		s, ok := old.Get()
		if !ok {
			return rdd.Some(v) // kept as it is
		}
		for i := range s {
			s[i]++
		}
		return rdd.Some(append(s, v...))
	}).NumPartitions(1), Options{}, 0)
	d.batch(1, kv("a", 1), kv("b", 2), kv("a", 3))
	first := d.cur
	require.NoError(t, first.Retain())
	d.batch(2, kv("a", 7))
	d.batch(3)
	require.Equal(t, map[string][]int{"a": {1, 3}, "b": {2}}, snapshotOf(t, first))
	require.Equal(t, map[string][]int{"a": {3, 5, 8}, "b": {4}}, snapshotOf(t, d.cur))
	first.Release()
}

// A call that fails has the key, and the record where it has one; the batch leaves nothing.
func TestUpdateFails(t *testing.T) {
	boom := errors.New("boom")
	bad := "b"
	f := func(_ time.Time, k string, v []int, old rdd.Option[int]) (rdd.Option[int], error) {
		if k == bad && (old.IsSome() || len(v) > 1) {
			if len(v) > 0 {
				panic(boom)
			}
			return old, boom
		}
		return rdd.Some(old.OrElse(0) + len(v)), nil
	}
	d := start(t, UpdateErr(f).Named("sums"), Options{Parallelism: 1}, 0)
	d.batch(1, kv("a", 1), kv("b", 1), kv("c", 1))
	fails := func(want rdd.Origin, data ...rdd.Pair[string, int]) {
		next, err := d.next(2, data...)
		var re *rdd.RecordError
		require.ErrorAs(t, err, &re)
		require.ErrorIs(t, err, boom)
		require.Equal(t, "b", re.Key)
		require.Equal(t, "sums", re.Operator)
		require.Equal(t, want.Offset, re.Offset)
		require.NoError(t, next.Abort())
		require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, snapshotOf(t, d.cur))
	}
	fails(rdd.Origin{})
	d.parts = 1
	fails(rdd.Origin{Offset: 2}, kv("a", 1), kv("b", 1), kv("b", 2))

	// Guarded: the key stays as it was, and the others go on.
	g := &guardedExec{}
	d.exec = g
	out := d.batch(2, kv("a", 1), kv("b", 1), kv("d", 1))
	require.Equal(t, []rdd.Pair[string, int]{kv("a", 2), kv("b", 1), kv("c", 1), kv("d", 1)}, out)
	require.EqualValues(t, 1, d.cur.Stats().Skipped)
	out = d.batch(3)
	require.Equal(t, []rdd.Pair[string, int]{kv("a", 2), kv("b", 1), kv("c", 1), kv("d", 1)}, out)
	require.Len(t, g.skipped, 2)
	bad = ""
	d.batch(4, kv("b", 1))
	require.Equal(t, 2, snapshotOf(t, d.cur)["b"])
}

// A key that equals nothing fails its record.
func TestUpdateNaN(t *testing.T) {
	spec := Update[float64](func(v []int, old rdd.Option[int]) rdd.Option[int] { return rdd.Some(old.OrElse(0) + len(v)) })
	nan := 0.0
	nan /= nan
	d := &fixture[float64, int, int, rdd.Pair[float64, int]]{}
	*d = *startFloat(t, spec)
	next, err := d.next(1, kv(1.0, 1), kv(nan, 1))
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.NoError(t, next.Abort())
	d.exec = &guardedExec{}
	require.Equal(t, []rdd.Pair[float64, int]{kv(1.0, 1)}, d.batch(1, kv(1.0, 1)))
}

func startFloat(t *testing.T, spec Spec[float64, int, int, rdd.Pair[float64, int]]) *fixture[float64, int, int, rdd.Pair[float64, int]] {
	return start(t, spec, Options{Parallelism: 1}, 0)
}

// A task that is cancelled between two blocks says so: no call is at fault.
func TestUpdateCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	d := start(t, totals(func(string, []int) { cancel() }), Options{Parallelism: 1}, 0)
	_, stage, err := d.op.Advance(d.cur, d.shuffle([]rdd.Pair[string, int]{kv("a", 1), kv("b", 2)}), Batch{Epoch: 1, Time: at(1)})
	require.NoError(t, err)
	err = rdd.Materialize(ctx, d.exec, stage)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "panic")
}

func TestUpdateAlone(t *testing.T) {
	op, err := NewOperator(totals(func(string, []int) {}), Options{})
	require.NoError(t, err)
	p, err := op.NewPartition()
	require.NoError(t, err)
	require.NoError(t, p.Begin(Batch{Epoch: 1, Time: at(1)}))
	require.NoError(t, p.Update([]string{"b", "a", "b"}, []int{1, 2, 3}))
	s := rdd.Shuffle(rdd.Parallelize([]rdd.Pair[string, int]{kv("c", 4)}, 1), op.Partitioner())
	require.NoError(t, rdd.Materialize(context.Background(), rdd.Local(1, nil), s.Stage()))
	for _, r := range s.Blocks(0) {
		require.NoError(t, p.UpdateRows(r))
	}
	require.NoError(t, p.Expire())
	rec := p.Seal()
	require.Equal(t, []rdd.Pair[string, total]{kv("a", total{Sum: 2}), kv("b", total{Sum: 4}), kv("c", total{Sum: 4})}, slices.Collect(rec.Mapped.All()))
}

func TestUpdateValidation(t *testing.T) {
	spec := totals(func(string, []int) {})
	require.Empty(t, spec.Validate())
	require.ErrorIs(t, errors.Join(spec.Timeout(time.Second).Validate()...), ErrTimeout)
	require.ErrorIs(t, errors.Join(spec.TimeoutScan(AtCheckpoint).Validate()...), ErrScan)
	require.ErrorIs(t, errors.Join(spec.Same(nil).Validate()...), ErrUpdate)
	require.ErrorIs(t, errors.Join(modelSpec().Same(func(a, b int) bool { return a == b }).Validate()...), ErrUpdate)
	require.ErrorIs(t, errors.Join(modelSpec().OnlyWithData().Validate()...), ErrUpdate)
	require.ErrorIs(t, errors.Join(Update[string, int, int](nil).Validate()...), ErrNoFunction)
	require.ErrorIs(t, errors.Join(UpdateTime[string, int, int](nil).Validate()...), ErrNoFunction)
	require.ErrorIs(t, errors.Join(UpdateErr[string, int, int](nil).Validate()...), ErrNoFunction)
}
