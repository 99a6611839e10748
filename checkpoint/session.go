package checkpoint

import (
	"context"
	"io"

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
	// bases.
	Migrated bool
	// Old is the operator in the version to load, nil if Fresh.
	Old *Operator
}

// Session is a run's hold on a root. Its methods are called from one goroutine,
// in the order Plan, Deltas, Outputs, Sinks, Commit for each epoch; a pending
// batch begins with Deltas. Put may be called from any goroutine.
//
// ErrNotOwner and ErrRestart from any method end the session: Close it.
type Session struct{}

// Open makes the run the owner of the root, as P1 has it: all that can refuse
// the start is checked before anything is written; then the term is taken, the
// sinks fenced and read, the newest commit found, pending changes finished, and
// an epoch that every sink has committed. Changes that the job asks for are
// made if no batch is pending. The caller then loads the version of
// Start().Commit and calls Loaded.
//
// Errors: *OwnedError, *RefusedError, *NotOwnerError, ErrRestart,
// *CorruptError, *FormatError, *GapError, and those of store and sinks.
func Open(ctx context.Context, cfg Config) (*Session, error) { return nil, errSkeleton }

// Start is what the run begins from; after Change, what it goes on from.
func (s *Session) Start() Start { return Start{} }

// Root is a reader of the same root.
func (s *Session) Root() *Root { return nil }

// Term is the number of the run.
func (s *Session) Term() uint64 { return 0 }

// Loaded is called when the version was loaded, or could not be: err is the
// load's error. It returns ErrNotOwner if a newer run has taken over (whose
// clean-up may be why a file is gone), else err.
func (s *Session) Loaded(ctx context.Context, err error) error { return errSkeleton }

// Plan begins the next epoch, by writing offsets/N. Of p, Time, Prev,
// Watermark, Sources and Settings are read.
func (s *Session) Plan(ctx context.Context, p Plan) error { return errSkeleton }

// Epoch is the number of the epoch that is under way or comes next.
func (s *Session) Epoch() uint64 { return 0 }

// Deltas is called before the epoch's first delta is written; it finds out
// early that the run is no longer the owner.
func (s *Session) Deltas(ctx context.Context) error { return errSkeleton }

// Put makes a state file. name is a StateName's String with the session's term.
// write may be called more than once and must write the same bytes. Failures
// are retried; a name that is taken was taken by an earlier try.
func (s *Session) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	return errSkeleton
}

// Outputs is called when all deltas are durable and plain outputs begin.
func (s *Session) Outputs() error { return errSkeleton }

// Sinks writes the exactly-once sinks. ops are the operators' entries of the
// commit to come; units has one writer for each sink, in the order of
// Config.Sinks.
func (s *Session) Sinks(ctx context.Context, ops []OperatorCommit, units []sink.Writer) error {
	return errSkeleton
}

// CommitInput is what the engine knows of an epoch that is to be committed.
type CommitInput struct {
	// Operators has an entry for each of Start().Operators, in the same order.
	Operators []OperatorCommit
	// Watermark is that after the epoch.
	Watermark int64
	// Floor is the oldest version to keep; a lower one than before counts as
	// that one.
	Floor uint64
	// Counters are for people and tools.
	Counters map[string]int64
}

// Commit writes commits/N, checks that the run is still the owner, and returns
// the commit. Until it has returned nil, nothing may be reported of the epoch.
func (s *Session) Commit(ctx context.Context, in CommitInput) (*Commit, error) {
	return nil, errSkeleton
}

// Aborted tells that the epoch is given up because of err; open transactions of
// sinks are aborted. The epoch stays planned, and may be begun again by Deltas.
func (s *Session) Aborted(ctx context.Context, err error) error { return errSkeleton }

// Change makes the changes that Start().ChangeWanted tells of, as an epoch of
// its own. Afterwards Start tells of another version to load.
func (s *Session) Change(ctx context.Context) error { return errSkeleton }

// Close gives the root back. It closes no sink.
func (s *Session) Close() error { return errSkeleton }
