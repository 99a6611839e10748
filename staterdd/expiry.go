package staterdd

import (
	"cmp"
	"math"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
)

// expiring is a key whose final or deadline call is due.
type expiring[K comparable] struct {
	key  K
	time int64 // update time, or deadline
	slot uint32
}

// beforeData is where expiry must not happen: a key with data in the batch is not idle.
func (p *Partition[K, V, S, M]) beforeData() error {
	if sabotage.On("timeout-before-data") {
		return p.expire()
	}
	return nil
}

// scans reports whether keys are looked for in this batch.
func (p *Partition[K, V, S, M]) scans() bool {
	switch {
	case !p.op.indexed():
		return false
	case p.op.scan == AtCheckpoint:
		return floorDiv(p.op.gridTime(p.now), p.op.checkpoint) > floorDiv(p.op.gridTime(p.prev), p.op.checkpoint)
	}
	return true
}

// threshold is the instant before which an update time or a deadline must lie to be due.
func (p *Partition[K, V, S, M]) threshold() int64 {
	t := p.now - p.op.timeout // a keyed operator has no timeout
	if t > p.now {            // before the beginning of time
		return math.MinInt64 + 1
	}
	return t
}

// floorDiv rounds down for instants before 1970 too, so that every multiple of the interval is
// met once.
func floorDiv(t, d int64) int64 {
	q := t / d
	if t%d < 0 {
		q--
	}
	return q
}

// expire calls the function for the keys that are due, in the order of update time or deadline,
// then canonical key bytes, and removes them.
func (p *Partition[K, V, S, M]) expire() error {
	if !p.scans() {
		return nil
	}
	p.findDue()
	p.at = func(int) { p.task.Origin = rdd.Origin{} } // these calls come from no record
	p.locate()
	for i := range p.exp {
		e := &p.exp[i]
		p.one[0], p.keys, p.row = e.key, p.one[:], 0
		if err := p.expireOne(e); err != nil {
			return err
		}
		if i&(smallChunk-1) == 0 {
			if err := cancelled(p.task); err != nil {
				return err
			}
		}
	}
	p.settle()
	return nil
}

// findDue collects the keys that are due from the index's hints; the entry's own time decides.
// The rule is strict, so the last instant that is due is the one before the threshold.
func (p *Partition[K, V, S, M]) findDue() {
	p.exp = p.exp[:0]
	keyed, m, last := p.op.keyed(), p.m, p.threshold()-1
	if sabotage.On("timeout-le") {
		last++
	}
	p.line.index.Due(last, func(slot uint32) (int64, bool) {
		t, live := m.SlotTime(slot)
		if !live {
			return 0, false
		}
		due, ok := dueTime(keyed, t)
		if !ok {
			return 0, false
		}
		if due > last {
			return hint(keyed, due, p.now), true
		}
		k, _, _, _ := m.SlotAt(slot)
		p.exp = append(p.exp, expiring[K]{key: k, time: due, slot: slot})
		return 0, false
	})
	if sabotage.On("expiry-order") {
		return
	}
	slices.SortFunc(p.exp, func(a, b expiring[K]) int {
		if c := cmp.Compare(a.time, b.time); c != 0 {
			return c
		}
		return p.op.key.Compare(a.key, b.key)
	})
}

// expireOne makes one call and what follows from it. Under guard a call that fails loses its
// output and its changes; the key goes, since its time is over.
func (p *Partition[K, V, S, M]) expireOne(e *expiring[K]) error {
	call := p.callTimingOut
	if p.op.keyed() {
		call = p.callDeadline
	}
	g := p.task.Guard
	if g == nil {
		return call(e)
	}
	before := g.Skipped()
	if err := g.Record(p.task, func() error { return call(e) }); err != nil {
		return err
	}
	if g.Skipped() > before {
		return p.removeSlot(e.slot)
	}
	return nil
}

// callTimingOut makes the final call for an idle key.
func (p *Partition[K, V, S, M]) callTimingOut(e *expiring[K]) error {
	st := &p.state
	_, s, _, _ := p.m.SlotView(e.slot)
	st.value, st.flags = s, stateSet|stateTimingOut
	if copies, _ := p.shares(); copies {
		st.flags |= stateShared
	}
	var (
		m    M
		emit = true
		err  error
	)
	switch p.op.fn.kind {
	case kindPlain:
		m = p.op.fn.plain(e.key, rdd.None[V](), st)
	case kindTimed:
		m, emit = p.op.fn.timed(p.batch.Time, e.key, rdd.None[V](), st)
	default:
		m, emit, err = p.op.fn.err(p.batch.Time, e.key, rdd.None[V](), st)
	}
	if st.flags&stateFaulted != 0 {
		return p.misused()
	}
	if err != nil {
		return p.failed(err)
	}
	if emit {
		p.out.push(m)
	}
	if sabotage.On("keep-after-timeout") {
		return nil
	}
	return p.removeSlot(e.slot)
}

// callDeadline makes the call for a deadline that has passed, which is used up by it.
func (p *Partition[K, V, S, M]) callDeadline(e *expiring[K]) error {
	st, c := &p.state, &p.call
	_, s, t, _ := p.m.SlotView(e.slot)
	_, _, hasState := UnpackDeadline(t)
	st.value, st.flags = s, 0
	if hasState {
		st.flags = stateSet
		if copies, _ := p.shares(); copies {
			st.flags |= stateShared
		}
	}
	c.deadline, c.set = e.time, false
	defer c.discard()
	if err := p.op.fn.keyed(c, e.key, rdd.None[V]()); err != nil {
		return p.failed(err)
	}
	if st.flags&stateFaulted != 0 {
		return p.misused()
	}
	if err := p.afterDeadline(e, s); err != nil {
		return err
	}
	for _, m := range c.out {
		p.out.push(m)
	}
	return nil
}

// afterDeadline removes the entry unless the call updated the state or set a new deadline.
func (p *Partition[K, V, S, M]) afterDeadline(e *expiring[K], before S) error {
	st, c := &p.state, &p.call
	deadline := int64(noDeadline)
	if c.set {
		deadline = c.deadline
	}
	updated, state := st.flags&stateUpdated != 0, st.flags&stateSet != 0
	if !updated && deadline == noDeadline && !sabotage.On("keep-after-timeout") {
		return p.removeSlot(e.slot)
	}
	s := before // changes in place count only with Update
	switch {
	case updated:
		s = st.value
	case !state:
		var zero S
		s = zero
	}
	if err := p.m.PutSlot(e.slot, s, packDeadline(deadline, state)); err != nil {
		return p.op.fail(p.n, err)
	}
	if deadline != noDeadline {
		p.line.index.Add(e.slot, deadline)
	}
	return nil
}

func (p *Partition[K, V, S, M]) removeSlot(slot uint32) error {
	if err := p.m.ExpireSlot(slot); err != nil {
		return p.op.fail(p.n, err)
	}
	return nil
}
