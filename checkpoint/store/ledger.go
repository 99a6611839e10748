package store

import (
	"cmp"
	"errors"
	"slices"
)

// Partition names one partition of an operator in one layout.
type Partition struct {
	Operator  int // the operator's number in the root
	Layout    int // 0, or the number of the last rescale
	Partition int // from 0
}

func (p Partition) compare(q Partition) int {
	return cmp.Or(cmp.Compare(p.Operator, q.Operator), cmp.Compare(p.Layout, q.Layout), cmp.Compare(p.Partition, q.Partition))
}

// file is a state file that is known to lie in the root.
type file struct {
	version uint64
	name    string
	size    int64
	whole   bool // a snapshot or a base: a load can begin with it
	good    bool // it was written by this run, read whole by it, or is named by a commit
}

// account is what the ledger knows of one partition.
type account struct {
	id     Partition
	policy Policy
	files  []file // that are not below F, by version
	born   uint64 // the version before the first that the ledger has seen
	live   bool   // the newest commit has the partition

	last    uint64 // version of the newest good whole file; born if there is none
	size    int64  // of that file
	chain   uint64 // deltas after it
	bytes   int64  // of those deltas
	tried   uint64 // number of the last try, for fairness
	fails   int
	retry   int64  // not before this time (unix ns), after failures
	began   uint64 // newest version when the running snapshot began
	running bool
	remake  bool   // a bad or missing snapshot was seen: a new one is due
	above   uint64 // the version of that; the new one is of a later version (P4)
	exact   bool   // a snapshot of a given version is asked for, and pinned
	again   bool   // the last one failed: a newer one is due in its place
}

// ledger is the deterministic core of maintenance: it is told commits, what was
// written and what failed, and says which snapshot is due, which file may be
// deleted and how far F may rise. It does no I/O and asks no clock.
type ledger struct {
	retain   int
	accounts map[Partition]*account
	order    []*account        // live ones, by Partition
	newest   uint64            // newest commit that passed the owner check
	time     int64             // its batch time
	floor    uint64            // its F
	low      uint64            // offsets/ and commits/ below are gone
	trash    []string          // names that may be deleted, in order
	counts   map[string]uint64 // what was counted in which epoch, by name, until it may be deleted
	bad      []Notice          // what loads found, to be told
	tries    uint64
	running  int
	stats    Stats
}

func newLedger(retain int) *ledger {
	return &ledger{retain: retain, low: 1, accounts: map[Partition]*account{}, counts: map[string]uint64{}}
}

// seed is told what a run begins with: the newest commit and how its partitions
// were loaded.
func (l *ledger) seed(epoch uint64, time int64, floor uint64, entries []entry, loads []LoadStats, policy func(operator int) Policy) {
	l.newest, l.time, l.floor, l.low = epoch, time, floor, max(1, floor)
	l.stats.Newest = epoch
	for i := range loads {
		ld := &loads[i]
		a := l.account(ld.Partition, ld.Head)
		a.files = slices.Clone(ld.files)
		a.remake = ld.Repaired > 0
		if a.remake {
			a.above = ld.Version
		}
		for _, b := range ld.Bad {
			l.bad = append(l.bad, Notice{Kind: NoticeSnapshotBad, Partition: ld.Partition, Version: b.Version, Name: b.File, Err: b.Err})
		}
		if len(ld.Bad) == 0 && a.remake {
			l.bad = append(l.bad, Notice{Kind: NoticeSnapshotBad, Partition: ld.Partition, Version: ld.Version, Err: errLost})
		}
		l.recount(a)
	}
	l.enter(epoch, entries, policy)
}

var errLost = errors.New("a snapshot that should be there is not")

// enter makes the partitions of a commit the live ones.
func (l *ledger) enter(epoch uint64, entries []entry, policy func(operator int) Policy) {
	for _, a := range l.order {
		a.live = false
	}
	l.order = l.order[:0]
	for _, e := range entries {
		a := l.account(e.id, epoch-1)
		if !a.live {
			a.live = true
			l.order = append(l.order, a)
		}
		a.policy = policy(e.id.Operator).filled()
		if e.name != "" {
			l.add(a, file{version: epoch, name: e.name, size: e.size, whole: e.base, good: true})
		}
	}
	slices.SortFunc(l.order, func(a, b *account) int { return a.id.compare(b.id) })
}

// entry is what a commit says of a partition.
type entry struct {
	id   Partition
	name string // "" if the version changed nothing
	base bool
	size int64
}

// committed is told a commit that passed the owner check. policy gives the
// policy of an operator. It returns the partitions that are to be pinned at
// exactly this version.
func (l *ledger) committed(epoch uint64, time int64, floor uint64, entries []entry, policy func(operator int) Policy) (exact []Partition) {
	prev := l.time
	l.newest, l.time = epoch, time
	l.stats.Newest = epoch
	l.enter(epoch, entries, policy)
	at := map[int]bool{}
	for _, a := range l.order {
		if a.policy.At == nil {
			continue
		}
		due, asked := at[a.id.Operator]
		if !asked {
			due = a.policy.At(prev, time)
			at[a.id.Operator] = due
		}
		if due {
			exact = append(exact, a.id)
		}
	}
	l.raise(floor)
	return exact
}

func (l *ledger) account(id Partition, born uint64) *account {
	a := l.accounts[id]
	if a == nil {
		a = &account{id: id, born: born, last: born}
		l.accounts[id] = a
	}
	return a
}

// add enters a file, once.
func (l *ledger) add(a *account, f file) {
	i, _ := slices.BinarySearchFunc(a.files, f.version, func(f file, v uint64) int { return cmp.Compare(f.version, v) })
	for ; i < len(a.files) && a.files[i].version == f.version; i++ {
		if a.files[i].name == f.name {
			a.files[i].good = a.files[i].good || f.good
			l.recount(a)
			return
		}
	}
	a.files = slices.Insert(a.files, i, f)
	l.recount(a)
}

// recount finds the newest good whole file and what stands after it.
func (l *ledger) recount(a *account) {
	a.last, a.size, a.chain, a.bytes = a.born, 0, 0, 0
	for i := len(a.files) - 1; i >= 0; i-- {
		f := &a.files[i]
		if f.whole && f.good {
			a.last, a.size = f.version, f.size
			break
		}
	}
	// Deltas of the snapshot's own version are in it.
	for i := len(a.files) - 1; i >= 0 && a.files[i].version > a.last; i-- {
		if f := &a.files[i]; !f.whole && f.good {
			a.chain++
			a.bytes += f.size
		}
	}
}
