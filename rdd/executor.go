package rdd

import (
	"context"
	"runtime"

	"github.com/statemill/statemill/internal/pool"
)

// Executor runs tasks: it supplies the workers, and as it likes retries, the
// guarded mode and the pools. It must run every partition until it has succeeded
// once, or return an error; all tasks have ended when it returns. Both kinds of tasks recover
// panics themselves and are restartable per partition.
type Executor interface {
	// RunStage runs s.RunTask for partitions 0 … s.Tasks()-1.
	RunStage(ctx context.Context, s *Stage) error
	// RunTasks runs task for partitions 0 … n-1.
	RunTasks(ctx context.Context, name string, n int, task func(*Task) error) error
}

type local struct {
	workers int
	pools   *Pools
}

// Local is an executor of its own: up to workers goroutines while a call lasts
// (less than 1: GOMAXPROCS), no retries. pools may be nil.
func Local(workers int, pools *Pools) Executor {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	return &local{workers, pools}
}

func (l *local) RunStage(ctx context.Context, s *Stage) error {
	return l.RunTasks(ctx, s.Name(), s.Tasks(), s.RunTask)
}

func (l *local) RunTasks(ctx context.Context, name string, n int, task func(*Task) error) error {
	return pool.Run(ctx, l.workers, n, func(ctx context.Context, worker, i int) error {
		return task(&Task{Ctx: ctx, Name: name, Partition: i, Worker: worker, Pools: l.pools})
	})
}
