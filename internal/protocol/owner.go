package protocol

import "github.com/statemill/statemill/internal/sabotage"

// check asks whether this run is still the newest (P2: one existence probe, for
// terms have no holes), and goes on with then if it is.
func (m *Machine) check(then step) { m.step, m.then = checking, then }

// lostOr ends the run as a says, unless it turns out that a newer run has the
// root, which may then be the cause: a load fails where that run deleted, a
// sink's memory is ahead where it wrote (P3).
func (m *Machine) lostOr(a Action) {
	m.prepare(a)
	m.check(stopped)
}

// checked takes in the answer of an owner check (P2).
func (m *Machine) checked(r Result) bool {
	switch r.kind {
	case isStillNewest:
		m.step = m.then
	case isOvertaken:
		m.end(Action{Reason: NotOwner})
	default:
		return false
	}
	return true
}

// afterFence is P2 where it matters most: a sink's fence may know no terms, and
// then the last one wins, be it that of an older run that has thawed. So the check
// follows every fence, before anything is read or written (CE1, CE2).
func (m *Machine) afterFence(then step) {
	if sabotage.On("fence-unchecked") {
		m.step = then
		return
	}
	m.check(then)
}

// beforeDeltas is the early stop of P3: a run that was overtaken writes no files.
func (m *Machine) beforeDeltas(then step) {
	if sabotage.On("deltas-unchecked") {
		m.step = then
		return
	}
	m.check(then)
}

// afterCommit is the deciding check of P3: retention by a newer run may have freed
// the name commits/N, so that creating it proves nothing alone (CE4a).
func (m *Machine) afterCommit() {
	m.landed = true
	if sabotage.On("commit-unchecked") {
		m.step = reporting
		return
	}
	m.check(reporting)
}

// afterOlder follows the load of a commit that an older run created: it may be a
// stray, created where a newer run deleted (P3, CE4c).
func (m *Machine) afterOlder(then step) {
	if m.commit.Epoch == 0 || m.commit.Term == m.term || sabotage.On("older-commit-unchecked") {
		m.step = then
		return
	}
	m.check(then)
}

// named takes in the creation of offsets/N or commits/N. A name that is taken is
// read back: this run's own is a lost reply (P4, CE13). Of two runs the older one
// yields in silence to what the newer one wrote, and the newer one to what the
// older one wrote, which stands (P3): it starts anew behind it, unless it was
// overtaken itself.
func (m *Machine) named(r Result) (mine, fits bool) {
	switch {
	case r.kind == isCreated:
		return true, true
	case r.kind == isMine:
		if sabotage.On("lost-reply-is-loss") {
			m.end(Action{Reason: NotOwner})
			return false, true
		}
		return true, true
	case r.kind != isTaken:
		return false, false
	case r.term > m.term:
		if sabotage.On("newer-name-ignored") {
			return true, true
		}
		m.end(Action{Reason: NotOwner})
	case r.term == m.term:
		m.lostOr(Action{Reason: Refused, Why: TermTwice})
	case sabotage.On("restart-unchecked"):
		m.end(Action{Reason: Restart})
	default:
		m.lostOr(Action{Reason: Restart})
	}
	return false, true
}
