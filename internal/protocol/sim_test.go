package protocol

import "fmt"

// succ is a world one step on.
type succ struct {
	w     *world
	run   int    // who moved, from 0; −1: not a run
	what  string // how, where there is a choice: "lost", "other", "crash" …
	wrong string // the invariant that broke
	label string // for traces
}

// sim makes the steps of one run from a world.
type sim struct {
	sh  *shape
	i   int
	tr  bool // make labels
	saw func(sight)
	out []succ
}

// sight is something that a search should come across, or it proves little.
type sight int

const (
	adoption sight = iota
	redoCompared
	redoDiffered
	restarted
	commitOfOvertaken
	commitInHole
	commitOfChange
	fencedAgain
	overtakenAfterCommit
	sights
)

var sightNames = [sights]string{
	"adoption", "redo compared", "redo differed", "restart", "commit of an overtaken run", "commit in a hole",
	"commit of a change", "fenced again", "overtaken after its commit",
}

// me is a world together with the run that moves in it.
type me struct {
	*world
	l *local
	m *Machine
}

func (s *sim) copy(w *world) me {
	n := *w
	return me{&n, &n.local[s.i], &n.m[s.i]}
}

// add takes in a world in which the run's machine has been told its result.
func (s *sim) add(w me, what, wrong, format string, args ...any) {
	label := ""
	if s.tr {
		label = fmt.Sprintf("run %d: ", s.i+1) + fmt.Sprintf(format, args...)
	}
	s.settle(w, what, wrong, label)
}

func (w me) done(r Result) {
	a := w.m.Next()
	if err := w.m.Done(r); err != nil {
		panic(err)
	}
	w.l.checked = 0
	if r.kind == isStillNewest {
		w.l.checked = 1
	}
	if a.Kind == ReadMemory {
		w.l.opened |= 1 << a.Sink
	}
}

// order says in which of its actions the machine breaks a rule of order that P1 to P3 demand though another rule may
// cover for it: what must directly follow an owner check, and what must come before commits/.
func (w me) order(a Action) string {
	must := false
	switch a.Kind {
	case WriteDeltas, WriteBases, ReadMemory, Report:
		must = true
	case FindCommit:
		if w.l.opened != 1<<w.m.cfg.Sinks-1 {
			return "ORDER: commits/ is read before the sinks are (P1)"
		}
		must = true
	case Fence:
		must = w.m.step == fencingAgain && w.l.sub == 0
	case ReadPlan:
		must = w.m.commit.Epoch > 0
	case Stop:
		must = a.Reason == Restart
	}
	if must && w.l.checked == 0 {
		return fmt.Sprintf("ORDER: %v without an owner check directly before", a.Kind)
	}
	return ""
}

// yields checks that a run which found something that ends it stops.
func (w me) yields(wrong string) string {
	if a := w.m.Next(); a.Kind != Stop && wrong == "" {
		return fmt.Sprintf("ORDER: %v where the run had to stop", a.Kind)
	}
	return wrong
}

// successors are all worlds one step on.
func successors(sh *shape, w *world, tr bool, saw func(sight)) []succ {
	var out []succ
	for i := range sh.runs {
		s := sim{sh: sh, i: i, tr: tr, saw: saw, out: out}
		s.run(w)
		out = s.out
	}
	return append(out, surroundings(sh, w)...)
}

// run makes the steps of a run: those that it may take, crashes, and maintenance beside it.
func (s *sim) run(w *world) {
	l := &w.local[s.i]
	switch l.status {
	case unborn:
		s.start(w)
		return
	case ghost:
		s.act(w)
		return
	case live:
	default:
		return
	}
	if s.sh.lock && s.i < s.sh.runs-1 {
		s.crash(w)
	}
	s.act(w)
	s.maintain(w)
}

// start lets the run begin; runs begin in the order of their numbers, which loses nothing, for they are alike.
func (s *sim) start(w *world) {
	for j := range s.i {
		st := w.local[j].status
		if st == unborn || s.sh.lock && st == live {
			return
		}
		if st == live && w.m[j].term == 0 && w.m[j].cfg.After == 0 {
			return
		}
	}
	n := s.copy(w)
	n.l.status = live
	*n.m = New(Config{Sinks: s.jobSinks(), AcceptRedo: s.sh.accept})
	s.add(n, "", "", "starts")
}

// crash ends the run at once; its last request to a sink may still arrive.
func (s *sim) crash(w *world) {
	n := s.copy(w)
	if a := n.m.Next(); a.Kind == WriteSink && s.inFlight(n, a.Sink) {
		g := s.copy(w)
		g.l.status = ghost
		s.out = append(s.out, succ{w: g.world, run: s.i, what: "crash", label: s.text("crashes, its last request to a sink is under way")})
	}
	*n.l, *n.m = local{status: dead}, Machine{}
	s.out = append(s.out, succ{w: n.world, run: s.i, what: "crash", label: s.text("crashes")})
}

// jobSinks is how many of the sinks the run's job has.
func (s *sim) jobSinks() int {
	if n := s.sh.has[s.i]; n > 0 {
		return n
	}
	return len(s.sh.sinks)
}

func (s *sim) text(t string) string {
	if !s.tr {
		return ""
	}
	return fmt.Sprintf("run %d: %s", s.i+1, t)
}

// settle goes on with all that touches nothing shared, and keeps the world; the order of such steps among runs means
// nothing, so they are not interleaved.
func (s *sim) settle(w me, what, wrong, label string) {
	for w.l.status == live && wrong == "" {
		a := w.m.Next()
		if o := w.order(a); o != "" && !s.sh.lax {
			wrong = o
			break
		}
		switch a.Kind {
		case Idle:
			switch {
			case a.Epoch >= uint64(s.sh.epochs) && w.l.clean > 0: // it may clean up yet
				s.out = append(s.out, succ{w.world, s.i, what, wrong, label})
				return
			case a.Epoch >= uint64(s.sh.epochs):
				w.done(Finish())
			case s.sh.strict && s.sh.change != s.i+1 && changed(w.l.base):
				wrong = "LAYOUT: a run that does not suit the root begins an epoch"
				s.out = append(s.out, succ{w.world, s.i, what, wrong, label})
				return
			case s.sh.change == s.i+1 && !changed(w.l.base):
				w.done(Begin(Change))
				w.l.kind = u(Change)
			default:
				w.done(Begin(Batch))
				w.l.kind = u(Batch)
			}
			w.l.plan = u(w.m.term)
		case Recheck:
			if k := max(a.Epoch, 1) - 1; s.sh.strict && s.sh.change != s.i+1 && changed(w.commits[k].lineage) {
				w.done(Unsuitable())
				continue
			}
			w.done(OK())
		case PlainOutputs:
			w.done(OK())
		case Compute:
			s.compute(w, a, what, label)
			return
		case WriteSink:
			if !a.Dry {
				s.out = append(s.out, succ{w.world, s.i, what, wrong, label})
				return
			}
			s.saw(redoCompared)
			w.done(Wrote(digestOf(w.l.lineage | w.l.output)))
		case Report:
			wrong = w.report(s.sh, u(a.Epoch))
			if s.tr {
				label += fmt.Sprintf("; reports %d", a.Epoch)
			}
			w.done(OK())
		case Stop:
			wrong = s.ended(w, a)
			if s.tr {
				label += fmt.Sprintf("; %v", a)
			}
			if w.l.status == live {
				continue // it starts anew
			}
		default:
			s.out = append(s.out, succ{w.world, s.i, what, wrong, label})
			return
		}
	}
	s.out = append(s.out, succ{w.world, s.i, what, wrong, label})
}

// compute is the one local step with a choice: what the functions give.
func (s *sim) compute(w me, a Action, what, label string) {
	for v := range 2 {
		if v == 1 && s.sh.vary == 0 {
			return
		}
		n := s.copy(w.world)
		n.l.lineage = lineageOf(n.l.base, u(a.Epoch), n.l.plan, false, v == 1 && s.sh.vary == 1)
		n.l.output = 0
		if v == 1 && s.sh.vary == 2 {
			n.l.output = outputBit
		}
		n.l.file = u(n.m.term)
		n.done(OK())
		lb, wh := label, what
		if s.tr {
			lb += fmt.Sprintf("; computes %d: %s", a.Epoch, lineageText(n.l.lineage|n.l.output))
		}
		if v == 1 {
			wh += "other"
		}
		s.settle(n, wh, "", lb)
	}
}

// report checks that the run is the one whose commit counts.
func (w me) report(sh *shape, n u) string {
	if w.history[n-1].term != u(w.m.term) {
		return fmt.Sprintf("REPORT: run of term %d reports epoch %d, which term %d committed", w.m.term, n, w.history[n-1].term)
	}
	w.l.base = through(w.l.lineage, n)
	w.l.lineage, w.l.output, w.l.file, w.l.plan, w.l.kind = 0, 0, 0, 0, 0
	if sh.retention || sh.orphans {
		w.l.clean = n
	}
	return ""
}

// ended takes in a stop. The newest run, if it lives, must not be stopped by anything but its own will, or a redo that
// really differs.
func (s *sim) ended(w me, a Action) string {
	newest := w.owner[w.term] == u(s.i+1)
	after := w.m.term
	next, wrong := failed, ""
	switch a.Reason {
	case Finished:
		next = done
	case NotOwner:
		next = gone
		if a.Committed {
			s.saw(overtakenAfterCommit)
		}
	case RedoDiffers:
		s.saw(redoDiffered)
		next = differs
		if w.sinks[a.Sink].out[a.Epoch-1] != w.l.lineage|w.l.output {
			newest = false
		}
	case Refused:
		// Where the world itself was harmed, or the job does not suit, a refusal is right.
		if a.Why == NotSuitable || w.harmed != 0 && (a.Why == DeltasDiffer || a.Why == MemoryMissing) {
			next, newest = differs, false
		}
	case Restart:
		s.saw(restarted)
		*w.l, *w.m = local{status: live}, New(Config{Sinks: s.jobSinks(), AcceptRedo: s.sh.accept, After: after})
		return ""
	}
	if newest && next != done {
		wrong = fmt.Sprintf("PROGRESS: the newest run ends: %v", a)
	}
	*w.l, *w.m = local{status: next}, Machine{}
	return wrong
}

// surroundings are the steps of brokers and of the reader.
func surroundings(sh *shape, w *world) (out []succ) {
	for k, kind := range sh.sinks {
		if kind != kafkaLike {
			continue
		}
		if w.sinks[k].pend != 0 {
			n := *w
			x := &n.sinks[k]
			x.mem, x.next, x.pend = x.next, mem{}, 0
			out = append(out, succ{w: &n, run: -1, what: "visible", label: fmt.Sprintf("broker: memory of sink %d becomes visible", k)})
		}
		if w.sinks[k].txn != 0 && w.timeouts < sh.timeouts {
			n := *w
			n.timeouts++
			n.sinks[k].txn, n.sinks[k].fence = 0, 0
			out = append(out, succ{w: &n, run: -1, what: "timeout", label: fmt.Sprintf("broker: aborts the transaction of sink %d for time", k)})
		}
	}
	if sh.reader {
		out = append(out, readerStep(w)...)
	}
	return append(out, harm(sh, w)...)
}

// harm is what no protocol can prevent, but must notice.
func harm(sh *shape, w *world) (out []succ) {
	c, ok := w.newest()
	if w.harmed != 0 {
		return nil
	}
	if sh.vanish && c < maxEpochs && w.files[c] != [maxTerms]u{} && w.local[0].status != live && w.local[1].status != live {
		n := *w
		n.harmed = 1
		n.files[c] = [maxTerms]u{}
		out = append(out, succ{w: &n, run: -1, what: "vanish", label: fmt.Sprintf("somebody deletes the deltas of %d", c+1)})
	}
	if sh.forget && ok && w.sinks[0].mem.epoch > c {
		n := *w
		n.harmed = 1
		n.sinks[0].mem = mem{}
		out = append(out, succ{w: &n, run: -1, what: "forget", label: "sink 0 forgets its memory"})
	}
	return out
}

// changed says whether a change is in a lineage.
func changed(lineage u) bool {
	return lineage&(changeBit|changeBit<<epochBits|changeBit<<(2*epochBits)) != 0
}

// readerStep: a reader takes the newest commit, then its file; one that has vanished makes it start again.
func readerStep(w *world) []succ {
	n := *w
	if w.readAt == 0 {
		c, ok := w.newest()
		if !ok {
			return nil
		}
		n.readAt, n.readFile, n.readLineage = c, w.commits[c-1].file, w.commits[c-1].lineage
		return []succ{{w: &n, run: -1, label: fmt.Sprintf("reader: reads commits/%d", c)}}
	}
	x := w.files[w.readAt-1][w.readFile]
	wrong := ""
	if x != 0 && x != w.readLineage {
		wrong = "READER: a file that the commit names has other content"
	}
	n.readAt, n.readFile, n.readLineage = 0, 0, 0
	return []succ{{w: &n, run: -1, wrong: wrong, label: fmt.Sprintf("reader: reads the file of %d: %s", w.readAt, lineageText(x))}}
}

// newest is the number of the newest commit that is there.
func (w *world) newest() (u, bool) {
	for n := u(maxEpochs); n > 0; n-- {
		if w.commits[n-1].term != 0 {
			return n, true
		}
	}
	return 0, false
}

func lineageText(l u) string {
	s := ""
	for n := range u(maxEpochs) {
		e := l & lineageAll >> (epochBits * n) & (1<<epochBits - 1)
		if e == 0 {
			break
		}
		s += fmt.Sprintf(" %d%s%s", e&7, word(e&resultBit != 0, "b"), word(e&changeBit != 0, "c"))
	}
	return "[" + s + word(l&outputBit != 0, " '") + " ]"
}
