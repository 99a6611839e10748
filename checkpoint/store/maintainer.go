package store

import (
	"context"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/vfs"
)

// Pinned is a committed version of one partition, kept alive.
type Pinned struct {
	// Version is the version.
	Version uint64
	// Write writes its snapshot (Operator.Snapshot of the pinned map).
	Write func(ctx context.Context) (Written, error)
	// Release lets it go. It is called once.
	Release func()
}

// Unit is an operator as the maintainer sees it.
type Unit struct {
	// Number is the operator's number; Policy says when its snapshots are due,
	// the zero Policy is that of the maintainer.
	Number int
	Policy Policy
	// Pin pins the newest committed version of a partition. It is called from
	// any goroutine, also while an epoch runs, and does not block for long. An
	// error is a failed snapshot that is tried again.
	Pin func(part int) (Pinned, error)
}

// Notice tells what maintenance has met: see its Kind.
type Notice struct {
	// Kind is "snapshot", "snapshot-failed", "snapshot-forced",
	// "snapshot-repaired", "deleted" or "delete-failed".
	Kind string
	// Partition and Version say of what; Name is the file, Size its length.
	Partition Partition
	Version   uint64
	Name      string
	Size      int64
	// Err is what failed.
	Err error
}

// MaintainerConfig says what a [Maintainer] works on. Store, Root and Clock are
// required.
type MaintainerConfig struct {
	Store vfs.Store
	Root  Root
	Clock clock.Clock
	// Term is that of the run; Tag the tag of its vfs.Dir, so that its own
	// temporary files are left alone.
	Term uint64
	Tag  string
	// Units are the operators. Partitions of others get no snapshots and keep
	// F where it is.
	Units []Unit
	// Policy is used for units without one; zero means the default.
	Policy Policy
	// Retain is the number of good snapshots that are kept of each partition;
	// 0 means 2, 1 is the least.
	Retain int
	// Interval is the time between two looks without a commit, and the longest
	// wait after failures; 0 means 60 s.
	Interval time.Duration
	// Workers is how many forced snapshots are written at once; 0 means 1.
	Workers int
	// Notice is told what happens, from the goroutines of maintenance, not at
	// once; nil means nobody.
	Notice func(Notice)
}

// Maintainer writes snapshots and deletes files beside the batches. Its
// decisions are those of a deterministic core; Run does the work. All methods
// may be called from any goroutine.
type Maintainer struct {
	c MaintainerConfig
}

// NewMaintainer makes a maintainer of a root whose newest commit is newest (nil
// for a fresh root), as loads have found it. It touches no file.
func NewMaintainer(c MaintainerConfig, newest *checkpoint.Commit, loads []LoadStats) (*Maintainer, error) {
	return &Maintainer{c: c}, nil
}

// Run works until ctx ends, and then returns nil when all its goroutines have
// ended. It begins with one listing of the root for what earlier runs left
// behind; after that it lists nothing.
func (m *Maintainer) Run(ctx context.Context) error { return nil }

// Committed tells a commit that has passed the owner check, before the next
// epoch begins. It never blocks on I/O.
func (m *Maintainer) Committed(c *checkpoint.Commit) {}

// Floor gives the F for the next commit. limit is the oldest version that the
// engine needs, for windows or replay; math.MaxUint64 if it needs none.
func (m *Maintainer) Floor(limit uint64) uint64 { return 0 }

// BeforeCommit is called before each commit. It returns at once unless the
// chain of a partition would pass twice its policy's interval: then it waits
// for the snapshot of that partition that is being written, or writes it. That
// a snapshot fails is no error of it; only ctx's end is.
func (m *Maintainer) BeforeCommit(ctx context.Context) error { return nil }

// Stats gives what has been done so far.
func (m *Maintainer) Stats() Stats { return Stats{} }
