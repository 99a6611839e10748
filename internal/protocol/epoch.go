package protocol

import "github.com/statemill/statemill/internal/sabotage"

// advanced takes in the results of an epoch, but for its sinks.
func (m *Machine) advanced(r Result) bool {
	switch {
	case m.step == idle && r.kind == isBegin:
		m.begin(r.plan)
	case m.step == idle && r.kind == isFinish:
		m.end(Action{Reason: Finished})
	case m.step == planning:
		mine, fits := m.named(r)
		if mine {
			m.planned()
		}
		return fits
	case m.step == committing:
		mine, fits := m.named(r)
		if mine {
			m.committed()
		}
		return fits
	case r.kind != isOK:
		return false
	case m.step == computing:
		m.beforeDeltas(deltas)
	case m.step == deltas:
		m.step = outputs // all deltas are durable before anything is visible
	case m.step == bases:
		m.step = committing // P8: a change writes no sink
	case m.step == outputs:
		m.firstSink()
	case m.step == reporting:
		m.reported()
	default:
		return false
	}
	return true
}

// begin starts an epoch of this run's own; a change is one, too (P8): its plan
// stands in the same row of names, so it cannot pass an epoch that is under way.
func (m *Machine) begin(kind PlanKind) {
	m.epoch, m.kind = m.commit.Epoch+1, kind
	m.redo, m.adopt = false, false
	m.out = make([]bool, m.cfg.Sinks)
	m.step = planning
	if kind == Change && sabotage.On("change-without-plan") {
		m.planned()
	}
}

// planned goes on after offsets/N is this run's.
func (m *Machine) planned() {
	if m.kind == Change {
		m.beforeDeltas(bases)
		return
	}
	m.step = computing
}

// committed makes this run's commits/N the newest commit that it knows. After a
// change the sinks' entries are those of before (P8).
func (m *Machine) committed() {
	entries := m.commit.Sinks
	if m.kind == Batch {
		entries = make([]Entry, m.cfg.Sinks)
		for s, mem := range m.sinks {
			entries[s] = Entry{mem.Memory, mem.known}
		}
	}
	m.commit = Found{Epoch: m.epoch, Term: m.term, Sinks: entries}
	m.afterCommit()
}

// reported ends the epoch. What this run did not compute, or put into another
// shape, it has yet to load. A change may have been another run's plan: the job must
// suit what it made of the root (P1).
func (m *Machine) reported() {
	m.landed = false
	switch {
	case m.kind == Change && !sabotage.On("change-not-rechecked"):
		m.step = rechecking
	case m.kind == Change || m.adopt:
		m.step = loading
	default:
		m.step = idle
	}
}
