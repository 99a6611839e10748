package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	// Counts says that the run makes a checkpoint.Counts for each epoch.
	Counts bool
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
// decisions are those of a deterministic core, the ledger; Run does the work.
// All methods may be called from any goroutine.
type Maintainer struct {
	c     MaintainerConfig
	units map[int]*Unit
	start *checkpoint.Commit // the newest when it was made; nil if there was none
	wake  chan struct{}

	notice sync.Mutex // held while Notice is called

	mu      sync.Mutex
	ledger  *ledger
	exact   map[Partition]*Pinned // versions that a policy asked for by time
	changed chan struct{}         // closed and made anew when a snapshot ends
	swept   bool
	failing map[string]error // by what failed, until it has succeeded
}

// NewMaintainer makes a maintainer of a root whose newest commit is newest (nil
// for a fresh root), which has passed the owner check, and whose partitions were
// loaded as loads say. It touches no file. Errors are those of the config.
func NewMaintainer(c MaintainerConfig, newest *checkpoint.Commit, loads []LoadStats) (*Maintainer, error) {
	if c.Store == nil || c.Root == nil || c.Clock == nil {
		return nil, errors.New("maintenance: store, root and clock are required")
	}
	if c.Retain < 0 || c.Interval < 0 || c.Workers < 0 {
		return nil, fmt.Errorf("maintenance: %d snapshots to retain, interval %v, %d workers: must not be negative", c.Retain, c.Interval, c.Workers)
	}
	c.Retain = cmp.Or(c.Retain, DefaultRetain)
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	c.Workers = cmp.Or(c.Workers, 1)
	m := &Maintainer{
		c: c, units: map[int]*Unit{}, wake: make(chan struct{}, 1), ledger: newLedger(c.Retain),
		exact: map[Partition]*Pinned{}, changed: make(chan struct{}), failing: map[string]error{},
	}
	if err := c.Policy.check(); err != nil {
		return nil, err
	}
	for i := range c.Units {
		u := c.Units[i]
		if err := u.Policy.check(); err != nil {
			return nil, fmt.Errorf("operator %d: %w", u.Number, err)
		}
		if m.units[u.Number] != nil || u.Pin == nil {
			return nil, fmt.Errorf("maintenance: operator %d is given twice or cannot be pinned", u.Number)
		}
		m.units[u.Number] = &u
	}
	if newest != nil {
		m.start = newest
		m.ledger.seed(newest.Epoch, newest.Time, newest.Floor, entriesOf(newest), loads, m.policy)
	}
	return m, nil
}

func (m *Maintainer) policy(operator int) Policy {
	if u := m.units[operator]; u != nil && !u.Policy.IsZero() {
		return u.Policy
	}
	return m.c.Policy
}

// entriesOf lists the partitions of a commit.
func entriesOf(c *checkpoint.Commit) (list []entry) {
	for i := range c.Operators {
		op := &c.Operators[i]
		for p := range op.Partitions {
			pc := &op.Partitions[p]
			e := entry{id: Partition{op.Number, op.Layout, p}, base: pc.Base, size: pc.Size}
			if pc.File != "" {
				e.name = checkpoint.StateFolder(op.Number, op.Layout, p) + pc.File
			}
			list = append(list, e)
		}
	}
	return list
}

// Committed tells a commit that has passed the owner check, before the next
// epoch changes anything: a policy may ask for exactly this version, which is
// then pinned here. It does no I/O.
func (m *Maintainer) Committed(c *checkpoint.Commit) {
	m.mu.Lock()
	exact := m.ledger.committed(c.Epoch, c.Time, c.Floor, entriesOf(c), m.policy)
	if m.c.Counts {
		m.ledger.counted(c.Epoch, checkpoint.CountsName(c.Epoch, m.c.Term))
	}
	m.ledger.dropCounts()
	m.mu.Unlock()
	for _, id := range exact {
		m.pinExact(id, c.Epoch)
	}
	m.poke()
}

// pinExact pins the version that was just committed.
func (m *Maintainer) pinExact(id Partition, epoch uint64) {
	u := m.units[id.Operator]
	if u == nil {
		return
	}
	p, err := u.Pin(id.Partition)
	if err == nil && p.Version != epoch {
		p.Release()
		err = fmt.Errorf("version %d was pinned where %d was committed", p.Version, epoch)
	}
	if err != nil {
		m.mu.Lock()
		m.ledger.accounts[id].again = true
		m.mu.Unlock()
		m.fail(Notice{Kind: NoticeSnapshotFailed, Partition: id, Version: epoch, Err: err})
		return
	}
	m.mu.Lock()
	late := m.exact[id]
	m.exact[id] = &p
	m.ledger.accounts[id].exact = true
	m.mu.Unlock()
	if late != nil {
		late.Release() // it was not begun in a whole interval; the newer one serves better
	}
}

// poke lets Run look again.
func (m *Maintainer) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Floor gives the F for the next commit. limit is the oldest version that the
// engine needs, for windows or replay; math.MaxUint64 if it needs none.
func (m *Maintainer) Floor(limit uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.nextFloor(limit)
}

// Stats gives what has been done so far.
func (m *Maintainer) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.ledger.summary()
	for _, what := range slices.Sorted(maps.Keys(m.failing)) {
		s.Err = m.failing[what]
	}
	return s
}

// tell passes a notice on.
func (m *Maintainer) tell(n Notice) {
	if m.c.Notice == nil {
		return
	}
	m.notice.Lock()
	defer m.notice.Unlock()
	m.c.Notice(n)
}

// fail remembers an error and tells it.
func (m *Maintainer) fail(n Notice) {
	m.mu.Lock()
	m.failing[n.subject()] = n.Err
	m.mu.Unlock()
	m.tell(n)
}

// ok forgets the error of what has succeeded. mu is held.
func (m *Maintainer) ok(n Notice) { delete(m.failing, n.subject()) }

func (m *Maintainer) now() int64 { return m.c.Clock.Now().UnixNano() }
