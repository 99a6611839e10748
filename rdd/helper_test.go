package rdd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

type kv = rdd.Pair[string, int]

// retrying is an executor that runs every partition again after a failure, as
// often as attempts says, and puts a guard into each attempt if guarded is set.
type retrying struct {
	workers, attempts int
	guarded           bool
	pools             *rdd.Pools

	mu      sync.Mutex
	skipped []*rdd.RecordError
	tries   map[string]int
}

func (e *retrying) RunStage(ctx context.Context, s *rdd.Stage) error {
	return e.RunTasks(ctx, s.Name(), s.Tasks(), s.RunTask)
}

func (e *retrying) RunTasks(ctx context.Context, name string, n int, task func(*rdd.Task) error) error {
	inner := rdd.Local(max(1, e.workers), e.pools)
	return inner.RunTasks(ctx, name, n, func(t *rdd.Task) error {
		var err error
		for a := range max(1, e.attempts) {
			try := &rdd.Task{Ctx: t.Ctx, Name: name, Partition: t.Partition, Attempt: a, Pools: e.pools}
			var skipped []*rdd.RecordError
			if e.guarded {
				try.Guard = &rdd.Guard{Skip: func(_ *rdd.Task, _ any, err *rdd.RecordError) error {
					skipped = append(skipped, err)
					return nil
				}}
			}
			e.mu.Lock()
			if e.tries == nil {
				e.tries = map[string]int{}
			}
			e.tries[name]++
			e.mu.Unlock()
			if err = task(try); err == nil {
				e.mu.Lock()
				e.skipped = append(e.skipped, skipped...)
				e.mu.Unlock()
				if e.guarded && int(try.Guard.Skipped()) != len(skipped) {
					return fmt.Errorf("guard counted %d, told of %d", try.Guard.Skipped(), len(skipped))
				}
				return nil
			}
		}
		return err
	})
}

func collect[T any](t *testing.T, r *rdd.RDD[T]) []T {
	t.Helper()
	got, err := rdd.Collect(t.Context(), r)
	require.NoError(t, err)
	return got
}

// glom is every partition's records.
func glom[T any](t *testing.T, r *rdd.RDD[T]) [][]T {
	t.Helper()
	return collect(t, rdd.Glom(r))
}

func numbers(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}
