package staterdd

import (
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/timeout"
)

// openIndex readies the expiry index for the version m that has just been opened: it is built
// from all slots when there is none, when slots were renumbered, and after a sealed version was
// taken back. What it is built from is the version before, so it is committed at once.
func (p *Partition[K, V, S, M]) openIndex(l *lineage[K, S], m *statemap.Map[K, S], now int64) {
	if !p.op.indexed() {
		return
	}
	layout, keyed := m.Layout(), p.op.keyed()
	if l.index != nil && !l.stale && l.layout == layout {
		return
	}
	if keyed {
		l.index = timeout.NewDeadline(p.op.slide)
	} else {
		l.index = timeout.NewIdle(p.op.slide)
	}
	l.layout, l.stale = layout, false
	m.AllSlots(func(slot uint32, t int64) bool {
		if sabotage.On("index-not-rebuilt") {
			return false
		}
		if due, ok := dueTime(keyed, t); ok {
			l.index.Add(slot, hint(keyed, due, now))
		}
		return true
	})
	l.index.Commit()
}

// index tells the index what the block just applied made due earlier than it knows: keys that
// came to life, and new deadlines. An idle key's time only grows, which needs no telling.
func (p *Partition[K, V, S, M]) index() {
	if !p.op.indexed() {
		return
	}
	x := p.line.index
	if !p.op.keyed() {
		for _, slot := range p.block.Inserted() {
			x.Add(slot, p.now)
		}
		return
	}
	for i := range p.keys {
		if d, ok := dueTime(true, p.block.Time(i)); ok {
			if slot, has := p.block.Slot(i); has {
				x.Add(slot, d)
			}
		}
	}
}

// hint gives the time that the index is told for an entry that is due by due, in a batch at now.
// A given state may carry an update time that is still to come; data will then make it earlier,
// which an idle index must not miss. A hint may always be too early.
func hint(keyed bool, due, now int64) int64 {
	if keyed {
		return due
	}
	return min(due, now)
}

// dueTime gives what the index orders entries by: the update time, so that it does not depend on
// the timeout, or the deadline, if there is one.
func dueTime(keyed bool, t int64) (int64, bool) {
	if !keyed {
		return t, true
	}
	d, ok, _ := UnpackDeadline(t)
	return d, ok
}
