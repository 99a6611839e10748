package protocol

import "fmt"

// ActionKind says what to do.
type ActionKind uint8

// The actions; the package comment says what each asks for.
const (
	Inspect ActionKind = iota
	Register
	FirstMetadata
	Fence
	OwnerCheck
	ReadMemory
	FindCommit
	Recheck
	Load
	ReadPlan
	Adopt
	Idle
	CreatePlan
	Compute
	WriteDeltas
	WriteBases
	PlainOutputs
	WriteSink
	CreateCommit
	Report
	Stop
)

var actionNames = [...]string{
	"inspect", "register", "first-metadata", "fence", "owner-check", "read-memory", "find-commit", "recheck", "load",
	"read-plan", "adopt", "idle", "create-plan", "compute", "write-deltas", "write-bases", "plain-outputs", "write-sink",
	"create-commit", "report", "stop",
}

func (k ActionKind) String() string { return actionNames[k] }

// PlanKind tells an epoch of records from one that changes the root (P8).
type PlanKind uint8

// The kinds.
const (
	Batch PlanKind = iota
	Change
)

func (k PlanKind) String() string { return [...]string{"batch", "change"}[k] }

// Reason is why a run stops.
type Reason uint8

// The reasons.
const (
	// Finished: asked for by Finish.
	Finished Reason = iota
	// NotOwner: a newer run has the root. If the action says Committed, the commit
	// of Epoch was created all the same, and stands.
	NotOwner
	// Restart: an older run planned or committed Epoch. It stands: open again with
	// the next term and load everything anew.
	Restart
	// Refused: going on could lose or double data, or the job does not suit the
	// root; Why tells which.
	Refused
	// RedoDiffers: some sinks have Epoch already, and computed again it differs
	// from what Sink has.
	RedoDiffers
	// Failed: the runner told a failure, and no newer run is the cause.
	Failed
)

func (r Reason) String() string {
	return [...]string{"finished", "not owner", "restart", "refused", "redo differs", "failed"}[r]
}

// Why says more of a refusal.
type Why uint8

// The refusals.
const (
	// Unspecified: not a refusal.
	Unspecified Why = iota
	// NotSuitable: the runner's own checks of job against root.
	NotSuitable
	// MemoryAbove: the sink holds epoch Have, commits/ ends at Want.
	MemoryAbove
	// MemoryBelow: the sink holds epoch Have, the newest commit records Want.
	MemoryBelow
	// MemoryMissing: the sink holds nothing, the newest commit records Want.
	MemoryMissing
	// MemoryDiffers: the sink holds the epoch that the newest commit records, with
	// other content.
	MemoryDiffers
	// MemoryMoved: somebody wrote the sink in mid-run; it holds epoch Have instead
	// of Want.
	MemoryMoved
	// SinkNewer: the sink shows a fence of a term that owner/ does not have.
	SinkNewer
	// PlanMissing: a sink holds Epoch, but there is no plan of it.
	PlanMissing
	// PlanKindWrong: a sink holds Epoch, whose plan is of a change, which writes
	// no sink.
	PlanKindWrong
	// DeltasMissing: every sink holds Epoch, but the deltas of writer term Have are
	// not there.
	DeltasMissing
	// DeltasDiffer: every sink holds Epoch, but the deltas of the greatest writer
	// term do not give the digest of Sink.
	DeltasDiffer
	// TermTwice: a file of this very term is there that this run did not write.
	TermTwice
)

var whyNames = [...]string{
	"", "unsuitable", "memory above", "memory below", "memory missing", "memory differs", "memory moved", "sink newer",
	"plan missing", "plan kind wrong", "deltas missing", "deltas differ", "term twice",
}

func (w Why) String() string { return whyNames[w] }

// Action is one thing to do. It is comparable.
type Action struct {
	Kind ActionKind
	// Term is the term to register, the run's own for an owner check, a fence, and
	// a sink's memory, and that of the writer whose deltas to adopt.
	Term uint64
	// Epoch is the epoch or version that the action is about.
	Epoch uint64
	// Sink is the number of a sink.
	Sink int
	// Plan is the kind of the epoch: CreatePlan, CreateCommit, Report.
	Plan PlanKind
	// Redo: the plan of the epoch is an older run's (Compute).
	Redo bool
	// Dry: only tell the digest (WriteSink).
	Dry bool

	// Of Stop alone:
	Reason Reason
	Why    Why
	// Committed: commits/Epoch was created by this run, whatever else happened.
	Committed bool
	// Have and Want are the two numbers that Why explains.
	Have, Want uint64
}

// String is the action in the words of the golden scripts.
func (a Action) String() string {
	switch a.Kind {
	case Register, OwnerCheck:
		return fmt.Sprintf("%v %d", a.Kind, a.Term)
	case Fence, ReadMemory:
		return fmt.Sprintf("%v %d", a.Kind, a.Sink)
	case Load, ReadPlan, WriteDeltas, WriteBases, PlainOutputs:
		return fmt.Sprintf("%v %d", a.Kind, a.Epoch)
	case Adopt:
		return fmt.Sprintf("%v %d of term %d", a.Kind, a.Epoch, a.Term)
	case Idle:
		return fmt.Sprintf("%v after %d", a.Kind, a.Epoch)
	case CreatePlan, CreateCommit, Report:
		return fmt.Sprintf("%v %d %v", a.Kind, a.Epoch, a.Plan)
	case Compute:
		return fmt.Sprintf("%v %d%s", a.Kind, a.Epoch, word(a.Redo, " redo"))
	case WriteSink:
		return fmt.Sprintf("%v %d %d%s", a.Kind, a.Sink, a.Epoch, word(a.Dry, " dry"))
	case Stop:
		s := fmt.Sprintf("%v: %v", a.Kind, a.Reason)
		if a.Why != Unspecified {
			s += fmt.Sprintf(": %v, epoch %d, sink %d, have %d, want %d", a.Why, a.Epoch, a.Sink, a.Have, a.Want)
		} else if a.Reason == RedoDiffers {
			s += fmt.Sprintf(": epoch %d, sink %d", a.Epoch, a.Sink)
		}
		return s + word(a.Committed, fmt.Sprintf(", commit %d stands", a.Epoch))
	}
	return a.Kind.String()
}

func word(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}
