package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/sink"
)

// Start is what a run begins from.
type Start struct {
	// Term is the number of the run, Root the root's id.
	Term uint64
	Root string
	// Fresh says that the root has no commit.
	Fresh bool
	// Zero is the origin of the grid.
	Zero int64
	// Commit is the newest commit, nil if there is none: the version to load.
	Commit *Commit
	// Last is the plan of that epoch, nil if there is none; it has the sources'
	// positions. After a change it is the plan of the last batch before it.
	Last *Plan
	// Pending is the batch that is planned and must be redone, or nil.
	Pending *Plan
	// Operators are the operators as this run's epochs write them, in the order
	// of their numbers, until a change.
	Operators []Operator
	// Changes has an entry for each of Operators, in the same order.
	Changes []Change
	// ChangeWanted says that Change must be called once the pending batch is
	// committed.
	ChangeWanted bool
}

// Change says how an operator differs from what the version to load has.
type Change struct {
	// Fresh says that the version does not have the operator: it starts from
	// its initial state, and its first files are bases.
	Fresh bool
	// Migrated says that the states of the version are of the schema Old.State
	// and must be loaded through the migration; the next epoch's files are
	// bases, of every partition.
	Migrated bool
	// Old is the operator in the version to load, nil if Fresh.
	Old *Operator
}

// Session is a run's hold on a root. Its methods are called from one goroutine,
// in the order Plan, Deltas, Outputs, Sinks, Commit for each epoch; a pending
// batch begins with Deltas. Put may be called from any goroutine.
//
// An error of Plan, Deltas, Outputs, Sinks, Commit or Change ends the session:
// what can be tried again was tried again. Close it; after a *RestartError open
// another one with Config.After.
type Session struct {
	cfg     Config
	m       protocol.Machine
	root    *Root
	lock    io.Closer
	term    atomic.Uint64 // 0 before it is registered
	telling sync.Mutex

	rootID  string
	zero    int64
	seqs    uint64    // the greatest metadata number that was seen
	commit  *Commit   // the newest, nil if there is none
	inForce *Metadata // that it names, or nil
	fit     fit       // the job beside it
	start   Start

	plan     *Plan            // of the epoch under way
	planned  *Metadata        // of a pending plan, as its planner meant it
	target   *Metadata        // that the next commit names, once it is written
	entries  []OperatorCommit // of the commit to come
	input    CommitInput
	ready    bool          // input is there
	memories []sink.Memory // as the sinks have them
	units    []sink.Writer
	redone   sink.Memory // what the last dry run would have written
	lost     int         // how often sinks said in this epoch that they were fenced
	adopted  *Metadata   // of the epoch that is adopted
	counted  *Counts     // of the epoch, once it is durable
	written  *Commit     // whose owner check has yet to come
	trying   *Commit     // that was begun to be created, until its epoch is reported

	past      uint64 // the greatest term of a commit or plan that was judged
	rehearsed uint64 // the version from which the change was tried

	failure error // the error behind a Fail
	newer   *NotOwnerError
	stopped error // why the session is over
}

// Open makes the run the owner of the root, as P1 has it: all that can refuse
// the start is checked before anything is written; then the term is taken, the
// sinks fenced and read, the newest commit found, a pending change finished, and
// an epoch that every sink has committed. Changes that the job asks for are made
// if no batch is pending. The caller then loads the version of Start().Commit
// and calls Loaded.
//
// Errors: *OwnedError, *RefusedError, *NotOwnerError, *RestartError,
// *CorruptError, *FormatError, *GapError, and those of store and sinks.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, root: OpenRoot(cfg.Store), memories: make([]sink.Memory, len(cfg.Sinks))}
	s.m = protocol.New(protocol.Config{Sinks: len(cfg.Sinks), After: cfg.After, AcceptRedo: cfg.AcceptRedo})
	err := s.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	return s, nil
}

func (s *Session) open(ctx context.Context) error {
	if err := s.drive(ctx); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if s.fit.change && s.m.Next().Kind == protocol.Idle {
		return s.Change(ctx)
	}
	return s.begun(ctx)
}

// Start is what the run begins from; after Change, what it goes on from.
func (s *Session) Start() Start { return s.start }

// Root is a reader of the same root.
func (s *Session) Root() *Root { return s.root }

// Term is the number of the run.
func (s *Session) Term() uint64 { return s.term.Load() }

// Epoch is the number of the epoch that is under way or comes next.
func (s *Session) Epoch() uint64 {
	if s.commit == nil {
		return 1
	}
	return s.commit.Epoch + 1
}

// Loaded is called when the version was loaded, or could not be: err is the
// load's error. It returns *NotOwnerError if a newer run has taken over (whose
// clean-up may be why a file is gone), else err.
func (s *Session) Loaded(ctx context.Context, err error) error {
	if oerr := s.owned(ctx); oerr != nil {
		return errors.Join(oerr, err)
	}
	return err
}

// Close gives the root back. It closes no sink. It may be called more than once.
func (s *Session) Close() error {
	if s.stopped == nil {
		s.stopped = errors.New("checkpoint: the session is closed")
	}
	return s.unlock()
}

func (s *Session) unlock() error {
	if s.lock == nil {
		return nil
	}
	l := s.lock
	s.lock = nil
	if err := l.Close(); err != nil {
		return fmt.Errorf("checkpoint: give the lock back: %w", err)
	}
	return nil
}
