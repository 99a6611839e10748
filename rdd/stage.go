package rdd

import (
	"context"
	"fmt"
	"sync"
)

// StageConfig describes a Stage.
type StageConfig struct {
	// Name is used in errors and by executors for display.
	Name string
	// Deps run first.
	Deps []*Stage
	// Tasks is the number of partitions to run, at least 1.
	Tasks int
	// Begin, if not nil, runs once before the tasks. Its error fails the stage;
	// Finish is then not called.
	Begin func(ctx context.Context) error
	// Run does partition t.Partition. It may be called again for the same
	// partition and begins by discarding what an earlier attempt wrote.
	Run func(t *Task) error
	// Finish, if not nil, runs once after the tasks with their error (nil: all
	// have succeeded). What it returns is the stage's result: it passes err on.
	Finish func(err error) error
	// Release, if not nil, frees what the stage holds; see Stage.Release.
	Release func()
}

// StageState says where a stage stands.
type StageState int

// The states of a stage.
const (
	StagePending StageState = iota
	StageRunning
	StageDone
	StageFailed
)

// String is the state's name.
func (s StageState) String() string {
	return [...]string{"pending", "running", "done", "failed"}[s]
}

// Stage is a unit of work that must be complete before a dependent dataset can
// be computed. It runs at most once and remembers its error. Only a run that was cancelled
// leaves it pending (after Finish), so that another consumer may run it again,
// Begin included. Once it is done or has failed it forgets its work and its
// dependencies: a chain of batches must not keep all earlier ones in memory.
// All methods may be called from any goroutine.
type Stage struct {
	name    string
	tasks   int
	release func()

	mu      sync.Mutex
	c       StageConfig // empty once settled
	state   StageState
	err     error
	running chan struct{} // closed when the run in progress ends
}

// NewStage makes a pending stage. A description without Run or with fewer than 1
// task gives a stage that has failed already.
func NewStage(c StageConfig) *Stage {
	s := &Stage{name: c.Name, tasks: c.Tasks, release: c.Release, c: c}
	switch {
	case c.Tasks < 1:
		s.settle(fmt.Errorf("stage %s has %d tasks: %w", c.Name, c.Tasks, ErrPartitions))
	case c.Run == nil:
		s.settle(fmt.Errorf("stage %s has nothing to run", c.Name))
	}
	return s
}

// settle is the end of a stage; mu is held, or nobody else knows the stage yet.
func (s *Stage) settle(err error) {
	s.state, s.err, s.c = StageDone, err, StageConfig{}
	if err != nil {
		s.state = StageFailed
	}
}

// Name is the stage's name.
func (s *Stage) Name() string { return s.name }

// Deps are the stages that run first; none once the stage is done or has failed.
// The slice is not to be changed.
func (s *Stage) Deps() []*Stage { return s.config().Deps }

func (s *Stage) config() StageConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

// Tasks is the number of partitions.
func (s *Stage) Tasks() int { return s.tasks }

// State says where the stage stands.
func (s *Stage) State() StageState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Err is the error of a failed stage, otherwise nil.
func (s *Stage) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// RunTask runs one partition with one recover around it. Executors call it, as
// often as they retry, while they run the stage; at another time it is an error.
func (s *Stage) RunTask(t *Task) error {
	run := s.config().Run
	if run == nil {
		return fmt.Errorf("stage %s: partition %d cannot run: the stage is %s", s.name, t.Partition, s.State())
	}
	return Protect(t, run)
}

// Release lets go of what the stage holds (row blocks, kept rows) for the
// owner. Holders that have retained it keep it. Further calls do nothing.
func (s *Stage) Release() {
	if s.release != nil {
		s.release()
	}
}

// run executes the stage if it is pending and waits if somebody else does.
func (s *Stage) run(ctx context.Context, exec Executor) error {
	for {
		s.mu.Lock()
		switch s.state {
		case StageDone, StageFailed:
			defer s.mu.Unlock()
			return s.err
		case StagePending:
			s.state, s.running = StageRunning, make(chan struct{})
			s.mu.Unlock()
			return s.execute(ctx, exec)
		}
		wait := s.running
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Stage) execute(ctx context.Context, exec Executor) error {
	err := fmt.Errorf("stage %s: a hook panicked", s.name)
	defer func() { // also when a hook panics: nobody may wait for ever
		s.mu.Lock()
		defer s.mu.Unlock()
		if canceled(ctx, err) {
			s.state = StagePending
		} else {
			s.settle(err)
		}
		close(s.running)
	}()
	err = s.phases(ctx, exec, s.config())
	return err
}

func (s *Stage) phases(ctx context.Context, exec Executor, c StageConfig) error {
	if c.Begin != nil {
		if err := c.Begin(ctx); err != nil {
			return err
		}
	}
	err := exec.RunStage(ctx, s)
	if c.Finish != nil {
		err = c.Finish(err)
	}
	return err
}

// Stages lists the given stages and all they still depend on, dependencies
// first, each once, in an order that depends only on how they were made.
func Stages(stages ...*Stage) []*Stage {
	var order []*Stage
	seen := map[*Stage]bool{}
	var visit func(s *Stage)
	visit = func(s *Stage) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for _, d := range s.Deps() {
			visit(d)
		}
		order = append(order, s)
	}
	for _, s := range stages {
		visit(s)
	}
	return order
}

// Materialize runs the stages and what they depend on, dependencies first, one
// stage after the other. It stops at the first error.
func Materialize(ctx context.Context, exec Executor, stages ...*Stage) error {
	for _, s := range Stages(stages...) {
		if err := s.run(ctx, exec); err != nil {
			return err
		}
	}
	return nil
}
