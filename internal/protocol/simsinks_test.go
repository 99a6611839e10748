package protocol

// inFlight says whether a sink may still apply the run's last request after the run is dead.
func (s *sim) inFlight(n me, k int) bool {
	switch s.sh.sinks[k] {
	case kafkaLike:
		return n.l.sub == 1
	case sqlLike:
		return true
	}
	return false
}

func (s *sim) fence(n me, k int, term u) {
	x := &n.sinks[k]
	if n.m.step == fencingAgain {
		s.saw(fencedAgain)
	}
	r := OK()
	switch s.sh.sinks[k] {
	case kafkaLike:
		x.fence, x.txn = term, 0
	case sqlLike:
		if x.fterm > term {
			r = NewerTerm()
			break
		}
		x.fterm = term
		if s.sh.sharedRow && x.mem.epoch > 0 {
			x.mem.term = term
		}
	case logLike:
		// Read to the end; then append: two steps, or somebody could come between.
		if x.fterm > term {
			r = NewerTerm()
			break
		}
		if n.l.sub == 0 {
			n.l.sub, n.l.logSeq[k], n.l.logMem[k] = 1, x.seq, x.mem
			s.add(n, "", "", "reads the log of sink %d to %d", k, x.seq)
			return
		}
		n.l.sub = 0
		if x.seq != n.l.logSeq[k] {
			s.add(n, "", "", "finds the next entry of sink %d taken", k)
			return
		}
		if !s.sh.perEpoch {
			x.seq++
			x.fterm = term
			n.l.logSeq[k] = x.seq
		}
	}
	n.l.sub = 0
	n.done(r)
	s.add(n, "", "", "fences sink %d: %v", k, r)
}

func (s *sim) readMemory(n me, k int) {
	x := &n.sinks[k]
	if x.pend != 0 && !s.sh.unstable {
		return // waits until it is stable
	}
	m := x.mem
	if s.sh.sinks[k] == logLike {
		m = n.l.logMem[k]
	}
	r := NoMemory()
	if m.epoch > 0 {
		r = MemoryIs(m.public())
	}
	n.done(r)
	s.add(n, "", "", "reads the memory of sink %d: %v", k, r)
}

func (s *sim) writeSink(n me, k int, c, term u) {
	x := &n.sinks[k]
	lineage := n.l.lineage | n.l.output
	switch s.sh.sinks[k] {
	case kafkaLike:
		switch {
		case n.l.sub == 0 && x.fence != term || n.l.sub == 1 && (x.fence != term || x.txn != term):
			s.wrote(n, Lost(), "", "is fenced at sink %d", k)
		case n.l.sub == 0 && x.pend != 0: // concurrent transactions: waits
		case n.l.sub == 0:
			x.txn = term
			n.l.sub = 1
			s.add(n, "", "", "writes %s to sink %d, not yet committed", lineageText(lineage), k)
		default:
			x.txn = 0
			s.publish(n, k, c, term, lineage)
		}
	case sqlLike:
		switch {
		case x.fterm > term:
			s.wrote(n, NewerTerm(), "", "finds sink %d fenced", k)
		case x.mem.epoch >= c || s.sh.sharedRow && x.mem.term > term:
			s.wrote(n, Lost(), "", "finds epoch %d in sink %d", x.mem.epoch, k)
		default:
			s.publish(n, k, c, term, lineage)
		}
	case logLike:
		if x.seq != n.l.logSeq[k] {
			s.wrote(n, NewerTerm(), "", "finds the next entry of sink %d taken", k)
			return
		}
		x.seq++
		n.l.logSeq[k] = x.seq
		s.publish(n, k, c, term, lineage)
	}
}

// wrote ends a write, or the ghost that made it.
func (s *sim) wrote(n me, r Result, wrong, format string, args ...any) {
	n.l.sub = 0
	if n.l.status == ghost {
		*n.l, *n.m = local{status: dead}, Machine{}
		s.out = append(s.out, succ{n.world, s.i, "", wrong, s.text("is gone; its last request has arrived")})
		return
	}
	n.done(r)
	s.add(n, "", wrong, format, args...)
}

// publish makes output visible; the reply may get lost.
func (s *sim) publish(n me, k int, c, term, lineage u) {
	x := &n.sinks[k]
	wrong := ""
	before := c - 1 // the last epoch that wrote sinks
	for before > 0 && n.history[before-1].kind == u(Change) {
		before--
	}
	switch h := n.history[c-1]; {
	case x.out[c-1] != 0:
		wrong = "SINK: an epoch is written twice"
	case before > 0 && x.out[before-1] == 0 && n.history[before-1].sinks[k].epoch != 0: // it was in the job then
		wrong = "SINK: an epoch is left out"
	case h.term != 0 && h.lineage != through(lineage, c):
		wrong = "SINK: output contradicts the committed epoch"
	}
	x.out[c-1] = lineage
	m := mem{c, term, lineage}
	if s.sh.pending && s.sh.sinks[k] == kafkaLike {
		x.pend, x.next = 1, m
	} else {
		x.mem = m
	}
	if s.sh.lost && n.l.status == live {
		s.wroteLost(s.copy(n.world), wrong, k, c)
	}
	s.wrote(n, Wrote(digestOf(lineage)), wrong, "commits epoch %d in sink %d: %s", c, k, lineageText(lineage))
}

func (s *sim) wroteLost(n me, wrong string, k int, c u) {
	n.l.sub = 0
	n.done(Lost())
	s.add(n, "lost", wrong, "commits epoch %d in sink %d, the reply is lost", c, k)
}
