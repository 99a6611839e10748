package protocol

import "github.com/statemill/statemill/internal/sabotage"

// judge is P6: what each sink's memory means beside the newest commit. It marks
// the sinks that have the next epoch already, and gives the refusal if one cannot
// be explained.
func (m *Machine) judge() (Action, bool) {
	m.out = make([]bool, m.cfg.Sinks)
	for s, mem := range m.sinks {
		out, why, want := meaning(mem, m.commit.Sinks[s], m.commit.Epoch)
		if why != Unspecified && !sabotage.On("memory-not-judged") {
			return Action{Reason: Refused, Why: why, Sink: s, Have: mem.Epoch, Want: want}, false
		}
		m.out[s] = out
	}
	return Action{}, true
}

// meaning tells whether a memory is the next epoch, or why it cannot be beside the
// commit's entry. Normal is what the commit records: its own epoch, or after
// changes, which write no sink, the batch before them. A sink that the commit does
// not name is new, or was away: older epochs of it mean nothing, but the next one
// does.
func meaning(mem memory, e Entry, commit uint64) (out bool, why Why, want uint64) {
	switch {
	case !mem.known && e.Present:
		return false, MemoryMissing, e.Epoch
	case !mem.known:
		return false, Unspecified, 0
	case mem.Epoch == commit+1:
		return true, Unspecified, 0
	case mem.Epoch > commit:
		return false, MemoryAbove, commit
	case !e.Present:
		return false, Unspecified, 0
	case mem.Epoch < e.Epoch:
		return false, MemoryBelow, e.Epoch
	case mem.Epoch > e.Epoch:
		return false, MemoryAbove, e.Epoch
	case mem.Digest != e.Digest:
		return false, MemoryDiffers, e.Epoch
	}
	return false, Unspecified, 0
}

// outCount says whether some sink has the next epoch, and whether every one has.
func (m *Machine) outCount() (some, every bool) {
	n := 0
	for _, out := range m.out {
		if out {
			n++
		}
	}
	return n > 0, n > 0 && n == m.cfg.Sinks
}

// greatestWriter is the term whose deltas are adopted (P6). Sinks may show several:
// a later writer compared its own with what was there before it wrote (CE8).
func (m *Machine) greatestWriter() uint64 {
	if sabotage.On("adopt-first-term") {
		return 1
	}
	t := m.sinks[0].Term
	for _, mem := range m.sinks {
		if sabotage.On("adopt-least-term") {
			t = min(t, mem.Term)
		} else {
			t = max(t, mem.Term)
		}
	}
	return t
}

// adopted takes in the deltas of an epoch that every sink has. They must give the
// digest of the sinks: so a delta that is not there is proved to be no change
// (CE18). With AcceptRedo a sink that an older run wrote may differ, as it was
// allowed to then.
func (m *Machine) adopted(r Result) bool {
	newest := m.greatestWriter()
	switch {
	case r.kind == isNotFound:
		m.lostOr(Action{Reason: Refused, Why: DeltasMissing, Have: newest})
		return true
	case r.kind != isAdopted || len(r.digests) != m.cfg.Sinks:
		return false
	}
	m.step = committing
	for s, d := range r.digests {
		may := m.cfg.AcceptRedo && m.sinks[s].Term < newest
		if d != m.sinks[s].Digest && !may && !sabotage.On("adopt-unproved") {
			m.lostOr(Action{Reason: Refused, Why: DeltasDiffer, Sink: s, Have: newest, Want: m.sinks[s].Term})
			break
		}
	}
	return true
}

// firstSink begins the sinks of an epoch: those that have it are compared before
// any other is written. Every epoch moves every sink, were it empty (CE20).
func (m *Machine) firstSink() {
	m.step, m.sink = drying, -1
	if sabotage.On("redo-not-compared") {
		m.step = writing
	}
	m.nextSink()
}

// nextSink goes on with the next sink to compare, then to write, then commits.
func (m *Machine) nextSink() {
	for {
		m.sink++
		if m.sink == 1 && sabotage.On("sink-not-moved") {
			m.sink++
		}
		switch {
		case m.sink < m.cfg.Sinks && m.out[m.sink] == (m.step == drying):
			return
		case m.sink < m.cfg.Sinks:
		case m.step == drying:
			m.step, m.sink = writing, -1
		default:
			m.step, m.sink = committing, 0
			return
		}
	}
}

// delivered takes in the results of the sinks in mid-run.
func (m *Machine) delivered(r Result) bool {
	switch {
	case m.step == drying && r.kind == isWrote:
		m.compared(r.digest)
	case m.step == writing && r.kind == isWrote:
		m.remember(m.sink, memory{Memory{m.epoch, m.term, r.digest}, true})
		m.nextSink()
	case m.step == writing && r.kind == isLost:
		m.refence()
	case m.step == writing && r.kind == isNewerTerm: // P7: the sink's log has gone on
		m.lostOr(Action{Reason: Refused, Why: SinkNewer, Sink: m.sink})
	case m.step == fencingAgain:
		return m.fenced(r)
	case m.step == readingAgain && (r.kind == isMemory || r.kind == isNoMemory):
		m.readAgain(memory{r.memory, r.kind == isMemory})
	default:
		return false
	}
	return true
}

// compared is P6 for an epoch that only some sinks have: computed again it must
// give what they have, output included, or what the others get would not fit.
func (m *Machine) compared(d Sum) {
	if d != m.sinks[m.sink].Digest && !m.cfg.AcceptRedo {
		m.lostOr(Action{Reason: RedoDiffers, Sink: m.sink})
		return
	}
	m.nextSink()
}

// refence is P2 for a sink that says "fenced", or does not say what became of a
// write: by a newer run, or for time (CE14)? Check, fence, check, read the memory.
func (m *Machine) refence() {
	if sabotage.On("fenced-is-loss") {
		m.end(Action{Reason: NotOwner})
		return
	}
	if sabotage.On("refence-at-once") {
		m.step = fencingAgain
		return
	}
	m.check(fencingAgain)
}

// readAgain is the end of P2: this epoch by this run, so the write succeeded; what
// was there before, so it did not, and is made again; anything else is another's.
func (m *Machine) readAgain(mem memory) {
	before := m.sinks[m.sink]
	switch {
	case mem.known && mem.Epoch == m.epoch && mem.Term == m.term && !sabotage.On("unknown-is-written-again"):
		m.remember(m.sink, mem)
		m.step = writing
		m.nextSink()
	case mem == before || sabotage.On("unknown-is-written-again"):
		m.step = writing
	default:
		m.lostOr(Action{Reason: Refused, Why: MemoryMoved, Sink: m.sink, Have: mem.Epoch, Want: before.Epoch})
	}
}
