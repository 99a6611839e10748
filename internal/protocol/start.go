package protocol

import "github.com/statemill/statemill/internal/sabotage"

// started takes in the results of a start. The order is P1: read-only checks, so
// that a start which is refused harms nobody (CE17); owner/<t>; fence and read every
// sink; owner check; only then commits/ (CE3), what can refuse once more, load;
// compare the memories; offsets/.
func (m *Machine) started(r Result) bool {
	switch {
	case m.step == inspecting && r.kind == isInspected:
		m.fresh = r.fresh
		m.firstTerm(r.term)
	case m.step == inspecting && r.kind == isUnsuitable:
		m.unsuited()
	case m.step == registering:
		return m.registered(r)
	case m.step == naming && (r.kind == isCreated || r.kind == isMine || r.kind == isTaken):
		m.openSink() // whoever created metadata/1: its root id counts (P8)
	case m.step == fencing:
		return m.fenced(r)
	case m.step == reading && (r.kind == isMemory || r.kind == isNoMemory):
		m.remember(m.sink, memory{r.memory, r.kind == isMemory})
		m.sink++
		m.openSink()
	case m.step == finding && r.kind == isNoCommit:
		m.found(Found{Sinks: make([]Entry, m.cfg.Sinks)})
	case m.step == finding && r.kind == isCommit && r.commit.Epoch > 0 && len(r.commit.Sinks) == m.cfg.Sinks:
		m.found(r.commit)
	case m.step == rechecking && r.kind == isOK:
		m.step = loading
	case m.step == rechecking && r.kind == isUnsuitable:
		m.lostOr(Action{Reason: Refused, Why: NotSuitable})
	case m.step == loading && r.kind == isOK:
		m.loaded()
	case m.step == planReading:
		return m.planRead(r)
	case m.step == adopting:
		return m.adopted(r)
	default:
		return false
	}
	return true
}

// unsuited refuses before anything is written: no term is taken and the run that is
// there is not fenced (P1, CE17).
func (m *Machine) unsuited() {
	if sabotage.On("inspection-ignored") {
		m.firstTerm(0)
		return
	}
	m.end(Action{Reason: Refused, Why: NotSuitable})
}

// firstTerm chooses the term to register. A run that starts anew after a stop
// with reason Restart asks for the term after its own and no other: if somebody
// has that, he is newer, and a run that was overtaken must not take over.
func (m *Machine) firstTerm(newest uint64) {
	if m.cfg.After == 0 || sabotage.On("restart-takes-over") {
		m.term = newest + 1
		m.step = registering
		return
	}
	m.term = m.cfg.After + 1
	m.step = registering
	if newest > m.cfg.After {
		m.end(Action{Reason: NotOwner})
	}
}

// registered takes in the creation of owner/<t>. A name taken by another run moves
// on to the next term; terms have no holes.
func (m *Machine) registered(r Result) bool {
	switch {
	case r.kind == isCreated || r.kind == isMine: // P4
	case r.kind != isTaken:
		return false
	case sabotage.On("term-shared"):
	case m.cfg.After > 0:
		m.end(Action{Reason: NotOwner})
		return true
	default:
		m.term++
		return true
	}
	if m.fresh {
		m.step = naming
		return true
	}
	m.openSink()
	return true
}

// openSink goes on with the next sink, or after the last one with commits/: read
// before the fences, it could be old by the time that the memories are read (CE3).
func (m *Machine) openSink() {
	switch {
	case m.sink == 0 && m.commit.Sinks == nil && sabotage.On("commits-before-fences"):
		m.step = finding
	case m.sink < m.cfg.Sinks:
		m.step = fencing
	case m.commit.Sinks != nil: // only with the fault above
		m.sink = 0
		m.check(rechecking)
	default:
		m.sink = 0
		m.check(finding)
	}
}

// fenced takes in the fence of a sink, at the start or in mid-run.
func (m *Machine) fenced(r Result) bool {
	again := m.step == fencingAgain
	switch r.kind {
	case isOK:
		if again {
			m.afterFence(readingAgain)
		} else {
			m.afterFence(reading)
		}
	case isLost: // somebody fenced in between: never again without the check (P2)
		m.check(m.step)
	case isNewerTerm:
		m.lostOr(Action{Reason: Refused, Why: SinkNewer, Sink: m.sink})
	default:
		return false
	}
	return true
}

// found takes in the newest commit. One of a newer run needs no further question.
func (m *Machine) found(c Found) {
	m.commit = c
	m.epoch = c.Epoch
	switch {
	case c.Term > m.term:
		m.end(Action{Reason: NotOwner})
	case sabotage.On("commits-before-fences"):
		m.openSink()
	case sabotage.On("recheck-skipped"):
		m.step = loading
	default:
		m.step = rechecking
	}
}

// loaded compares the memories of the sinks with the commit that was loaded; after
// a load of the run's own commit there is nothing to compare.
func (m *Machine) loaded() {
	if m.commit.Epoch > 0 && m.commit.Term == m.term {
		m.step = idle
		return
	}
	m.epoch = m.commit.Epoch + 1
	if refusal, ok := m.judge(); !ok {
		m.lostOr(refusal)
		return
	}
	m.afterOlder(planReading)
}

// planRead takes in offsets/C+1. An older run's plan is adopted as it is: its
// ranges, its batch time, its kind (P3, P8).
func (m *Machine) planRead(r Result) bool {
	some, every := m.outCount()
	switch {
	case r.kind == isNoPlan && some:
		m.lostOr(Action{Reason: Refused, Why: PlanMissing})
	case r.kind == isNoPlan:
		m.epoch = m.commit.Epoch
		m.step = idle
	case r.kind != isPlan:
		return false
	case r.term > m.term && !sabotage.On("newer-name-ignored"):
		m.end(Action{Reason: NotOwner})
	case r.term == m.term:
		m.lostOr(Action{Reason: Refused, Why: TermTwice})
	case r.plan == Change && some:
		m.lostOr(Action{Reason: Refused, Why: PlanKindWrong})
	default:
		m.kind, m.redo = r.plan, true
		switch {
		case r.plan == Change:
			m.beforeDeltas(bases)
		case every:
			m.adopt = true
			m.step = adopting
		default:
			m.step = computing
		}
	}
	return true
}
