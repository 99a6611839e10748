package staterdd

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

var errBoom = errors.New("boom")

// faultySpec fails for values below 0, each in its own way.
func faultySpec() Spec[string, int, int, int] {
	return FunctionErr(func(_ time.Time, k string, v rdd.Option[int], s *State[int]) (int, bool, error) {
		if s.IsTimingOut() {
			if k == "bad" {
				panic("at the end")
			}
			return -s.Get(), true, nil
		}
		n := v.OrElse(0)
		s.Update(s.OrElse(0) + n)
		switch n {
		case -1:
			return 0, false, errBoom
		case -2:
			panic(errBoom)
		case -3:
			s.Remove()
			s.Update(1)
		case -4:
			s.Remove()
			s.Get()
		}
		return s.OrElse(0), true, nil
	}).Named("faulty").NumPartitions(1)
}

// C8: a failing record fails the task with operator, key and origin; nothing is kept. R3: the
// attempt can be repeated.
func TestRecordErrors(t *testing.T) {
	for _, c := range []struct {
		value int
		want  error
	}{{-1, errBoom}, {-2, errBoom}, {-3, ErrUpdateRemoved}, {-4, ErrStateNotSet}} {
		for _, block := range []int{1, 2, 64} {
			f := start(t, faultySpec().Timeout(time.Second), Options{BlockSize: block}, 0)
			f.batch(1000, kv("a", 1))
			before := timesOf(t, f.cur)
			next, err := f.next(2000, kv("b", 1), kv("c", 2), kv("a", 3), kv("d", c.value), kv("e", 5))
			require.ErrorIs(t, err, c.want)
			var re *rdd.RecordError
			require.ErrorAs(t, err, &re)
			require.Equal(t, "faulty", re.Operator)
			require.Equal(t, "d", re.Key)
			require.Equal(t, "in", re.Stream)
			require.Equal(t, "1", re.Partition)
			require.EqualValues(t, 3, re.Offset)
			require.Equal(t, c.value == -2, re.Stack != nil)
			require.ErrorIs(t, next.Seal(), ErrIncomplete)
			require.NoError(t, next.Abort())
			next.Release()
			require.Equal(t, before, timesOf(t, f.cur))
			require.Equal(t, []int{4}, f.batch(2000, kv("a", 3)))
		}
	}
}

// The same for the short and the keyed form, and for timing-out calls.
func TestErrorsOfOtherShapes(t *testing.T) {
	f := start(t, Function(func(k string, v rdd.Option[int], s *State[int]) int { return s.Get() }), Options{}, 0)
	_, err := f.next(1, kv("x", 1))
	require.ErrorIs(t, err, ErrStateNotSet)

	g := start(t, faultySpec().Timeout(time.Second), Options{Slide: time.Second}, 0)
	g.batch(1*second, kv("bad", 1))
	_, err = g.next(9 * second)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.Equal(t, "bad", re.Key)
	require.ErrorContains(t, err, "at the end")

	misuse := Function(func(k string, v rdd.Option[int], s *State[int]) int { s.Update(1); return 0 }).Timeout(time.Second)
	h := start(t, misuse, Options{Slide: time.Second}, 0)
	h.batch(1*second, kv("k", 1))
	_, err = h.next(9 * second)
	require.ErrorIs(t, err, ErrUpdateTimingOut)

	keyed := Keyed(func(c *Call[int, int], k string, v rdd.Option[int]) error {
		if !v.IsSome() {
			return errBoom
		}
		c.SetDeadline(c.Batch.Time)
		if v.OrElse(0) == 1 {
			c.State.Get()
		}
		return nil
	})
	i := start(t, keyed, Options{}, 0)
	next, err := i.next(1, kv("k", 1))
	require.ErrorIs(t, err, ErrStateNotSet)
	require.NoError(t, next.Abort())
	i.batch(1, kv("k", 2))
	_, err = i.next(2)
	require.ErrorIs(t, err, errBoom)
}

// guardedExec runs every task in guarded mode, and twice if it fails.
type guardedExec struct {
	skipped []*rdd.RecordError
}

func (g *guardedExec) RunStage(ctx context.Context, s *rdd.Stage) error {
	return g.RunTasks(ctx, s.Name(), s.Tasks(), s.RunTask)
}

func (g *guardedExec) RunTasks(ctx context.Context, name string, n int, task func(*rdd.Task) error) error {
	for i := range n {
		t := &rdd.Task{Ctx: ctx, Name: name, Partition: i, Guard: &rdd.Guard{
			Skip: func(_ *rdd.Task, _ any, err *rdd.RecordError) error { g.skipped = append(g.skipped, err); return nil },
		}}
		if err := task(t); err != nil {
			return err
		}
	}
	return nil
}

// Guarded mode: a record that fails leaves no effect; the others of the batch, also those of
// the same key, are as if it had not been there; it is counted with its origin.
func TestGuardedMode(t *testing.T) {
	f := start(t, faultySpec().Timeout(5*time.Second), Options{Slide: time.Second}, 0)
	g := &guardedExec{}
	f.exec = g
	out := f.batch(1*second, kv("a", 1), kv("a", -1), kv("b", -2), kv("a", 10), kv("c", -3), kv("bad", 7))
	require.Equal(t, []int{1, 11, 7}, out)
	require.Equal(t, map[string]st[int]{"a": {11, second}, "bad": {7, second}}, timesOf(t, f.cur))
	require.EqualValues(t, 3, f.cur.Stats().Skipped)
	require.Len(t, g.skipped, 3)
	for i, want := range []struct {
		key    string
		offset int64
		err    error
	}{{"a", 1, errBoom}, {"b", 2, errBoom}, {"c", 4, ErrUpdateRemoved}} {
		require.Equal(t, "faulty", g.skipped[i].Operator)
		require.Equal(t, want.key, g.skipped[i].Key)
		require.Equal(t, want.offset, g.skipped[i].Offset)
		require.Equal(t, "in", g.skipped[i].Stream)
		require.ErrorIs(t, g.skipped[i], want.err)
	}
	// A final call that fails loses its output; the key's time is over all the same.
	g.skipped = nil
	require.Equal(t, []int{-11}, f.batch(9*second))
	require.Len(t, g.skipped, 1)
	require.Equal(t, "bad", g.skipped[0].Key)
	require.Empty(t, timesOf(t, f.cur))
	require.EqualValues(t, 1, f.cur.Stats().Skipped)
}

// Guarded mode with references: the dropped record has changed nothing in place either.
func TestGuardedReferences(t *testing.T) {
	spec := Function(func(k string, v rdd.Option[int], s *State[map[string]int]) int {
		m := s.OrElse(map[string]int{})
		m["n"] += v.OrElse(0)
		if v.OrElse(0) < 0 {
			panic("after the change")
		}
		s.Update(m)
		return m["n"]
	})
	f := start(t, spec, Options{}, 0)
	f.exec = &guardedExec{}
	require.Equal(t, []int{1, 3}, f.batch(1, kv("a", 1), kv("a", -5), kv("a", 2)))
	require.Equal(t, map[string]map[string]int{"a": {"n": 3}}, snapshotOf(t, f.cur))
}

func TestGuardedKeyed(t *testing.T) {
	spec := Keyed(func(c *Call[int, string], k string, v rdd.Option[int]) error {
		c.Emit(k)
		c.SetDeadline(c.Batch.Time)
		if !v.IsSome() || v.OrElse(0) == 1 {
			panic(errBoom)
		}
		return nil
	})
	f := start(t, spec, Options{}, 0)
	g := &guardedExec{}
	f.exec = g
	require.Equal(t, []string{"b"}, f.batch(1, kv("a", 1), kv("b", 2)))
	require.Len(t, timesOf(t, f.cur), 1)
	require.Empty(t, f.batch(2))
	require.Empty(t, timesOf(t, f.cur))
	require.Len(t, g.skipped, 2)
}

// A key that equals nothing is an error of its record.
func TestNaNKey(t *testing.T) {
	spec := Function(func(k float64, v rdd.Option[int], s *State[int]) int { s.Update(1); return 1 }).NumPartitions(1)
	op, err := NewOperator(spec, Options{})
	require.NoError(t, err)
	p, err := op.NewPartition()
	require.NoError(t, err)
	require.NoError(t, p.Begin(Batch{Time: at(1)}))
	err = p.Update([]float64{1, math.NaN()}, []int{0, 0})
	require.ErrorIs(t, err, codec.ErrNaN)
	var re *rdd.RecordError
	require.ErrorAs(t, err, &re)
	require.EqualValues(t, 1, re.Offset)
	require.NoError(t, p.Abort())

	_, err = NewOperator(spec.InitialState(func(yield func(float64, int) bool) { yield(math.NaN(), 1) }), Options{})
	require.NoError(t, err)
	f, _ := NewOperator(spec.InitialState(func(yield func(float64, int) bool) { yield(math.NaN(), 1) }), Options{})
	_, err = f.Initial(at(1))
	require.ErrorIs(t, err, statemap.ErrNaN)
}

// A9: a handle that a function kept and used after the batch fails the next batch of the
// partition, once.
func TestKeptHandle(t *testing.T) {
	var kept *State[int]
	spec := Function(func(k string, v rdd.Option[int], s *State[int]) int { kept = s; s.Update(1); return 1 }).NumPartitions(1)
	f := start(t, spec, Options{}, 0)
	f.batch(1, kv("a", 1))
	require.False(t, kept.Exists())
	kept.Update(5)
	next, err := f.next(2, kv("a", 1))
	require.ErrorIs(t, err, ErrStateClosed)
	require.NoError(t, next.Abort())
	f.batch(2, kv("a", 1))
	require.Equal(t, map[string]int{"a": 1}, snapshotOf(t, f.cur))
}
