package staterdd

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// The actions of a record in the tests of the rule.
const (
	noop = iota
	read
	upsert
	remove
)

// ruleCall is what one call saw.
type ruleCall struct {
	key   string
	data  bool
	state int
	out   bool // timing out
}

// ruleSpec does what the value says and emits the state it read (−1 for none), with a label.
func ruleSpec(calls *[]ruleCall) Spec[string, int, int, string] {
	return FunctionTime(func(_ time.Time, k string, v rdd.Option[int], s *State[int]) (string, bool) {
		*calls = append(*calls, ruleCall{k, v.IsSome(), s.OrElse(-1), s.IsTimingOut()})
		if s.IsTimingOut() {
			return "timed out " + strconv.Itoa(s.Get()), true
		}
		switch v.OrElse(noop) {
		case read:
			return "read " + strconv.Itoa(s.OrElse(-1)), true
		case upsert:
			if s.Exists() {
				s.Update(s.Get() + 1)
			} else {
				s.Update(0)
			}
		case remove:
			old := s.Get()
			s.Remove()
			return "removed " + strconv.Itoa(old), true
		}
		return "", false
	}).NumPartitions(1)
}

func TestUpdateRule(t *testing.T) {
	type state = map[string]st[int]
	none := state{}
	for _, c := range []struct {
		id        string
		initial   int // −1: none
		data      []int
		threshold int64 // 0: no timeout
		noScan    bool
		want      state
		out       []string
		calls     int
	}{
		{id: "RU1", initial: -1, want: none},
		{id: "RU2", initial: 0, want: state{"k": {0, 1000}}},
		{id: "RU3", initial: 0, data: []int{noop}, want: state{"k": {0, 1000}}, calls: 1},
		{id: "RU4", initial: -1, data: []int{noop}, want: none, calls: 1}, // C4
		{id: "RU5", initial: -1, data: []int{read}, want: none, out: []string{"read -1"}, calls: 1},
		{id: "RU6", initial: 123, data: []int{read}, want: state{"k": {123, 1000}}, out: []string{"read 123"}, calls: 1},
		{id: "RU7", initial: -1, data: []int{upsert}, want: state{"k": {0, 2000}}, calls: 1},
		{id: "RU8", initial: 0, data: []int{upsert}, want: state{"k": {1, 2000}}, calls: 1},
		{id: "RU9", initial: 345, data: []int{remove}, want: none, out: []string{"removed 345"}, calls: 1},
		{id: "RU10", initial: 123, threshold: 1000, want: state{"k": {123, 1000}}},
		{id: "RU11", initial: 123, threshold: 1001, want: none, out: []string{"timed out 123"}, calls: 1},
		{id: "RU12", initial: 123, data: []int{noop}, threshold: 1001, want: state{"k": {123, 2000}}, calls: 1},
		{id: "RU13", initial: 123, data: []int{remove}, threshold: 1001, want: none, out: []string{"removed 123"}, calls: 1},
		{id: "RU14", initial: -1, data: []int{noop}, threshold: 1001, want: none, calls: 1},
		{id: "RU15", initial: 123, data: []int{noop}, threshold: 1001, noScan: true, want: state{"k": {123, 2000}}, calls: 1},
		{id: "RU16", initial: 123, threshold: 1001, noScan: true, want: state{"k": {123, 1000}}},
		// C3: calls are per record, and a later record sees the earlier one's change.
		{id: "C3", initial: -1, data: []int{upsert, upsert, read, remove, read, upsert}, want: state{"k": {0, 2000}},
			out: []string{"read 1", "removed 1", "read -1"}, calls: 6},
	} {
		t.Run(c.id, func(t *testing.T) {
			var calls []ruleCall
			spec := ruleSpec(&calls)
			if c.threshold > 0 {
				spec = spec.Timeout(time.Duration(2000 - c.threshold)) // C6
			}
			if c.noScan {
				spec = spec.TimeoutScan(AtCheckpoint).CheckpointInterval(time.Hour)
			}
			if c.initial >= 0 {
				spec = spec.InitialState(func(yield func(string, int) bool) { yield("k", c.initial) })
			}
			f := start(t, spec, Options{Slide: 1000}, 1000)
			var data []rdd.Pair[string, int]
			for _, action := range c.data {
				data = append(data, kv("k", action))
			}
			base := timesOf(t, f.cur)
			require.NoError(t, f.cur.Retain())
			old := f.cur
			out := f.batch(2000, data...)
			require.Equal(t, c.want, timesOf(t, f.cur))
			if c.out == nil {
				c.out = []string{}
			}
			require.Equal(t, c.out, out)
			require.Len(t, calls, c.calls)
			for i, call := range calls { // B5: data are absent only in the timing-out call
				require.Equal(t, i < len(c.data), call.data)
				require.Equal(t, !call.data, call.out)
			}
			require.Equal(t, base, timesOf(t, old), "the version before never changes")
		})
	}
}

// C4: a record that only reads leaves nothing behind: no entry, no slot, no change.
func TestReadersInsertNothing(t *testing.T) {
	var calls []ruleCall
	f := start(t, ruleSpec(&calls).Timeout(time.Second), Options{}, 0)
	f.batch(1000, kv("a", read), kv("b", noop))
	m := f.cur.Records()[0].StateMap
	require.Zero(t, m.Len())
	require.Zero(t, m.ApproxSize())
	require.Zero(t, m.DeltaLen())
	require.Equal(t, Stats{Calls: 2, HeapBytes: m.HeapBytes()}, f.cur.Stats())
}

// C4: without a timeout only updates move a key's time.
func TestTouchNeedsTimeout(t *testing.T) {
	var calls []ruleCall
	f := start(t, ruleSpec(&calls), Options{}, 0)
	f.batch(1000, kv("a", upsert))
	f.batch(2000, kv("a", read))
	require.Equal(t, map[string]st[int]{"a": {0, 1000}}, timesOf(t, f.cur))
}

// B1, C7: the short form emits once per call, the long one when it says so; outputs of data come
// in record order (source partition 0 first), then those of timed-out keys, ordered by update
// time, then key.
func TestOutputOrder(t *testing.T) {
	for _, block := range []int{1, 3, 64} {
		f := start(t, countSpec().Timeout(2500).NumPartitions(1), Options{BlockSize: block, Slide: 1000}, 1000)
		f.parts = 3
		require.Equal(t, []rdd.Pair[string, int]{kv("z", 1), kv("b", 2), kv("z", 4), kv("y", 4)},
			f.batch(1000, kv("z", 1), kv("b", 2), kv("z", 3), kv("y", 4)))
		f.batch(2000, kv("a", 1), kv("c", 1))
		f.batch(3000)
		require.Equal(t, []rdd.Pair[string, int]{kv("d", 9), kv("b", -2), kv("y", -4), kv("z", -4)}, f.batch(4000, kv("d", 9)))
		require.Equal(t, []rdd.Pair[string, int]{kv("a", -1), kv("c", -1)}, f.batch(5000))
		require.Equal(t, map[string]st[int]{"d": {9, 4000}}, timesOf(t, f.cur))
		require.EqualValues(t, 2, f.cur.Stats().TimedOut)
		require.EqualValues(t, 2, f.cur.Stats().Removed)
	}
}

// Canonical order of keys, not their printed order: −1 before 2 before 10.
func TestExpiryOrderOfIntegers(t *testing.T) {
	spec := Function(func(k int, v rdd.Option[int], s *State[int]) int {
		if !s.IsTimingOut() {
			s.Update(1)
		}
		return k
	}).Timeout(1).NumPartitions(1)
	f := start(t, spec, Options{}, 1000)
	f.batch(1000, kv(10, 0), kv(2, 0), kv(-1, 0), kv(300, 0))
	require.Equal(t, []int{-1, 2, 10, 300}, f.batch(2000))
}

// C8: an error fails the task; see also errors_test.go. C2 is the empty partition.
func TestEmptyPartitionsHaveOneRecord(t *testing.T) { // D1, C2, D6
	f := start(t, countSpec().NumPartitions(5), Options{}, 1000)
	require.Len(t, f.cur.Records(), 5)
	f.batch(1000, kv("a", 1))
	next, stage, err := f.op.Advance(f.cur, nil, Batch{Epoch: 2, Time: at(2000)})
	require.NoError(t, err)
	require.NoError(t, rdd.Materialize(t.Context(), f.exec, stage))
	require.NoError(t, next.Seal())
	require.Equal(t, map[string]st[int]{"a": {1, 1000}}, timesOf(t, next), "state is carried on without data")
	require.Empty(t, mappedOf(t, next))
	require.Equal(t, 5, next.Partitions())
}

// SR1, D3: create from pairs.
func TestCreateFromPairs(t *testing.T) {
	p := partitioner.Hash[int](10)
	r, err := CreateFromPairs[int](func(yield func(int, string) bool) {
		for _, i := range []int{1, 2, 3, 3} {
			yield(i, fmt.Sprint(i))
		}
	}, p, at(123))
	require.NoError(t, err)
	require.Equal(t, map[int]st[string]{1: {"1", 123}, 2: {"2", 123}, 3: {"3", 123}}, timesOf(t, r))
	require.Equal(t, 10, r.Partitions())
	require.True(t, r.Partitioner().Equal(p))
	require.Empty(t, mappedOf(t, r))
	require.True(t, r.Sealed())
	for i, rec := range r.Records() {
		for k := range rec.StateMap.All() {
			require.Equal(t, i, p.Partition(k))
		}
	}
	// Equal keys: the last wins. No pairs: the partitions are there.
	r, err = CreateFromPairs[int](func(yield func(int, string) bool) { _ = yield(1, "a") && yield(1, "b") }, p, at(1))
	require.NoError(t, err)
	require.Equal(t, map[int]st[string]{1: {"b", 1}}, timesOf(t, r))
	r, err = CreateFromPairs[int](func(func(int, string) bool) {}, p, at(1))
	require.NoError(t, err)
	require.Len(t, r.Records(), 10)
	require.Empty(t, timesOf(t, r))
}

// D4: create from states keeps the keys' own times.
func TestCreateFromStates(t *testing.T) {
	states := func(yield func(Timed[string, int]) bool) {
		_ = yield(Timed[string, int]{"a", 1, 10}) && yield(Timed[string, int]{"b", 2, 20})
	}
	r, err := CreateFromStates[int](states, partitioner.Hash[string](3), at(99))
	require.NoError(t, err)
	require.Equal(t, map[string]st[int]{"a": {1, 10}, "b": {2, 20}}, timesOf(t, r))
	require.EqualValues(t, 99, r.Time())

	// It can be advanced, and the times count for the timeout.
	op, err := NewOperator(countSpec().Timeout(80).NumPartitions(2), Options{})
	require.NoError(t, err)
	cur, err := op.Restore(at(99), states)
	require.NoError(t, err)
	f := &fixture[string, int, int, rdd.Pair[string, int]]{t: t, op: op, cur: cur, exec: rdd.Local(1, nil), parts: 1}
	require.Equal(t, []rdd.Pair[string, int]{kv("a", -1)}, f.batch(100))
	require.Equal(t, []rdd.Pair[string, int]{kv("b", -2)}, f.batch(101))

	_, err = CreateFromStates[int](states, partitioner.Hash[string](0), at(1))
	require.ErrorIs(t, err, ErrPartitioner)
	out := partitioner.Func("wild", 2, func(string) int { return 7 })
	_, err = CreateFromStates[int](states, out, at(1))
	require.ErrorIs(t, err, partitioner.ErrPartition)
	_, err = CreateFromStates[int](func(func(Timed[*int, int]) bool) {}, partitioner.Func("p", 1, func(*int) int { return 0 }), at(1))
	require.Error(t, err)
}

// SR2: value 0 is a noop, 1 increments or sets 0, 2 removes; only the data's keys are called,
// and the base never changes.
func TestStateRDD(t *testing.T) {
	type state = map[string]st[int]
	type data = []rdd.Pair[string, int]
	base := state{"k1": {0, 123}, "k2": {0, 123}}
	for _, c := range []struct {
		batches []data
		want    []state
	}{
		{[]data{{}}, []state{base}},
		{[]data{{kv("k1", 0)}}, []state{base}},
		{[]data{{kv("k3", 0)}}, []state{base}},
		{[]data{{kv("k3", 1)}, {kv("k4", 1)}}, []state{
			{"k1": {0, 123}, "k2": {0, 123}, "k3": {0, 345}},
			{"k1": {0, 123}, "k2": {0, 123}, "k3": {0, 345}, "k4": {0, 346}}}},
		{[]data{{kv("k1", 1)}, {kv("x", 0), kv("k2", 1), kv("k2", 1), kv("k3", 1)}, {kv("k3", 1)}}, []state{
			{"k1": {1, 345}, "k2": {0, 123}},
			{"k1": {1, 345}, "k2": {2, 346}, "k3": {0, 346}},
			{"k1": {1, 345}, "k2": {2, 346}, "k3": {1, 347}}}},
		{[]data{{kv("k1", 2)}, {kv("k2", 2), kv("k0", 2), kv("k3", 1)}, {kv("k3", 2)}}, []state{
			{"k2": {0, 123}}, {"k3": {0, 346}}, {}}},
	} {
		var touched []string
		spec := Function(func(k string, v rdd.Option[int], s *State[int]) int {
			touched = append(touched, k)
			switch v.OrElse(0) {
			case 1:
				s.Update(s.OrElse(-1) + 1)
			case 2:
				s.Remove()
			}
			return 0
		}).NumPartitions(2).InitialState(func(yield func(string, int) bool) { _ = yield("k1", 0) && yield("k2", 0) })
		f := start(t, spec, Options{}, 123)
		f.exec = rdd.Local(1, nil)
		first := f.cur
		require.NoError(t, first.Retain())
		for i, d := range c.batches {
			touched = nil
			require.Len(t, f.batch(345+int64(i), d...), len(d))
			require.Len(t, touched, len(d))
			keys := map[string]bool{}
			for _, p := range d {
				keys[p.Key] = true
			}
			for _, k := range touched {
				require.True(t, keys[k])
			}
			require.Equal(t, c.want[i], timesOf(t, f.cur))
			require.Equal(t, base, timesOf(t, first))
		}
	}
}

// D2: both parents must have the operator's partitioner.
func TestPartitionersMustAgree(t *testing.T) {
	f := start(t, countSpec().NumPartitions(2), Options{}, 0)
	other := rdd.Shuffle(rdd.Parallelize([]rdd.Pair[string, int]{kv("a", 1)}, 1), partitioner.Hash[string](3))
	_, _, err := f.op.Advance(f.cur, other, Batch{Time: at(1)})
	require.ErrorIs(t, err, ErrPartitioner)
	require.ErrorContains(t, err, "hash(3)")
	foreign, err := CreateFromPairs[rdd.Pair[string, int]](func(func(string, int) bool) {}, partitioner.Hash[string](3), at(0))
	require.NoError(t, err)
	_, _, err = f.op.Advance(foreign, nil, Batch{Time: at(1)})
	require.ErrorIs(t, err, ErrPartitioner)
	_, _, err = f.op.Advance(nil, nil, Batch{Time: at(1)})
	require.ErrorIs(t, err, ErrNotSealed)
	next, _, err := f.op.Advance(f.cur, nil, Batch{Time: at(1)})
	require.NoError(t, err)
	require.True(t, next.Partitioner().Equal(f.op.Partitioner()))
}

// D5: initial keys get the first batch's time, are not called, emit nothing and are in the first
// snapshot; of equal keys the later wins. D7: snapshots are all live pairs.
func TestInitialState(t *testing.T) {
	spec := countSpec().Timeout(1000).InitialState(func(yield func(string, int) bool) {
		_ = yield("a", 1) && yield("b", 5) && yield("a", 7)
	})
	f := start(t, spec, Options{Parallelism: 3}, 1000)
	require.Equal(t, map[string]st[int]{"a": {7, 1000}, "b": {5, 1000}}, timesOf(t, f.cur))
	require.Empty(t, f.batch(1000))
	require.Equal(t, map[string]int{"a": 7, "b": 5}, snapshotOf(t, f.cur))
	require.Equal(t, []rdd.Pair[string, int]{kv("a", 8)}, f.batch(2000, kv("a", 1)))
	require.Equal(t, []rdd.Pair[string, int]{kv("b", -5)}, f.batch(2001))
	v, ok, err := f.cur.Get("a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 8, v)
	_, ok, err = f.cur.Get("b")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestBatchTimesGrow(t *testing.T) {
	f := start(t, countSpec(), Options{}, 1000)
	f.batch(1000)
	for _, ns := range []int64{999, 1000} {
		_, _, err := f.op.Advance(f.cur, nil, Batch{Time: at(ns)})
		require.ErrorIs(t, err, ErrBatchTime)
	}
}
