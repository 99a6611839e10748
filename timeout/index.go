package timeout

import (
	"math"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
)

// Index holds the hints of one state map's slots. Make it with [NewIdle] or
// [NewDeadline]; the zero value is not usable.
//
// One version is one round: Add for what the data inserted or moved, at most one
// Due for the pass, Add for what the pass's calls set, then Commit or Abort.
type Index struct {
	width    int64
	deadline bool

	// Committed: what describes the newest sealed version.
	buckets map[int64][]uint32 // bucket number → slots hinted there
	order   heap               // the numbers of buckets, least first
	entries int                // hints in all buckets, stale ones included
	hinted  bitset             // idle mode: slots that have their one hint
	rel     []uint32           // deadline mode: bucket number − base; 0 = no hint
	base    int64              // deadline mode: see rebase
	live    int                // deadline mode: slots with rel != 0
	cursor  int64              // bucket of the last committed pass
	started bool               // cursor and base are set

	staged
	spare []uint32 // a consumed bucket's memory, for the next new one
}

// NewIdle returns an index for idle timeouts: one bit a slot beside the hint.
// The due time of a slot must never become earlier while it has a hint; update
// times and "update time + timeout" do not, since batch times only grow.
//
// Passing update times as due times, and "batch time − timeout" to Due, makes
// the index independent of the timeout: a changed one needs no Rebuild.
//
// The width is in nanoseconds; below 1 counts as 1.
func NewIdle(width int64) *Index {
	return &Index{width: max(width, 1), buckets: map[int64][]uint32{}}
}

// NewDeadline returns an index for deadlines that may move both ways: a bucket
// number a slot beside the hint. The width is in nanoseconds; below 1 counts
// as 1.
func NewDeadline(width int64) *Index {
	x := NewIdle(width)
	x.deadline = true
	return x
}

// Add stages a hint for a slot whose key was inserted, or, in deadline mode,
// whose deadline was set. It does nothing if the slot has a hint that is not
// later: then the pass finds the slot in time anyway. A slot that this version's
// pass has visited gets the hint that visit returned or this one, whichever is
// earlier.
func (x *Index) Add(slot uint32, due int64) {
	b := x.bucket(due)
	// A visited slot loses its hint at Commit, so it is not covered by it.
	if x.covered(slot, b) && !x.seen.has(slot) {
		return
	}
	x.stage(slot, b)
}

// Due is the pass: it calls visit once for every slot that may be due at now or
// before, in no order, and stages what visit answers: live = false drops the
// hint, live = true moves it to due, the slot's present due time. A slot visited
// though it is not due is normal; so is one that is no longer live. Nothing
// changes before Commit.
//
// For a strict rule (due < threshold) pass threshold − 1. Hints staged by Add
// before the pass take part. visit may call Add and nothing else of the index. A
// second pass before Commit replaces the first.
func (x *Index) Due(now int64, visit func(slot uint32) (due int64, live bool)) {
	x.forgetPass()
	limit := x.bucket(now)
	x.passed, x.limit = true, limit
	x.addsBefore = len(x.adds)
	see := func(slot uint32, b int64) {
		if !x.seen.set(slot) {
			return
		}
		due, live := visit(slot)
		to := int64(dropped)
		if live {
			to = x.bucket(due)
			if invariants.Enabled && !x.deadline {
				invariants.Check(to >= b, "timeout: slot %d due in bucket %d was hinted in %d", slot, to, b)
			}
		}
		x.visited = append(x.visited, slot)
		x.target = append(x.target, to)
	}
	x.order.walk(limit, func(b int64) {
		for _, slot := range x.buckets[b] {
			if x.valid(slot, b) {
				see(slot, b)
			}
		}
	})
	if x.minAdd <= limit {
		x.eachAdd(func(i int, slot uint32, b int64) {
			if i < x.addsBefore && b <= limit {
				see(slot, b)
			}
		})
	}
	if sabotage.On("pass-mutates-early") {
		x.Commit()
	}
}

// Commit makes everything staged part of the index: the version is sealed.
func (x *Index) Commit() {
	if !x.started && len(x.adds) > 0 {
		// Far hints are rounded by their distance from the first.
		x.start(x.minAdd - 1)
	}
	if x.passed {
		for _, slot := range x.visited {
			x.unhint(slot)
		}
		x.consume()
		x.start(x.limit)
	}
	for i, slot := range x.visited {
		if x.target[i] != dropped {
			x.place(slot, x.target[i])
		}
	}
	x.eachAdd(func(i int, slot uint32, b int64) {
		if i < x.addsBefore && x.seen.has(slot) {
			return // the visit decided
		}
		x.place(slot, b)
	})
	x.Abort()
	x.trim(x.entries)
	if x.deadline && x.entries-x.live > x.live+1024 {
		x.sweep()
	}
}

// Abort forgets everything staged: the index again describes the newest sealed
// version, so the attempt can be repeated.
func (x *Index) Abort() {
	x.forgetPass()
	x.forgetAdds()
}

// Rebuild empties the index, staged hints too. The owner calls it when slots
// were renumbered or a state was loaded, adds all live slots and commits, before
// it begins the next version.
func (x *Index) Rebuild() {
	*x = Index{width: x.width, deadline: x.deadline, buckets: map[int64][]uint32{}}
}

// Len is the number of hints held, stale ones included.
func (x *Index) Len() int { return x.entries }

// Next is a time at or before the earliest hint, for deciding whether a pass
// could find anything; ok is false if there is none. Staged hints are not in it.
func (x *Index) Next() (due int64, ok bool) {
	if len(x.order) == 0 {
		return 0, false
	}
	b := x.order[0]
	if b < math.MinInt64/x.width {
		return math.MinInt64, true
	}
	return b * x.width, true
}

// bucket numbers are due / width, rounded down: never later than due.
func (x *Index) bucket(due int64) int64 {
	b := floorDiv(due, x.width)
	if sabotage.On("bucket-too-late") {
		b++
	}
	return max(b, dropped+1)
}

// covered reports whether the slot has a committed hint not later than b.
func (x *Index) covered(slot uint32, b int64) bool {
	if !x.deadline {
		return x.hinted.has(slot)
	}
	if sabotage.On("no-earlier-hint") {
		return x.relOf(slot) != 0
	}
	r := x.relOf(slot)
	return r != 0 && x.base+int64(r) <= b
}

// valid reports whether a hint in bucket b is the slot's own; an earlier hint
// makes the later one stale.
func (x *Index) valid(slot uint32, b int64) bool {
	return !x.deadline || (b > x.base && int64(x.relOf(slot)) == b-x.base)
}

func (x *Index) relOf(slot uint32) uint32 {
	if int(slot) >= len(x.rel) {
		return 0
	}
	return x.rel[slot]
}

// unhint forgets that the slot has a hint.
func (x *Index) unhint(slot uint32) {
	if !x.deadline {
		x.hinted.clear(slot)
		return
	}
	if x.relOf(slot) != 0 {
		x.rel[slot] = 0
		x.live--
	}
}
