package store

import (
	"maps"
	"math"
	"slices"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/internal/sabotage"
)

// Retention (P5) as pure functions of what the ledger knows.
//
// R is the oldest version that is promised: every partition has the wanted
// number of good snapshots at or above it, and the engine (windows, replay)
// needs no older one. F is the oldest version of which files are needed to load
// R and all that follows: of each partition the newest good snapshot at or
// below R, and of these the oldest. A version below R but not below F loads
// exactly if all of its partitions have a snapshot between F and it.

// oldest gives R, at most limit; ok is false while some partition has too few
// good snapshots.
func (l *ledger) oldest(limit uint64) (r uint64, ok bool) {
	r = min(limit, l.newest)
	for _, a := range l.order {
		left := l.retain
		v := uint64(0)
		for i := len(a.files) - 1; i >= 0 && left > 0; i-- {
			f := &a.files[i]
			if !f.whole || !f.good || left < l.retain && f.version == v {
				continue // two snapshots of one version are one
			}
			v = f.version
			left--
		}
		if left > 0 {
			return 0, false
		}
		r = min(r, v)
	}
	return r, len(l.order) > 0
}

// nextFloor gives the F that the next commit may carry: it never falls.
func (l *ledger) nextFloor(limit uint64) uint64 {
	r, ok := l.oldest(limit)
	if !ok {
		return l.floor
	}
	f := uint64(math.MaxUint64)
	for _, a := range l.order {
		v, found := uint64(0), false
		for i := len(a.files) - 1; i >= 0 && !found; i-- {
			if w := &a.files[i]; w.whole && w.good && w.version <= r {
				v, found = w.version, true
			}
		}
		if !found {
			return l.floor // the floor of the engine is older than all snapshots
		}
		f = min(f, v)
	}
	if sabotage.On("floor-too-high") {
		f = l.newest
	}
	f = max(f, l.floor)
	if invariants.Enabled {
		invariants.Check(f <= l.newest, "floor %d above the newest version %d", f, l.newest)
	}
	return f
}

// raise is told the F of a commit that passed the owner check: what lies below
// may be deleted.
func (l *ledger) raise(floor uint64) {
	if floor <= l.floor {
		return
	}
	l.floor = floor
	ids := make([]Partition, 0, len(l.accounts))
	for id := range l.accounts {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, Partition.compare)
	for _, id := range ids {
		a := l.accounts[id]
		n := 0
		for n < len(a.files) && a.files[n].version < floor {
			l.trash = append(l.trash, a.files[n].name)
			n++
		}
		if n > 0 {
			a.files = slices.Delete(a.files, 0, n)
			l.recount(a)
		}
		if !a.live && len(a.files) == 0 {
			delete(l.accounts, id) // a layout or an operator that is gone
		}
	}
	for ; l.low < floor; l.low++ {
		l.trash = append(l.trash, checkpoint.PlanName(l.low), checkpoint.CommitName(l.low))
	}
}

// counted is told the document of what was counted in an epoch.
func (l *ledger) counted(epoch uint64, name string) { l.counts[name] = epoch }

// dropCounts gives up those of epochs before the newest.
func (l *ledger) dropCounts() {
	for _, name := range slices.Sorted(maps.Keys(l.counts)) {
		if l.counts[name] < l.newest && !sabotage.On("counts-kept") {
			l.junk(name)
			delete(l.counts, name)
		}
	}
}

// found is told a file that a listing showed. It may have been known.
func (l *ledger) found(id Partition, f file) {
	if f.version < l.floor {
		l.junk(f.name)
		return
	}
	l.add(l.account(id, f.version-min(1, f.version)), f)
}

// junk enters a name that may be deleted.
func (l *ledger) junk(name string) { l.trash = append(l.trash, name) }

// discard gives the next name to delete.
func (l *ledger) discard() (name string, ok bool) {
	if len(l.trash) == 0 {
		return "", false
	}
	name, l.trash = l.trash[0], l.trash[1:]
	return name, true
}

// discarded is told how that went. A name that failed goes to the end, so that
// it holds no other up.
func (l *ledger) discarded(name string, failed bool) {
	if failed {
		l.stats.DeleteFailed++
		l.trash = append(l.trash, name)
		return
	}
	l.stats.Deleted++
}
