package store

import (
	"math"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
)

// Which snapshot is due, and how it ended.

// maxLanes is the most snapshots that run side by side, where slow ones hold
// others up.
const maxLanes = 4

// late is how due a snapshot is, in hundredths: 100 is due, 200 is twice.
func (l *ledger) late(a *account) uint64 {
	if a.exact {
		return 1 << 32 // before all others
	}
	n := uint64(0)
	if p := a.policy; p.Versions > 0 {
		n = (l.newest - min(a.last, l.newest)) * 100 / p.Versions
	}
	if p := a.policy; p.Bytes > 0 {
		n = max(n, uint64(a.bytes)*100/uint64(max(p.Bytes, a.size+1)))
	}
	if a.remake || a.again {
		n = max(n, 100)
	}
	// Without any other rule the bound on the chain still holds.
	return max(n, a.chain*100/a.policy.interval())
}

// next gives the partition whose snapshot is to be written now, if any, and
// marks it as running. One runs at a time; one that has taken a quarter of its
// policy's interval no longer counts, so that it holds nobody up.
func (l *ledger) next(now int64, can func(Partition) bool) (Partition, bool) {
	if l.running >= maxLanes {
		return Partition{}, false
	}
	var best *account
	var most uint64
	for _, a := range l.order {
		if a.running {
			if l.newest-a.began < max(1, a.policy.interval()/4) || sabotage.On("slow-starves") {
				return Partition{}, false
			}
			continue
		}
		n := l.late(a)
		if n < 100 || l.newest <= a.above && !sabotage.On("snapshot-rewritten") || a.retry > now || !can(a.id) {
			continue
		}
		if best == nil || n > most || n == most && a.tried < best.tried {
			best, most = a, n
		}
	}
	if best == nil {
		return Partition{}, false
	}
	l.begin(best)
	return best.id, true
}

func (l *ledger) begin(a *account) {
	if invariants.Enabled {
		invariants.Check(!a.running, "two snapshots of %v at once", a.id)
	}
	l.tries++
	a.tried, a.running, a.began = l.tries, true, l.newest
	l.running++
}

// done is told how the running snapshot of a partition ended. f is nil if it
// failed, or if there was nothing to write.
func (l *ledger) done(id Partition, f *file, failed bool, now, longest int64) {
	a := l.accounts[id]
	if a == nil || !a.running {
		return
	}
	a.running = false
	l.running--
	switch {
	case failed:
		a.fails++
		a.again = true
		wait := longest
		if shift := a.fails - 1; shift < 30 {
			wait = min(longest, firstRetry<<shift)
		}
		a.retry = now + wait
		l.stats.Failed++
	case f != nil:
		if a.remake {
			l.stats.Repaired++
		}
		a.fails, a.retry, a.remake, a.again = 0, 0, false, false
		l.stats.Snapshots++
		l.stats.SnapshotBytes += f.size
		f.whole, f.good = true, true
		if f.version < l.floor {
			l.trash = append(l.trash, f.name) // it came too late to be of use
			return
		}
		l.add(a, *f)
	default:
		a.fails, a.retry, a.again = 0, 0, false
	}
}

// later gives a snapshot back until the next commit.
func (l *ledger) later(id Partition) {
	l.done(id, nil, false, 0, 0)
	l.accounts[id].above = l.newest
}

// firstRetry is the wait after the first failure, in nanoseconds; it doubles.
const firstRetry = int64(1e9)

// tooLong says that some chain would pass twice the interval with the next
// commit.
func (l *ledger) tooLong() bool {
	for _, a := range l.order {
		if l.over(a) {
			return true
		}
	}
	return false
}

// It begins a tenth before twice the interval, so that also two such chains in a
// row, with the snapshots of other partitions beside them, stay within the files
// that report 16 allows.
func (l *ledger) over(a *account) bool {
	n := a.policy.interval()
	return a.chain >= 2*n-n/5
}

// forced gives the partitions whose snapshot must come before the next commit
// and is not being written. One that has just failed waits for its retry.
func (l *ledger) forced(now int64) (ids []Partition) {
	for _, a := range l.order {
		if l.over(a) && !a.running && l.newest > a.above && a.retry <= now {
			ids = append(ids, a.id)
		}
	}
	return ids
}

// waiting says that a snapshot is being written for which the commit waits.
func (l *ledger) waiting() bool {
	for _, a := range l.order {
		if a.running && l.over(a) {
			return true
		}
	}
	return false
}

// wait is how long nothing is due, at most longest.
func (l *ledger) wait(now, longest int64) int64 {
	for _, a := range l.order {
		if a.retry > now {
			longest = min(longest, a.retry-now)
		}
	}
	return longest
}

// summary gives the counters.
func (l *ledger) summary() Stats {
	s := l.stats
	s.Floor = l.floor
	s.Oldest, _ = l.oldest(math.MaxUint64)
	s.Last = make(map[Partition]uint64, len(l.order))
	for _, a := range l.order {
		s.ChainMax = max(s.ChainMax, a.chain)
		s.Last[a.id] = a.last
	}
	return s
}
