package rdd_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// logged makes stages that write their phases to a log.
type logged struct {
	mu  sync.Mutex
	log []string
}

func (l *logged) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, s)
}

func (l *logged) stage(name string, deps ...*rdd.Stage) *rdd.Stage {
	return rdd.NewStage(rdd.StageConfig{
		Name: name, Deps: deps, Tasks: 1,
		Begin:  func(context.Context) error { l.add("begin " + name); return nil },
		Run:    func(*rdd.Task) error { l.add("run " + name); return nil },
		Finish: func(err error) error { l.add("finish " + name); return err },
	})
}

func TestMaterializeRunsDependenciesFirstAndOnce(t *testing.T) {
	l := &logged{}
	a := l.stage("a")
	b := l.stage("b", a)
	c := l.stage("c", b, a)
	d := l.stage("d", a)
	require.Equal(t, rdd.StagePending, c.State())
	var names []string
	for _, s := range rdd.Stages(c, d, b, nil) {
		names = append(names, s.Name())
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, names)

	exec := rdd.Local(2, nil)
	require.Equal(t, []*rdd.Stage{b, a}, c.Deps())
	require.NoError(t, rdd.Materialize(t.Context(), exec, c, d))
	require.NoError(t, rdd.Materialize(t.Context(), exec, d, c, b))
	require.Equal(t, []string{
		"begin a", "run a", "finish a", "begin b", "run b", "finish b",
		"begin c", "run c", "finish c", "begin d", "run d", "finish d",
	}, l.log)
	require.Equal(t, rdd.StageDone, c.State())
	require.Equal(t, "done", c.State().String())
	require.NoError(t, c.Err())
	require.Empty(t, c.Deps(), "what is done keeps no earlier stage in memory")
	require.ErrorContains(t, c.RunTask(&rdd.Task{}), "stage c: partition 0 cannot run: the stage is done")
	c.Release() // nothing to release
}

func TestStageRemembersItsError(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		config rdd.StageConfig
		runs   int32
	}{
		"run":    {rdd.StageConfig{Run: func(*rdd.Task) error { return boom }}, 1},
		"begin":  {rdd.StageConfig{Begin: func(context.Context) error { return boom }}, 0},
		"finish": {rdd.StageConfig{Finish: func(error) error { return boom }}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			run := c.config.Run
			c.config.Run = func(t *rdd.Task) error {
				runs.Add(1)
				if run == nil {
					return nil
				}
				return run(t)
			}
			c.config.Tasks, c.config.Name = 1, name
			s := rdd.NewStage(c.config)
			l := &logged{}
			after := l.stage("after", s)
			for range 2 {
				require.ErrorIs(t, rdd.Materialize(t.Context(), rdd.Local(1, nil), after), boom)
			}
			require.Equal(t, c.runs, runs.Load())
			require.Equal(t, rdd.StageFailed, s.State())
			require.ErrorIs(t, s.Err(), boom)
			require.Empty(t, l.log)
			require.Equal(t, rdd.StagePending, after.State())
		})
	}
}

func TestStageOfWrongDescription(t *testing.T) {
	run := func(*rdd.Task) error { return nil }
	require.ErrorIs(t, rdd.Materialize(t.Context(), rdd.Local(1, nil), rdd.NewStage(rdd.StageConfig{Name: "x", Run: run})), rdd.ErrPartitions)
	require.ErrorContains(t, rdd.NewStage(rdd.StageConfig{Name: "x", Tasks: 1}).Err(), "stage x has nothing to run")
}

func TestHookThatPanicsLeavesNobodyWaiting(t *testing.T) {
	s := rdd.NewStage(rdd.StageConfig{
		Name: "x", Tasks: 1, Run: func(*rdd.Task) error { return nil },
		Begin: func(context.Context) error { panic("hook") },
	})
	require.PanicsWithValue(t, "hook", func() { _ = rdd.Materialize(t.Context(), rdd.Local(1, nil), s) })
	require.ErrorContains(t, rdd.Materialize(t.Context(), rdd.Local(1, nil), s), "a hook panicked")
}

func TestSecondConsumerWaitsForTheRunInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		gate := make(chan struct{})
		s := rdd.NewStage(rdd.StageConfig{Name: "s", Tasks: 1, Run: func(*rdd.Task) error {
			runs++
			<-gate
			return nil
		}})
		results := make(chan error, 3)
		wait := func(ctx context.Context) { results <- rdd.Materialize(ctx, rdd.Local(1, nil), s) }
		go wait(t.Context())
		synctest.Wait()
		require.Equal(t, rdd.StageRunning, s.State())
		go wait(t.Context())
		impatient, cancel := context.WithCancel(t.Context())
		go wait(impatient)
		cancel()
		require.ErrorIs(t, <-results, context.Canceled, "a waiter may give up; the run goes on")
		close(gate)
		require.NoError(t, <-results)
		require.NoError(t, <-results)
		require.Equal(t, 1, runs)
	})
}

func TestCancelledRunMayBeRepeatedByAnotherConsumer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &logged{}
	s := rdd.NewStage(rdd.StageConfig{
		Name: "s", Tasks: 1,
		Begin: func(context.Context) error { l.add("begin"); return nil },
		Run: func(t *rdd.Task) error {
			cancel()
			return t.Ctx.Err()
		},
		Finish: func(err error) error {
			if err != nil {
				l.add("abort")
			}
			return err
		},
	})
	require.ErrorIs(t, rdd.Materialize(ctx, rdd.Local(1, nil), s), context.Canceled)
	require.Equal(t, rdd.StagePending, s.State())
	require.NoError(t, rdd.Materialize(t.Context(), rdd.Local(1, nil), s))
	require.Equal(t, rdd.StageDone, s.State())
	require.Equal(t, []string{"begin", "abort", "begin"}, l.log)
}

// A task's attempt discards what an earlier attempt of the partition wrote.
func TestRetriedAttemptsLeaveNoRowsBehind(t *testing.T) {
	p := partitioner.Hash[string](2)
	shaky := rdd.New(3, func(t *rdd.Task, emit func(kv) error) error {
		for i := range 700 {
			if i == 600 && t.Attempt < t.Partition { // partition 0 at once, 2 at the third time
				return errors.New("shaky")
			}
			if err := emit(kv{Key: string(rune('a' + i%26)), Value: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	for name, build := range map[string]func() *rdd.RDD[kv]{
		"shuffle":     func() *rdd.RDD[kv] { return rdd.PartitionBy(shaky, p) },
		"keep":        func() *rdd.RDD[kv] { return rdd.Keep(shaky) },
		"repartition": func() *rdd.RDD[kv] { return rdd.Repartition(shaky, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			e := &retrying{attempts: 3, workers: 2, pools: &rdd.Pools{}}
			n, err := rdd.Count(t.Context(), build().WithExecutor(e))
			require.NoError(t, err)
			require.EqualValues(t, 2100, n)

			_, err = rdd.Count(t.Context(), build().WithExecutor(&retrying{attempts: 2}))
			require.ErrorContains(t, err, "shaky")
		})
	}
	t.Run("reduceByKey", func(t *testing.T) {
		e := &retrying{attempts: 3, workers: 2, pools: &rdd.Pools{}}
		got, err := rdd.Collect(t.Context(), rdd.ReduceByKey(shaky, func(a, b int) int { return a + b }, p).WithExecutor(e))
		require.NoError(t, err)
		sum := 0
		for _, v := range got {
			sum += v.Value
		}
		require.Equal(t, 2100, sum)
	})
	t.Run("count", func(t *testing.T) {
		e := &retrying{attempts: 3}
		require.Equal(t, []int64{2100}, collect(t, rdd.CountRDD(shaky).WithExecutor(e)))
		require.Equal(t, 6, e.tries["count"])
	})
}
