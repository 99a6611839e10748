package dstream

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The classes of errors of this package; use errors.Is.
var (
	// ErrInvalid is the class of every *ValidationError.
	ErrInvalid = errors.New("dstream: the job is not valid")
	// ErrNoOutputs: a graph without outputs has nothing to do.
	ErrNoOutputs = errors.New("no output operations registered, so nothing to execute: call Print, Foreach or ForeachRDD on a stream")
	// ErrStarted: the call is only legal before the start. A context runs once:
	// make a new one.
	ErrStarted = errors.New("the context has already been started")
	// ErrStopped: the context has already been stopped. A context runs once:
	// make a new one.
	ErrStopped = errors.New("the context has already been stopped")
	// ErrNotStarted: the call needs a running context.
	ErrNotStarted = errors.New("the context has not been started")
	// ErrStopTimeout is the class of every *StopTimeoutError, also of a run without a
	// batch.
	ErrStopTimeout = errors.New("dstream: the running batch did not end within the stop timeout")
	// ErrForgotten is the class of every *ForgottenError.
	ErrForgotten = errors.New("dstream: the batch is no longer remembered")
	// ErrNoState: a checkpoint interval was set on a stream that has no state.
	ErrNoState = errors.New("the stream has no state of its own: the checkpoint interval is that of a stateful operator or of a window")
	// ErrOtherContext: streams of two contexts cannot meet in one operator.
	ErrOtherContext = errors.New("the stream belongs to another context")
)

// Fault is one thing that is wrong with a job, at the line that said it.
type Fault struct {
	Caller string // file:line of the user's call
	Call   string // the call at fault, such as "dstream.Map"
	Err    error
}

// Error names the line and the call.
func (f *Fault) Error() string { return fmt.Sprintf("%s: %s: %v", f.Caller, f.Call, f.Err) }

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// ValidationError holds everything that is wrong with a job: all faults of its
// options and of its graph, in the order in which they were made. Nothing has
// run.
type ValidationError struct{ Faults []*Fault }

// Error tells all faults, a line each.
func (e *ValidationError) Error() string {
	if len(e.Faults) == 1 {
		return ErrInvalid.Error() + ": " + e.Faults[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d faults:", ErrInvalid, len(e.Faults))
	for _, f := range e.Faults {
		b.WriteString("\n\t")
		b.WriteString(f.Error())
	}
	return b.String()
}

// Unwrap gives ErrInvalid and all faults.
func (e *ValidationError) Unwrap() []error {
	errs := []error{ErrInvalid}
	for _, f := range e.Faults {
		errs = append(errs, f)
	}
	return errs
}

// BatchError says which batch ended the run. Unless Committed or Unknown, nothing of
// the batch is kept: the newest readable state is that of the epoch before. On a
// checkpoint the batch stays planned, and the next run does it again.
//
// Committed and Unknown are about this run's own commit. If the cause is a newer run
// (errors.Is(err, checkpoint.ErrNotOwner)), that one does the batch, whatever they say.
type BatchError struct {
	Batch Batch
	Phase string // "plan", "compute", "output", "commit"
	Name  string // source, operator or output; may be empty
	// Committed: the epoch was committed before this happened, and stays so: its
	// state is the newest readable one. What failed came after it, such as a
	// source's Committed, a listener's BatchCompleted, or the look for a newer run.
	Committed bool
	// Unknown: the commit on the checkpoint was begun and failed, and it cannot be told
	// whether it stands, as the store did not answer. Committed is false then. Whoever
	// goes on with the checkpoint finds out, and counts the epoch once: start again.
	Unknown bool
	Err     error
}

// Error names the batch and what failed in it.
func (e *BatchError) Error() string {
	name := ""
	if e.Name != "" {
		name = fmt.Sprintf(" %q", e.Name)
	}
	fate := ""
	switch {
	case e.Committed:
		fate = " (the epoch is committed)"
	case e.Unknown:
		fate = " (whether the epoch is committed is not known: the next run finds out, and counts it once)"
	}
	return fmt.Sprintf("dstream: epoch %d (batch time %s): %s%s%s: %v",
		e.Batch.Epoch, e.Batch.Time.Format(time.RFC3339Nano), e.Phase, name, fate, e.Err)
}

// Unwrap gives the cause.
func (e *BatchError) Unwrap() error { return e.Err }

// StopTimeoutError says what was still in user code when the stop timeout
// passed, the context given to a Stop ended, or Stop was called a second time. A
// goroutine that does not return from user code cannot be ended from outside.
type StopTimeoutError struct {
	Batch     Batch
	Committed bool // the batch was committed before; else it is aborted
	// Idle: no batch was running, and Batch is the last committed one (its Epoch is 0
	// if there is none). What took too long is the end of the run, such as a source's
	// Close, or the next tick, for records of Unread.
	Idle bool
	// Committing: the durable commit was under way and did not come back in time, or
	// its outcome is not known; whether the epoch counts, the next start says.
	Committing bool
	Tasks      []string // "counts partition 3", "output sink", "close of source in"
	// Unread are sources that held records which no batch has read and which cannot be
	// got again (source.Drainer): they are lost.
	Unread []string
	// Cause is the error by which the run was ending already, such as a *BatchError; nil
	// if it was not. Then it is Idle, and Tasks are what keeps the run from its end.
	Cause error
}

// Error names the batch and the tasks that did not end.
func (e *StopTimeoutError) Error() string {
	fate := "was aborted"
	switch {
	case e.Committed:
		fate = "is committed"
	case e.Committing:
		fate = "was being committed: whether it counts, the next start says"
	}
	text := fmt.Sprintf("%v: epoch %d %s", ErrStopTimeout, e.Batch.Epoch, fate)
	switch {
	case e.Cause != nil:
		text = fmt.Sprintf("%v; after that the run did not end within the stop timeout, epoch %d is the last committed one", e.Cause, e.Batch.Epoch)
	case e.Idle:
		text = fmt.Sprintf("dstream: the run did not end within the stop timeout: no batch was running, epoch %d is the last committed one", e.Batch.Epoch)
	}
	if len(e.Tasks) > 0 {
		text += "; still in user code: " + strings.Join(e.Tasks, "; ")
	}
	if len(e.Unread) > 0 {
		text += "; taken in and never read, and lost: records of " + strings.Join(e.Unread, ", ")
	}
	return text
}

// Is makes errors.Is(err, ErrStopTimeout) true.
func (e *StopTimeoutError) Is(target error) bool { return target == ErrStopTimeout }

// Unwrap gives the cause.
func (e *StopTimeoutError) Unwrap() error { return e.Cause }

// ForgottenError says that a batch's data were asked for after they had been
// dropped. Remember them longer: WithRemember, or Remember on the stream.
type ForgottenError struct {
	Stream   string
	Time     time.Time
	Remember time.Duration
	// Earlier: the batch is of a run before this one on the checkpoint, which keeps
	// state, and of the batches only those that windows read.
	Earlier bool
}

// Error names the stream, the batch, and how long the stream remembers.
func (e *ForgottenError) Error() string {
	if e.Earlier {
		return fmt.Sprintf("dstream: stream %q: the batch of %s is of an earlier run, and is no longer remembered: the stream remembers %v, but over a restart only what windows read is kept",
			e.Stream, e.Time.Format(time.RFC3339Nano), e.Remember)
	}
	return fmt.Sprintf("dstream: stream %q: the batch of %s is no longer remembered: the stream remembers %v (see WithRemember and DStream.Remember)",
		e.Stream, e.Time.Format(time.RFC3339Nano), e.Remember)
}

// Is makes errors.Is(err, ErrForgotten) true.
func (e *ForgottenError) Is(target error) bool { return target == ErrForgotten }
