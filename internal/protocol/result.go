package protocol

import "fmt"

// ResultKind says how an action ended.
type ResultKind uint8

// The results; the constructors below say what they carry.
const (
	isOK ResultKind = iota
	isFailed
	isInspected
	isUnsuitable
	isCreated
	isMine
	isTaken
	isLost
	isNewerTerm
	isStillNewest
	isOvertaken
	isMemory
	isNoMemory
	isCommit
	isNoCommit
	isPlan
	isNoPlan
	isAdopted
	isNotFound
	isBegin
	isFinish
	isWrote
)

var resultNames = [...]string{
	"ok", "failed", "inspected", "unsuitable", "created", "mine", "taken", "lost", "newer-term", "still-newest",
	"overtaken", "memory", "no-memory", "commit", "no-commit", "plan", "no-plan", "adopted", "not-found", "begin",
	"finish", "wrote",
}

// Result is how an action ended. Make it with a constructor.
type Result struct {
	kind    ResultKind
	term    uint64
	plan    PlanKind
	fresh   bool
	digest  Sum
	digests []Sum
	memory  Memory
	commit  Found
}

// OK: the action is done and its effect durable.
func OK() Result { return Result{kind: isOK} }

// Fail: the action failed for good, after the runner's own retries. The runner
// keeps the error.
func Fail() Result { return Result{kind: isFailed} }

// Inspected: nothing refuses the start. newest is the greatest term in owner/, 0
// if there is none; fresh says that there is no metadata yet.
func Inspected(newest uint64, fresh bool) Result {
	return Result{kind: isInspected, term: newest, fresh: fresh}
}

// Unsuitable: the job or its options do not suit the root.
func Unsuitable() Result { return Result{kind: isUnsuitable} }

// Created: the name was free, and is this run's now.
func Created() Result { return Result{kind: isCreated} }

// Mine: the name is taken by what this run wrote: an earlier reply was lost.
func Mine() Result { return Result{kind: isMine} }

// Taken: the name is taken by a document of another run with that term.
func Taken(term uint64) Result { return Result{kind: isTaken, term: term} }

// Lost: the sink says "fenced", or the outcome is unknown.
func Lost() Result { return Result{kind: isLost} }

// NewerTerm: the sink shows a fence of a greater term.
func NewerTerm() Result { return Result{kind: isNewerTerm} }

// StillNewest: there is no owner file of a greater term.
func StillNewest() Result { return Result{kind: isStillNewest} }

// Overtaken: there is one.
func Overtaken() Result { return Result{kind: isOvertaken} }

// MemoryIs: the sink holds this.
func MemoryIs(m Memory) Result { return Result{kind: isMemory, memory: m} }

// NoMemory: the sink has never been written under this root.
func NoMemory() Result { return Result{kind: isNoMemory} }

// CommitIs: the newest commit. Sinks must have one entry for each of the job's.
func CommitIs(c Found) Result { return Result{kind: isCommit, commit: c} }

// NoCommit: there is no commit.
func NoCommit() Result { return Result{kind: isNoCommit} }

// PlanIs: the plan is there, of that run and kind.
func PlanIs(term uint64, kind PlanKind) Result { return Result{kind: isPlan, term: term, plan: kind} }

// NoPlan: it is not there.
func NoPlan() Result { return Result{kind: isNoPlan} }

// Adopted: the deltas were found. digests has one for each sink: that of the
// chain hashes after the epoch with the output that this sink's memory names.
func Adopted(digests []Sum) Result { return Result{kind: isAdopted, digests: digests} }

// NotFound: a delta is there, but cannot be read, or is of another line.
func NotFound() Result { return Result{kind: isNotFound} }

// Begin: the next epoch begins.
func Begin(kind PlanKind) Result { return Result{kind: isBegin, plan: kind} }

// Finish: the run ends, of its own will.
func Finish() Result { return Result{kind: isFinish} }

// Wrote: the sink is written, or after a dry run would have been, with this digest.
func Wrote(digest Sum) Result { return Result{kind: isWrote, digest: digest} }

// String is the result in the words of the golden scripts.
func (r Result) String() string {
	name := resultNames[r.kind]
	switch r.kind {
	case isInspected:
		return fmt.Sprintf("%s %d%s", name, r.term, word(r.fresh, " fresh"))
	case isTaken:
		return fmt.Sprintf("%s %d", name, r.term)
	case isMemory:
		return fmt.Sprintf("%s %v", name, r.memory)
	case isCommit:
		s := fmt.Sprintf("%s %d %d", name, r.commit.Epoch, r.commit.Term)
		for _, e := range r.commit.Sinks {
			if e.Present {
				s += fmt.Sprintf(" %v", e.Memory)
			} else {
				s += " none"
			}
		}
		return s
	case isPlan:
		return fmt.Sprintf("%s %d %v", name, r.term, r.plan)
	case isAdopted:
		for _, d := range r.digests {
			name += " " + d.String()
		}
		return name
	case isWrote:
		return fmt.Sprintf("%s %v", name, r.digest)
	case isBegin:
		return fmt.Sprintf("%s %v", name, r.plan)
	}
	return name
}
