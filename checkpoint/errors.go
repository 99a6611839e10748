package checkpoint

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrCorrupt is the class of [*CorruptError].
	ErrCorrupt = errors.New("damaged checkpoint file")
	// ErrFormat is the class of [*FormatError].
	ErrFormat = errors.New("checkpoint file of a newer format")
	// ErrOwned is the class of [*OwnedError]: another run holds the root.
	ErrOwned = errors.New("the checkpoint is owned by another run")
	// ErrNotOwner is the class of [*NotOwnerError]: a newer run has taken over;
	// this one must end and writes nothing more.
	ErrNotOwner = errors.New("a newer run owns the checkpoint")
	// ErrRestart is the class of [*RestartError].
	ErrRestart = errors.New("an older run has decided the epoch: open the checkpoint again")
	// ErrRedoDiffers is the class of [*RedoDiffersError].
	ErrRedoDiffers = errors.New("the epoch computed again differs from what a sink has")
	// ErrRefused is the class of [*RefusedError].
	ErrRefused = errors.New("the start is refused")
	// ErrGap is the class of [*GapError].
	ErrGap = errors.New("a file of an epoch is missing")
	// ErrVanished says that files went away under a reader again and again.
	ErrVanished = errors.New("files vanished while they were read")
)

// CorruptError tells that a document's bytes are not what was written.
type CorruptError struct {
	// Path is the file's name in the store.
	Path string
	// Number is the number in its name: a term, an epoch or a sequence number.
	Number uint64
	// Reason is what is wrong.
	Reason string
	// Err is the cause, if another package found it; else nil.
	Err error
}

// Error names file, number, reason and next step.
func (e *CorruptError) Error() string {
	s := fmt.Sprintf("checkpoint file %s (number %d) is damaged: %s", e.Path, e.Number, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + "; restore it from a copy of the root, or see `statemill verify`"
}

// Is makes every CorruptError an [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// FormatError tells that a document, whose bytes are whole, has a format that
// this program does not know.
type FormatError struct {
	// Path is the file's name in the store and Number the number in it.
	Path   string
	Number uint64
	// Format is that of the file, Newest the newest that this program reads.
	Format, Newest int
}

// Error names both formats and the next step.
func (e *FormatError) Error() string {
	return fmt.Sprintf("checkpoint file %s (number %d) has format %d, this program reads formats 1 to %d: use a newer release",
		e.Path, e.Number, e.Format, e.Newest)
}

// Is makes every FormatError an [ErrFormat].
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// OwnedError tells who holds the root.
type OwnedError struct {
	// Path is the lock's name.
	Path string
	// Holder is what the holder said of itself; Run, Host, PID and Since are
	// read from it and empty if it could not be read.
	Holder string
	Run    string
	Host   string
	PID    int
	// Since is when it took the root, unix nanoseconds.
	Since int64
}

// Error names who, since when, and the next step.
func (e *OwnedError) Error() string {
	who := e.Holder
	if e.Host != "" {
		who = fmt.Sprintf("run %s, process %d on %s, since %s", e.Run, e.PID, e.Host, time.Unix(0, e.Since).UTC().Format(time.RFC3339))
	}
	if who == "" {
		who = "a run that has not named itself yet"
	}
	return fmt.Sprintf("%v: %s: stop it first, or take over by force if it is gone for good", ErrOwned, who)
}

// Is makes every OwnedError an [ErrOwned].
func (e *OwnedError) Is(target error) bool { return target == ErrOwned }

// NotOwnerError tells which run has taken over.
type NotOwnerError struct {
	// Term is that of this run, Newer a greater one that was found.
	Term, Newer uint64
	// What says where it was found, such as "owner/7".
	What string
}

// Error names both terms.
func (e *NotOwnerError) Error() string {
	return fmt.Sprintf("%v: this run has term %d, %s shows term %d: this run must end", ErrNotOwner, e.Term, e.What, e.Newer)
}

// Is makes every NotOwnerError an [ErrNotOwner].
func (e *NotOwnerError) Is(target error) bool { return target == ErrNotOwner }

// RestartError tells that an older run's plan or commit of the epoch was found:
// it stands, and this run drops its own. Nothing is wrong: close the session,
// open another one with Config.After, and load anew.
type RestartError struct {
	// Epoch is the epoch that the older run has decided.
	Epoch uint64
	// Term is that of this run: what Config.After must be. Without it a run that
	// was overtaken meanwhile would take over from the run that did it.
	Term uint64
}

// Error names the epoch.
func (e *RestartError) Error() string {
	return fmt.Sprintf("checkpoint: epoch %d: %v", e.Epoch, ErrRestart)
}

// Is makes every RestartError an [ErrRestart].
func (e *RestartError) Is(target error) bool { return target == ErrRestart }

// RedoDiffersError tells that an epoch that a sink has was computed again and
// came out another way.
type RedoDiffersError struct {
	// Epoch is the epoch, Sink the sink that has it.
	Epoch uint64
	Sink  string
	// What says what differs: "output", or operator and partition.
	What string
}

// Error names epoch, sink, what differs and the ways out.
func (e *RedoDiffersError) Error() string {
	return fmt.Sprintf("%v: epoch %d, sink %s: %s: finish the epoch with the binary that began it, or accept the difference by option",
		ErrRedoDiffers, e.Epoch, e.Sink, e.What)
}

// Is makes every RedoDiffersError an [ErrRedoDiffers].
func (e *RedoDiffersError) Is(target error) bool { return target == ErrRedoDiffers }

// RefusedError says why a start is refused. Nothing has been written, but where a
// sink's memory or an epoch that was adopted is the reason: those are only seen
// by the owner.
type RefusedError struct {
	// Reasons are all that were found, each with its ways out.
	Reasons []error
}

// Error gives all reasons.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %v", ErrRefused, errors.Join(e.Reasons...))
}

// Is makes every RefusedError an [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// Unwrap gives the reasons.
func (e *RefusedError) Unwrap() []error { return e.Reasons }

// PartitionsError is a partition count that differs from the one in force.
type PartitionsError struct {
	// Operator is the operator's name.
	Operator string
	// Stored is the number in force, Given that of the program.
	Stored, Given int
}

// Error names operator, both numbers and the ways out.
func (e *PartitionsError) Error() string {
	return fmt.Sprintf("operator %q has %d partitions in the checkpoint, the program gives %d: give %d, start once WithRescale(), or run `statemill rescale`",
		e.Operator, e.Stored, e.Given, e.Stored)
}

// MissingOperatorError is an operator of the checkpoint that the program lacks.
type MissingOperatorError struct {
	// Operator is the operator's name, Keys how many keys it has.
	Operator string
	Keys     int64
}

// Error names the operator and the ways out.
func (e *MissingOperatorError) Error() string {
	return fmt.Sprintf("operator %q of the checkpoint (%d keys) is not in the program: name an operator so, or give its state up by WithDrop(%q)",
		e.Operator, e.Keys, e.Operator)
}

// TypeError is an operator whose stored keys or states the program cannot read.
type TypeError struct {
	// Operator is the operator's name, What "key" or "state".
	Operator, What string
	// Path is the folder of its state in the store.
	Path string
	// Err is the difference, a *codec.SchemaError.
	Err error
}

// Error names operator, folder and the difference.
func (e *TypeError) Error() string {
	return fmt.Sprintf("operator %q: the %s type has changed (state in %s): %v", e.Operator, e.What, e.Path, e.Err)
}

// Unwrap gives the difference.
func (e *TypeError) Unwrap() error { return e.Err }

// FormError is an operator whose state is stored in another form than the
// program's, which no migration changes.
type FormError struct {
	// Operator is the operator's name, What says what differs.
	Operator, What string
	// Stored is what the checkpoint has, Given what the program has.
	Stored, Given string
}

// Error names operator, both forms and the ways out.
func (e *FormError) Error() string {
	way := "change it back, or give the operator another name and the old one up by WithDrop"
	if e.What == "partitioner" {
		way = "change it back, start once WithRescale(), or run `statemill rescale`"
	}
	return fmt.Sprintf("operator %q: its %s is %s in the checkpoint, %s in the program: %s", e.Operator, e.What, e.Stored, e.Given, way)
}

// GapError is a commit or plan that is absent though it must have been there.
type GapError struct {
	// Missing is the first number that is absent; Plan says that it is a plan's and
	// not a commit's.
	Missing uint64
	Plan    bool
	// Floor and Newest are those of the newest commit that is there, 0 for none.
	Floor, Newest uint64
	// Planned is the newest plan, if it is what shows that a commit is gone.
	Planned uint64
	// State is a state file, if it is what shows that every commit and plan is gone.
	State string
}

// File is the name of what is missing, below the root.
func (e *GapError) File() string {
	if e.Plan {
		return PlanName(e.Missing)
	}
	return CommitName(e.Missing)
}

// Error names what is missing, why it must have been there, and the next step.
func (e *GapError) Error() string {
	why := fmt.Sprintf("the newest commit %d keeps all from %d on", e.Newest, e.Floor)
	switch {
	case e.State != "":
		return fmt.Sprintf("%v: no commit and no plan is there, though %s, which was made after them, is: restore %s and %s from a copy of the root",
			ErrGap, e.State, commitFolder, planFolder)
	case e.Plan:
		why = fmt.Sprintf("%s, which was made after it, is there", CommitName(e.Missing))
	case e.Planned > 0:
		why = fmt.Sprintf("%s, which was made after it, is there", PlanName(e.Planned))
	}
	return fmt.Sprintf("%v: %s, though %s: restore it from a copy of the root", ErrGap, e.File(), why)
}

// Is makes every GapError an [ErrGap].
func (e *GapError) Is(target error) bool { return target == ErrGap }
