package dstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// executor runs the tasks of a run's stages and actions: workers, retries, and
// the guarded mode of the record policies. It may be used from several goroutines.
type executor struct {
	workers  int
	retries  int          // of a partition whose function failed
	rules    *recordRules // nil: no record is left out
	ioRetry  time.Duration
	retryNow bool
	clock    clock.Clock
	pools    *rdd.Pools
	hard     context.Context // its end aborts all tasks
	tally    *tally
	troubles *troubles // shared, as tally
	counting *counting // nil without counters
}

// tally is what tasks report beside their results. It is shared by the
// executors of a run.
type tally struct {
	mu      sync.Mutex
	busy    map[*rdd.Task]string // tasks that run, for the stop timeout
	bad     badRecords           // of the running epoch
	retried map[string]int64     // reads tried again, by source
}

type skipKey struct{ operator, stream string }

func newTally() *tally {
	return &tally{busy: map[*rdd.Task]string{}, retried: map[string]int64{}}
}

func (t *tally) enter(k *rdd.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy[k] = fmt.Sprintf("%s partition %d", k.Name, k.Partition)
}

func (t *tally) exit(k *rdd.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, k)
}

// tasks lists the tasks that run.
func (t *tally) tasks() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, n := range t.busy {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// leave takes note of what a task has left out that succeeded. It counts for the
// epoch, or for the attempt of an output that asked for the task.
func (t *tally) leave(bad *badRecords, of *badScope) {
	switch {
	case bad.count() == 0:
	case of != nil:
		of.mu.Lock()
		defer of.mu.Unlock()
		of.bad.add(bad)
	default:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.bad.add(bad)
	}
}

func (t *tally) retry(source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retried[source]++
}

// left gives what the epoch has left out so far.
func (t *tally) left() (bad badRecords) {
	t.mu.Lock()
	defer t.mu.Unlock()
	bad.add(&t.bad)
	return bad
}

// take gives the counts of the epoch and begins new ones.
func (t *tally) take() (bad badRecords, retried map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	bad, retried = t.bad, t.retried
	t.bad, t.retried = badRecords{}, map[string]int64{}
	return bad, retried
}

// serial is the same executor with one worker, without retries of single
// partitions: outputs are retried as a whole.
func (e *executor) serial() *executor {
	s := *e
	s.workers, s.retries, s.rules = 1, 0, nil
	return &s
}

// RunStage runs all tasks of a stage.
func (e *executor) RunStage(ctx context.Context, s *rdd.Stage) error {
	// A stage runs once, whatever becomes of the output that asked for it: what its
	// tasks count is the epoch's.
	return e.runTasks(ctx, s.Name(), s.Tasks(), s.RunTask, nil, nil)
}

// RunTasks runs n tasks on the workers, each until it has succeeded once.
func (e *executor) RunTasks(ctx context.Context, name string, n int, task func(*rdd.Task) error) error {
	return e.runTasks(ctx, name, n, task, e.counting.current(), scopeOf(ctx))
}

// runTasks is RunTasks of tasks that add to the counters as part of parent, and
// leave records out as part of scope.
func (e *executor) runTasks(ctx context.Context, name string, n int, task func(*rdd.Task) error, parent additions, scope *badScope) error {
	// Actions bring a context of the user's; the end of the run ends them too.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.hard, func() { cancel(context.Cause(e.hard)) })()
	return pool.Run(ctx, e.workers, n, func(ctx context.Context, worker, i int) error {
		return e.attempts(ctx, name, worker, i, scope, func(t *rdd.Task) error {
			return e.counting.attempt(parent, func() error { return task(t) })
		})
	})
}

// attempts runs one partition.
func (e *executor) attempts(ctx context.Context, name string, worker, partition int, scope *badScope, task func(*rdd.Task) error) error {
	var pause backoff
	var bad badRecords
	failures, guarded := 0, false
	what := fmt.Sprintf("%s partition %d", name, partition)
	for attempt := 0; ; attempt++ {
		t := &rdd.Task{Ctx: ctx, Name: name, Partition: partition, Attempt: attempt, Worker: worker, Pools: e.pools}
		if !sabotage.On("letters-of-failed-attempt") {
			bad = badRecords{}
		}
		if guarded {
			t.Guard = &rdd.Guard{Skip: func(t *rdd.Task, row any, err *rdd.RecordError) error {
				return e.rules.bad(&bad, t, partition, row, err)
			}}
		}
		err := e.attempt(t, task)
		if err == nil {
			e.tally.leave(&bad, scope)
			if attempt > 0 {
				e.troubles.passed(what)
			}
			return nil
		}
		if t.Canceled(err) {
			return err
		}
		var read *ReadError
		var record *rdd.RecordError
		switch {
		case errors.As(err, &read):
			e.troubles.failed(what, e.clock.Now(), err)
			if permanent(err) || !pause.wait(ctx, e.clock, e.ioRetry, e.retryNow) {
				return err
			}
			e.tally.retry(read.Source)
		case failures < e.retries:
			failures++
			e.troubles.failed(what, e.clock.Now(), err)
		case e.rules != nil && e.rules.guards && !guarded && errors.As(err, &record):
			guarded = true
		default:
			return err
		}
	}
}

func (e *executor) attempt(t *rdd.Task, task func(*rdd.Task) error) error {
	e.tally.enter(t)
	defer e.tally.exit(t)
	return task(t)
}

// permanent says that trying a source's call again is of no use: its error has a
// method Permanent that says so.
func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// The pauses between retries of I/O: they double from first to longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
	// retriesAtOnce bounds retries that do not wait (test kit only).
	retriesAtOnce = 10
)

// backoff waits between retries of one piece of I/O, up to a limit of time
// since the first failure.
type backoff struct {
	began time.Time
	next  time.Duration
	tries int
}

// wait says whether to try again, after a pause.
func (b *backoff) wait(ctx context.Context, k clock.Clock, limit time.Duration, now bool) bool {
	b.tries++
	if now {
		return b.tries <= retriesAtOnce && limit > 0 && ctx.Err() == nil
	}
	if b.next == 0 {
		b.began, b.next = k.Now(), firstPause
	}
	left := limit - k.Now().Sub(b.began)
	if left <= 0 {
		return false
	}
	next := min(b.next, left)
	b.next = min(2*b.next, longestPause)
	return clock.Wait(ctx, k, next) == nil
}

// call runs a user's function that is called on the driver, and turns its panic
// into an error.
func call[R any](name string, f func() (R, error)) (out R, err error) {
	defer func() {
		if v := recover(); v != nil {
			p := &rdd.PanicError{Value: v, Stack: debug.Stack()}
			err = fmt.Errorf("%s: %w (at %s)", name, p, cmp.Or(p.Place(), "an unknown place"))
		}
	}()
	return f()
}

// callErr is call for a function without a result.
func callErr(name string, f func() error) error {
	_, err := call(name, func() (struct{}, error) { return struct{}{}, f() })
	return err
}
