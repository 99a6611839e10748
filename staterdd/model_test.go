package staterdd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/rdd"
)

// modelSpec acts by the value: 0 noop, 1–5 add, 6 remove, 7 remove if above 3, 8 no output.
func modelSpec() Spec[string, int, int, string] {
	return FunctionTime(func(b time.Time, k string, v rdd.Option[int], s *State[int]) (string, bool) {
		n := v.OrElse(-1)
		switch {
		case n >= 1 && n <= 5:
			s.Update(s.OrElse(0) + n)
		case n == 6, n == 7 && s.OrElse(0) > 3:
			s.Remove()
		}
		return fmt.Sprint(b.UnixNano(), k, n, s.Exists(), s.OrElse(0), s.IsTimingOut()), n != 8
	})
}

// model is the rule written plainly: one map, a full scan.
type model struct {
	state   map[string]st[int]
	timeout int64
}

func (m *model) batch(now int64, data []rdd.Pair[string, int]) []string {
	var out []string
	emit := func(k string, n int, exists bool, s int, timing bool) {
		out = append(out, fmt.Sprint(now, k, n, exists, s, timing))
	}
	for _, p := range data {
		e, ok := m.state[p.Key]
		n := p.Value
		switch {
		case n >= 1 && n <= 5:
			e.State += n
			m.state[p.Key] = st[int]{e.State, now}
		case n == 6, n == 7 && e.State > 3:
			delete(m.state, p.Key)
		case ok && m.timeout > 0:
			m.state[p.Key] = st[int]{e.State, now}
		}
		e, ok = m.state[p.Key]
		if n != 8 {
			emit(p.Key, n, ok, e.State, false)
		}
	}
	if m.timeout == 0 {
		return out
	}
	var idle []string
	for k, e := range m.state {
		if e.Time < now-m.timeout {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.state[a].Time, m.state[b].Time), cmp.Compare(a, b))
	})
	for _, k := range idle {
		emit(k, -1, true, m.state[k].State, true)
		delete(m.state, k)
	}
	return out
}

// The update rule against the model, whatever the block size, threshold, source partitions and
// workers, through aborts, failed attempts and kept versions.
func TestRuleAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{state: map[string]st[int]{}, timeout: rapid.SampledFrom([]int64{0, 1, 3, 50}).Draw(t, "timeout")}
		spec := modelSpec().NumPartitions(1).DeltaChainThreshold(rapid.IntRange(1, 4).Draw(t, "threshold"))
		if m.timeout > 0 {
			spec = spec.Timeout(time.Duration(m.timeout))
		}
		op, err := NewOperator(spec, Options{
			BlockSize: rapid.SampledFrom([]int{1, 2, 7, 64}).Draw(t, "block"), Slide: 1,
			NoAutoDetach: rapid.Bool().Draw(t, "no detach"),
		})
		require.NoError(t, err)
		cur, err := op.Initial(at(0))
		require.NoError(t, err)
		exec := rdd.Local(1, nil)
		sources := rapid.IntRange(1, 3).Draw(t, "sources")
		keys := rapid.SampledFrom([]int{2, 20, 200}).Draw(t, "keys")
		type version struct {
			r    *MapWithStateRDD[string, int, string]
			want map[string]st[int]
		}
		var kept []version
		now := int64(0)
		record := rapid.Custom(func(t *rapid.T) rdd.Pair[string, int] {
			return kv(fmt.Sprint("k", rapid.IntRange(0, keys).Draw(t, "key")), rapid.IntRange(0, 8).Draw(t, "value"))
		})
		for epoch := range rapid.IntRange(1, 12).Draw(t, "batches") {
			now += rapid.Int64Range(1, 3).Draw(t, "step")
			data := rapid.SliceOfN(record, 0, 100).Draw(t, "data")
			for again := rapid.IntRange(0, 2).Draw(t, "given up"); ; again-- {
				s := rdd.Shuffle(rdd.Parallelize(data, sources), op.Partitioner())
				next, stage, err := op.Advance(cur, s, Batch{Epoch: uint64(epoch + 1), Time: at(now)})
				require.NoError(t, err)
				require.NoError(t, rdd.Materialize(context.Background(), exec, stage))
				s.Release()
				if again > 0 {
					if again == 1 {
						require.NoError(t, next.Seal())
					}
					require.NoError(t, next.Abort())
					next.Release()
					continue
				}
				want := m.batch(now, data)
				require.NoError(t, next.Seal())
				require.Equal(t, len(want), next.Records()[0].Mapped.Len())
				require.Equal(t, want, slices.Collect(next.Records()[0].Mapped.All()))
				if rapid.Bool().Draw(t, "keep") {
					require.NoError(t, cur.Retain())
				}
				kept = append(kept, version{next, maps.Clone(m.state)})
				cur.Release()
				cur = next
				break
			}
			verifyIndex(t, op, cur)
			for _, v := range kept {
				all, err := rdd.Collect(context.Background(), v.r.StateTimes().WithExecutor(exec))
				if err != nil {
					require.ErrorIs(t, err, rdd.ErrReleased)
					continue
				}
				got := map[string]st[int]{}
				for _, e := range all {
					got[e.Key] = st[int]{e.State, e.Time}
				}
				require.Equal(t, v.want, got)
			}
		}
	})
}

// verifyIndex checks that every live slot has a hint that is not later than its due time.
func verifyIndex[K comparable, V, S, M any](t require.TestingT, op *Operator[K, V, S, M], r *MapWithStateRDD[K, S, M]) {
	if !op.indexed() {
		return
	}
	for i, l := range r.lines {
		require.NoError(t, l.index.Verify(func(yield func(uint32, int64) bool) {
			r.records[i].StateMap.AllSlots(func(slot uint32, e int64) bool {
				due, ok := dueTime(op.keyed(), e)
				return !ok || yield(slot, due)
			})
		}))
	}
}

// Other partition counts give the same outputs per key, in the same order, and the same state.
func TestPartitionCountsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type result struct {
			outs  map[string][]string
			state map[string]int
		}
		var batches [][]rdd.Pair[int, int]
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			batches = append(batches, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rdd.Pair[int, int] {
				return kv(rapid.IntRange(-20, 20).Draw(t, "key"), rapid.IntRange(1, 9).Draw(t, "value"))
			}), 0, 60).Draw(t, "data"))
		}
		var first *result
		for _, parts := range []int{1, 2, 5} {
			spec := Keyed(func(c *Call[int, rdd.Pair[int, int]], k int, v rdd.Option[int]) error {
				if n, ok := v.Get(); ok {
					c.State.Update(c.State.OrElse(0) + n)
					c.SetDeadline(c.Batch.Time.Add(time.Duration(n)))
				} else if c.State.Get()%2 == 0 {
					c.State.Update(c.State.Get() + 1)
					c.SetDeadline(c.Batch.Time)
				}
				c.Emit(kv(k, c.State.Get()))
				return nil
			}).NumPartitions(parts)
			op, err := NewOperator(spec, Options{Slide: 2})
			require.NoError(t, err)
			cur, err := op.Initial(at(0))
			require.NoError(t, err)
			got := &result{map[string][]string{}, map[string]int{}}
			for i, data := range batches {
				next, stage, err := op.Advance(cur, rdd.Shuffle(rdd.Parallelize(data, 2), op.Partitioner()), Batch{Time: at(int64(i+1) * 2)})
				require.NoError(t, err)
				require.NoError(t, rdd.Materialize(context.Background(), rdd.Local(2, nil), stage))
				require.NoError(t, next.Seal())
				cur.Release()
				cur = next
				verifyIndex(t, op, cur)
				for _, rec := range cur.Records() {
					for m := range rec.Mapped.All() {
						k := fmt.Sprint(i, " ", m.Key)
						got.outs[k] = append(got.outs[k], fmt.Sprint(m.Value))
					}
				}
			}
			all, err := rdd.Collect(context.Background(), cur.StateTimes())
			require.NoError(t, err)
			for _, e := range all {
				got.state[fmt.Sprint(e.Key, "@", e.Time)] = e.State
			}
			if first == nil {
				first = got
			}
			require.Equal(t, first, got)
		}
	})
}

// Expiry at scale, through growing, compaction and reuse of slots: each key fires once, at its
// time.
func TestManyKeysExpire(t *testing.T) {
	spec := Function(func(k int, v rdd.Option[int], s *State[int64]) rdd.Pair[int, int64] {
		if s.IsTimingOut() {
			return kv(k, s.Get())
		}
		s.Update(int64(v.OrElse(0)))
		return kv(-1, int64(0))
	}).Timeout(10).NumPartitions(1)
	f := start(t, spec, Options{Slide: 1}, 0)
	f.parts = 1
	const n = 3000
	due := map[int]int64{} // key → last update
	for now := int64(1); now <= 60; now++ {
		var data []rdd.Pair[int, int]
		if now < 30 {
			for i := range n / 10 {
				k := (int(now)*n/20 + i) % n
				data = append(data, kv(k, int(now)))
				due[k] = now
			}
		}
		want := map[int]int64{}
		for k, t := range due {
			if t < now-10 {
				want[k] = t
				delete(due, k)
			}
		}
		got := map[int]int64{}
		for _, p := range f.batch(now, data...) {
			if p.Key >= 0 {
				got[p.Key] = p.Value
			}
		}
		require.Equal(t, want, got, "batch %d", now)
		require.EqualValues(t, len(due), f.cur.Stats().Keys)
		verifyIndex(t, f.op, f.cur)
	}
	require.Empty(t, due)
}
