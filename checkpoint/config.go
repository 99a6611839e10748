package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// Takeover says what a start does about another run that holds the root.
type Takeover int

const (
	// TakeoverAuto refuses while another run holds the lock, and takes over on
	// stores that have no locks.
	TakeoverAuto Takeover = iota
	// TakeoverNever refuses on stores without locks too, if the root has ever
	// had an owner: nobody can tell there whether it lives.
	TakeoverNever
	// TakeoverForce takes over from a run that holds the lock; that run finds
	// out before its next commit.
	TakeoverForce
)

// Options are the settings that have defaults; the zero value is all defaults.
type Options struct {
	// Compression is that of state files; the zero value is none.
	Compression statefile.Compression
	// RetryLimit bounds how long one failing call is tried again. 0 means 30 s;
	// negative: no second try.
	RetryLimit time.Duration
	// MinSnapshotsToRetain is how many valid snapshots of each partition are
	// kept. 0 means 2.
	MinSnapshotsToRetain int
	// MaintenanceInterval is the time between two rounds of clean-up. 0 means
	// 60 s.
	MaintenanceInterval time.Duration
	// SnapshotVersions is the most versions between two snapshots of a
	// partition. 0 means 200; negative: no bound.
	SnapshotVersions int
	// NoSnapshotBySize switches off that a snapshot is also taken when the deltas
	// since the last are larger than it.
	NoSnapshotBySize bool
}

// Config is what a run opens a root with. Store, Run, Now, Wait and Interval
// must be given.
type Config struct {
	// Store is the root. Its tag, if it is a vfs.Dir, must be this run's own.
	Store vfs.Store
	// Run is the run's id: unlike that of any other run of this root, ever.
	Run string
	// After is the term of the session that this one replaces after ErrRestart
	// (RestartError.Term), else 0. The new session takes the next term or none.
	After uint64
	// Host and PID tell where the run is, for people.
	Host string
	PID  int
	// Now gives the time in unix nanoseconds. It is told to people only and
	// decides nothing.
	Now func() int64
	// Wait returns after d, or with the context's error when that ends first.
	Wait func(ctx context.Context, d time.Duration) error
	// Elapsed gives the time since any fixed moment. It bounds retries, of which three
	// are made if its clock is set forward; nil counts the pauses between them alone.
	Elapsed func() time.Duration

	// Interval is the batch interval in nanoseconds, Zero the origin of its grid
	// in a fresh root; afterwards the root's own zero stands.
	Interval, Zero int64
	// Operators are the job's stateful operators.
	Operators []JobOperator
	// Sources are the names of the job's sources. Nil: neither they nor the sinks are
	// compared with those of the root.
	Sources []string
	// Sinks are the job's exactly-once sinks.
	Sinks []sink.Unit
	// Fenced is told of each sink that this run has, from its first fence on, whatever
	// became of that: the caller closes those, and no other, which another run of the
	// process may have. Nil is allowed.
	Fenced func(u sink.Unit)
	// Counts says that the counters of commits are to be exact, over an epoch that
	// is adopted too: with exactly-once sinks they then cost a document an epoch.
	Counts bool

	// Rescale allows partition counts to change.
	Rescale bool
	// Drop names operators whose state is given up, sources whose position is, and
	// sinks that may have the planned epoch and are not asked.
	Drop []string
	// Takeover says what to do about another run.
	Takeover Takeover
	// AcceptRedo accepts an epoch computed again that differs from what a sink
	// has: the sink keeps what it has. It accepts that an epoch is adopted without
	// its Counts, if they are lost.
	AcceptRedo bool
	// Options have defaults.
	Options Options
	// Notice is told what a user should know. It is called from the goroutine
	// that calls the session. Nil is allowed.
	Notice func(Notice)
}

// JobOperator is an operator as the program has it. Of Operator, Number, Layout
// and Since are not read.
type JobOperator struct {
	Operator
	// PartitionsGiven says that the program's user gave the number of
	// partitions; otherwise the root's number is taken where there is one.
	PartitionsGiven bool
	// HasInitial says that the operator has an initial state, so that its first
	// version is a base.
	HasInitial bool
	// Place gives the partition of a key by its canonical bytes. Nil stands for
	// the partitioners "hash" and "murmur2".
	Place func(key []byte, n int) (int, error)
	// Fits says why an operator of the root with these settings cannot go on as this
	// one; nil if it can. It is asked before anything is written. Nil: it always can.
	Fits func(stored map[string]string) error
	// Convert gives a function that makes states of the old schema ones of
	// Operator.State: it appends the new form to dst. Nil: there is none.
	Convert func(old codec.Schema) (func(dst, state []byte) ([]byte, error), error)
}

// NoticeKind classifies notices.
type NoticeKind int

// The notices.
const (
	NoticeStart    NoticeKind = iota // the root was opened
	NoticeNewRoot                    // the root is new, so sinks start anew
	NoticeOperator                   // an operator is new
	NoticeChange                     // a rescale, a migration, a drop was begun or finished
	NoticeTypes                      // a stored type has changed and can be read
	NoticeInterval                   // the batch interval has changed
	NoticeAdopted                    // an epoch of an earlier run was committed without computing
	NoticeRetry                      // a call failed and is tried again
	NoticeSnapshot                   // a snapshot is bad and another one is used
	NoticeRedo                       // an epoch came out another way and that was accepted
	NoticeSink                       // what a sink has to say
	NoticeSource                     // a source is new, or is not in the program
)

// Notice is something that a user should know.
type Notice struct {
	Kind NoticeKind
	// Operator is the operator's name, or empty.
	Operator string
	// Text says it in words.
	Text string
	// Err is the error behind it, or nil.
	Err error
}

// validate finds faults of the program, before anything is read.
func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("checkpoint: "+format, args...)) }
	if c.Store == nil || c.Now == nil || c.Wait == nil || c.Run == "" || c.Interval <= 0 {
		bad("store, run id, clock and a positive interval must be given")
	}
	names := map[string]bool{}
	for i := range c.Operators {
		o := &c.Operators[i]
		if o.Name == "" || names[o.Name] {
			bad("operator %d has the name %q, which is empty or given twice", i, o.Name)
		}
		names[o.Name] = true
		if !utf8.ValidString(o.Name) {
			bad("operator name %q is not UTF-8 text, so it could not be found again", o.Name)
		}
		if o.Partitions < 1 || o.Partitions > maxParts {
			bad("operator %q has %d partitions; use 1 to %d", o.Name, o.Partitions, maxParts)
		}
	}
	sinks := map[string]bool{}
	for _, u := range c.Sinks {
		if u.Name() == "" || sinks[u.Name()] {
			bad("a sink has the name %q, which is empty or given twice", u.Name())
		}
		sinks[u.Name()] = true
	}
	return errors.Join(errs...)
}
