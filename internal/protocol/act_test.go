package protocol

// act does what the run's machine asks for, in every way in which it can come out.
func (s *sim) act(w *world) {
	n := s.copy(w)
	a := n.m.Next()
	if n.l.status == ghost && a.Kind != WriteSink {
		panic("a ghost acts")
	}
	N, term, run := u(a.Epoch), u(n.m.term), u(s.i+1)
	switch a.Kind {
	case Inspect:
		if c, ok := n.newest(); ok && s.sh.strict && s.sh.change != s.i+1 && changed(n.commits[c-1].lineage) {
			n.done(Unsuitable())
			s.add(n, "", n.yields(""), "inspects: unsuitable")
			return
		}
		n.done(Inspected(uint64(n.term), n.meta == 0))
		s.add(n, "", "", "inspects: newest term %d", n.term)
	case Register:
		s.register(n, u(a.Term), run)
	case FirstMetadata:
		r := Taken(0)
		if n.meta == 0 {
			n.meta, r = run, Created()
		}
		n.done(r)
		s.add(n, "", "", "creates metadata/1: %v", r)
	case OwnerCheck:
		r := StillNewest()
		if u(a.Term)+1 < maxTerms && n.owner[a.Term+1] != 0 {
			r = Overtaken()
		}
		n.done(r)
		s.add(n, "", "", "owner check: %v", r)
	case FindCommit:
		s.findCommit(n)
	case Load:
		s.load(n, N)
	case ReadPlan:
		r := NoPlan()
		if N <= maxEpochs && n.plans[N-1].term != 0 {
			p := n.plans[N-1]
			r = PlanIs(uint64(p.term), PlanKind(p.kind))
			n.l.plan, n.l.kind = p.term, p.kind
		}
		n.done(r)
		wrong := ""
		if r.term > n.m.Term() {
			wrong = n.yields("")
		}
		s.add(n, "", wrong, "reads offsets/%d: %v", N, r)
	case Idle:
		n.done(Finish())
		s.add(n, "", "", "has done its epochs")
	case Adopt:
		s.adopt(n, N, u(a.Term))
	case CreatePlan:
		s.createPlan(n, N, term, run, a.Plan)
	case WriteDeltas:
		s.put(n, N, term)
		n.done(OK())
		s.add(n, "", "", "writes deltas %d.%d: %s", N, term, lineageText(n.l.lineage))
	case WriteBases:
		n.l.lineage = lineageOf(n.l.base, N, n.l.plan, true, false)
		n.l.file = term
		s.put(n, N, term)
		n.done(OK())
		s.add(n, "", "", "writes bases %d.%d: %s", N, term, lineageText(n.l.lineage))
	case CreateCommit:
		s.createCommit(n, N, term, run, a.Plan)
	case Fence:
		s.fence(n, a.Sink, term)
	case ReadMemory:
		s.readMemory(n, a.Sink)
	case WriteSink:
		s.writeSink(n, a.Sink, N, term)
	default:
		panic("unexpected action " + a.String())
	}
}

func (s *sim) register(n me, t, run u) {
	r := Taken(uint64(t))
	switch {
	case n.owner[t] == run:
		r = Mine()
	case n.owner[t] == 0:
		wrong := ""
		if n.m.cfg.After > 0 && u(n.m.cfg.After) < n.term {
			wrong = "STEAL: a run that was overtaken takes over"
		}
		n.term, n.owner[t] = max(n.term, t), run
		if s.sh.lost {
			s.add(s.copy(n.world), "lost", wrong, "creates owner/%d, the reply is lost", t)
		}
		r = Created()
		if wrong != "" {
			s.out = append(s.out, succ{n.world, s.i, "", wrong, s.text("takes over")})
			return
		}
	}
	if s.sh.early {
		for e := range n.commits {
			if n.commits[e].term == 0 {
				n.files[e] = [maxTerms]u{}
			}
		}
	}
	n.done(r)
	s.add(n, "", "", "creates owner/%d: %v", t, r)
}

func (s *sim) findCommit(n me) {
	c, ok := n.newest()
	r := NoCommit()
	if ok {
		k := n.commits[c-1]
		f := Found{Epoch: uint64(c), Term: uint64(k.term), Sinks: make([]Entry, s.jobSinks())}
		for i := range f.Sinks {
			f.Sinks[i] = Entry{k.sinks[i].public(), k.sinks[i].epoch > 0}
		}
		r = CommitIs(f)
	}
	n.done(r)
	s.add(n, "", "", "finds the newest commit: %v", r)
}

func (m mem) public() Memory {
	return Memory{Epoch: uint64(m.epoch), Term: uint64(m.term), Digest: digestOf(m.lineage)}
}

// load reads everything from the commit's F on that versions need.
func (s *sim) load(n me, c u) {
	n.l.base = 0
	r := OK()
	if c > 0 {
		k := n.commits[c-1]
		n.l.base = k.lineage
		if k.term == 0 {
			r = Fail()
		}
		for e := max(k.floor, 1); e <= c && k.term != 0; e++ {
			if d := n.commits[e-1]; d.term == 0 || n.files[e-1][d.file] != d.lineage || through(k.lineage, e) != d.lineage {
				r = Fail()
			}
		}
	}
	n.done(r)
	s.add(n, "", "", "loads version %d: %v", c, r)
}

// adopt finds the deltas of a term. None at all may mean that nothing changed: the digest tells (CE18).
func (s *sim) adopt(n me, c, t u) {
	x := n.files[c-1][t]
	digests := make([]Sum, s.jobSinks())
	for i := range digests {
		digests[i] = digestOf(x | lineageIn(n.m.sinks[i].Digest)&outputBit)
	}
	n.l.lineage, n.l.output, n.l.file = x, lineageIn(n.m.sinks[0].Digest)&outputBit, t
	s.saw(adoption)
	r := Adopted(digests)
	n.done(r)
	s.add(n, "", "", "adopts deltas %d.%d: %s", c, t, lineageText(x))
}

func (s *sim) createPlan(n me, c, term, run u, kind PlanKind) {
	p := &n.plans[c-1]
	r := Taken(uint64(p.term))
	switch {
	case p.term == 0:
		*p = plan{term, run, u(kind)}
		if s.sh.lost {
			s.add(s.copy(n.world), "lost", "", "creates offsets/%d, the reply is lost", c)
		}
		r = Created()
	case p.term == term && p.run == run:
		r = Mine()
	}
	n.done(r)
	wrong := ""
	if r.kind == isTaken && p.term > term {
		wrong = n.yields("")
	}
	s.add(n, "", wrong, "creates offsets/%d %v: %v", c, kind, r)
}

// put writes the run's files of an epoch under its own term.
func (s *sim) put(n me, c, term u) {
	if s.sh.reused {
		term = 0
		n.l.file = 0
	}
	n.files[c-1][term] = n.l.lineage
}

func (s *sim) createCommit(n me, c, term, run u, kind PlanKind) {
	p := &n.commits[c-1]
	r, wrong := Taken(uint64(p.term)), ""
	switch {
	case p.term == 0:
		wrong = s.commit(n, c, term, run, kind)
		if s.sh.lost {
			s.add(s.copy(n.world), "lost", wrong, "creates commits/%d, the reply is lost", c)
		}
		r = Created()
	case p.term == term && p.run == run:
		r = Mine()
	}
	text := lineageText(n.l.lineage)
	n.done(r)
	if r.kind == isTaken && p.term > term {
		wrong = n.yields(wrong)
	}
	s.add(n, "", wrong, "creates commits/%d %v %s: %v", c, kind, text, r)
}

// commit creates commits/N and checks what it says against the truth. One in a hole that retention made is nobody's
// business as long as nobody believes it.
func (s *sim) commit(n me, c, term, run u, kind PlanKind) (wrong string) {
	k := commit{term: term, run: run, file: n.l.file, lineage: n.l.lineage, kind: u(kind), floor: s.floor(c)}
	if kind == Change && c > 1 {
		k.sinks = n.commits[c-2].sinks // those that the job does not have, too
	}
	for i := range s.jobSinks() {
		if kind == Batch {
			if m, ok := n.m.Memory(i); ok {
				k.sinks[i] = mem{u(m.Epoch), u(m.Term), lineageIn(m.Digest)}
			}
		} else if e := n.m.Committed().Sinks[i]; e.Present {
			k.sinks[i] = mem{u(e.Epoch), u(e.Term), lineageIn(e.Digest)}
		}
	}
	n.commits[c-1] = k
	if n.term > term {
		s.saw(commitOfOvertaken)
	}
	if kind == Change {
		s.saw(commitOfChange)
	}
	if n.history[c-1].term != 0 {
		s.saw(commitInHole)
		return ""
	}
	n.history[c-1] = k
	switch x := n.files[c-1][k.file]; {
	case x == 0:
		wrong = "FILES: a commit names a file that is not there"
	case x != k.lineage:
		wrong = "FILES: a commit names a file with other content"
	}
	if c > 1 && through(k.lineage, c-1) != n.history[c-2].lineage {
		wrong = "LINEAGE: version N does not follow from the committed N-1"
	}
	e := k.lineage >> (epochBits * (c - 1))
	if p := n.plans[c-1]; p.term != e&7 || p.kind != u(kind) {
		wrong = "LAYOUT: a commit is not of the plan of its epoch"
	}
	for i := range s.jobSinks() {
		switch o := n.sinks[i].out[c-1]; {
		case kind == Change:
			if o != 0 {
				wrong = "SINK: a sink has output of a change"
			}
		case o == 0:
			wrong = "SINK: a committed epoch is not in a sink"
		case s.sh.accept:
		case through(o, c) != k.lineage:
			wrong = "SINK: committed state and visible output differ"
		case o != k.lineage|n.l.output:
			wrong = "SINK: sinks show outputs of different attempts"
		}
	}
	return wrong
}

// floor is the F that commits/c carries.
func (s *sim) floor(c u) u {
	if s.sh.retention {
		return c
	}
	return 1
}

// maintain deletes beside the run what its last reported commit allows (P5).
func (s *sim) maintain(w *world) {
	if w.local[s.i].clean == 0 {
		return
	}
	n := s.copy(w)
	c := n.l.clean
	n.l.clean = 0
	floor := uint64(s.floor(c))
	for e := u(1); e <= maxEpochs; e++ {
		f := File{Epoch: uint64(e)}
		if s.sh.retention {
			if Deletable(f, floor) {
				n.plans[e-1], n.commits[e-1] = plan{}, commit{}
			}
			f.Data = true
			for t := range n.files[e-1] {
				if Deletable(f, floor) {
					n.files[e-1][t] = 0
				}
			}
		}
		if s.sh.orphans {
			k := n.commits[e-1]
			for t := range n.files[e-1] {
				f := File{Epoch: uint64(e), Data: true, Committed: k.term != 0, Named: k.term != 0 && u(t) == k.file}
				if Deletable(f, floor) {
					n.files[e-1][t] = 0
				}
			}
		}
	}
	s.out = append(s.out, succ{w: n.world, run: s.i, what: "clean", label: s.text("cleans up")})
}
