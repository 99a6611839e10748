// Package protocol is the epoch protocol of one run on a checkpoint root as a
// pure state machine: who may write what, in which order, and what a run does
// about another run, a lost reply or a crash of the run before it. A [Machine]
// asks for one [Action] at a time and is told its [Result]. It does no I/O, knows
// no clock, no path and no format, starts no goroutine, and is a plain value: a
// copy is independent, so that a search over all interleavings can drive the
// very machine that production drives.
//
// How a runner uses it:
//
//	m := protocol.New(cfg)
//	for {
//		a := m.Next()       // the same until Done
//		if a.Kind == protocol.Stop { return a.Reason … }
//		err := m.Done(the result of a)
//	}
//
//	action         what the runner does                              then tells
//	Inspect        take the lock, if the store has locks; look for    Inspected, Unsuitable
//	               everything that can refuse a start; write nothing
//	Register       create owner/<Term>; taken: read it back           Created, Mine, Taken
//	FirstMetadata  create metadata/1; taken: read it, its id counts   Created, Mine, Taken
//	Fence          fence the sink against every older run             OK, Lost, NewerTerm
//	OwnerCheck     look whether owner/<Term+1> exists                 StillNewest, Overtaken
//	ReadMemory     read what the sink holds                           MemoryIs, NoMemory
//	FindCommit     read the newest commits/                           CommitIs, NoCommit
//	Recheck        what Inspect looked for, against commits/<Epoch>   OK, Unsuitable
//	Load           load version Epoch; cheap after version Epoch−1    OK
//	ReadPlan       read offsets/<Epoch>                               PlanIs, NoPlan
//	Adopt          find Epoch's deltas that term Term wrote, digest   Adopted, NotFound
//	               the chains after them; no delta: no change
//	Idle           wait: an epoch is begun, or the run ends           Begin, Finish
//	CreatePlan     create offsets/<Epoch>; taken: read it back        Created, Mine, Taken
//	Compute        compute the epoch of that plan                     OK
//	WriteDeltas    write its deltas, under the run's own term         OK
//	WriteBases     a change epoch: write its files, under own term    OK
//	PlainOutputs   run the plain outputs                              OK
//	WriteSink      write data and [Memory] {Epoch, Term, digest} in   Wrote, Lost, NewerTerm
//	               one act; Dry: only compute the digest              Wrote
//	CreateCommit   create commits/<Epoch> with every sink's memory,   Created, Mine, Taken
//	               after a change with the entries carried over;
//	               taken: read it back
//	Report         the epoch is complete: say so, let maintenance go  OK
//	Stop           end with Reason and Why; no action follows         (nothing)
//
// Any action but Stop may end in Fail instead, after the runner's own retries.
// The runner keeps the error; the machine asks for an owner check first, since a
// newer run may be the cause of any failure.
//
// Mine means that what lies there is byte for byte what this run tried to write,
// so an earlier reply was lost (P4). Taken means anything else; its term is in
// the document. Lost means that the sink said "fenced" or that the outcome is
// unknown. NewerTerm means that the sink shows a fence of a greater term.
//
// The rules, each a function of its name in this package:
//
//	P1 order of a start            P5 what may be read and deleted
//	P2 the owner check             P6 what a sink's memory means
//	P3 when it comes, who yields   P7 is a rule of sinks without locks
//	P4 a taken name is read back   P8 changes are epochs of their own
//
// A stop with reason Restart asks for a new machine with [Config].After = the old
// one's term, everything loaded anew. Such a machine may register After+1 only:
// otherwise a run that was overtaken could take over from the run that did it.
//
// What it does not do: retry I/O, decide when an epoch begins, name or delete
// files, compute digests, or fence plain outputs. A sink that answers Lost for
// ever is asked for ever: the runner limits that by Fail.
package protocol

// Config is the fixed part.
type Config struct {
	// Sinks is the number of exactly-once sinks, written in the order 0, 1, ….
	Sinks int
	// After is the term of the machine that this one replaces after a stop with
	// reason Restart; 0 for a new run.
	After uint64
	// AcceptRedo lets a redone epoch differ from what some sinks have already.
	AcceptRedo bool
}

// Machine is the state machine. Make it with New; the zero value is of no use. A
// copy is independent of the original. It is not safe for concurrent use.
type Machine struct {
	cfg   Config
	step  step
	term  uint64
	fresh bool

	commit Found    // the newest commit that this run knows
	sinks  []memory // what each sink holds; replaced, never written to, so copies may share it

	epoch  uint64   // under way, or the last
	kind   PlanKind // of the epoch under way
	redo   bool     // its plan is an older run's
	adopt  bool     // every sink has it: it is not computed
	out    []bool   // which sinks had it before this run; shared like sinks
	sink   int      // the one under way
	then   step     // what follows an owner check that finds nobody
	stop   Action   // what step stopped gives
	landed bool     // this run created commits/epoch, and has not reported it yet
}

// New returns a machine at its start.
func New(cfg Config) Machine {
	return Machine{cfg: cfg, sinks: make([]memory, cfg.Sinks), out: make([]bool, cfg.Sinks)}
}

// Term is the run's own; until it is registered, the one that it asks for, 0 at first.
func (m *Machine) Term() uint64 { return m.term }

// Committed is the newest commit that the run knows; Epoch 0 if there is none.
func (m *Machine) Committed() Found { return m.commit }

// Memory is what a sink holds, as far as the run knows; false if it holds nothing.
// At CreateCommit it is the sink's entry.
func (m *Machine) Memory(sink int) (Memory, bool) {
	return m.sinks[sink].Memory, m.sinks[sink].known
}
