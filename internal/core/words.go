package core

import "fmt"

// EventKind says what happened.
type EventKind int

// The events; the constructors below say what they carry.
const (
	EvTick EventKind = iota
	EvPlanned
	EvComputed
	EvOutputsDone
	EvCommitted
	EvFailed
	EvStop
	EvStopDeadline
)

// Event is one thing that happened. Make it with a constructor.
type Event struct {
	Kind  EventKind
	Now   int64  // Tick
	Epoch uint64 // results
	Last  bool   // Committed: all inputs have ended
	Err   error  // Failed
}

// Tick: the clock was observed at now.
func Tick(now int64) Event { return Event{Kind: EvTick, Now: now} }

// Planned: the plan of the epoch is made and durable.
func Planned(epoch uint64) Event { return Event{Kind: EvPlanned, Epoch: epoch} }

// Computed: all partitions of the epoch succeeded and their deltas are durable.
func Computed(epoch uint64) Event { return Event{Kind: EvComputed, Epoch: epoch} }

// OutputsDone: all outputs of the epoch are out.
func OutputsDone(epoch uint64) Event { return Event{Kind: EvOutputsDone, Epoch: epoch} }

// Committed: the epoch is complete and durable. last says that every input has
// ended, so that the run is over.
func Committed(epoch uint64, last bool) Event {
	return Event{Kind: EvCommitted, Epoch: epoch, Last: last}
}

// Failed: the epoch is given up with err, which must not be nil; epoch 0 is a
// failure outside an epoch, which gives up the one under way as well.
func Failed(epoch uint64, err error) Event { return Event{Kind: EvFailed, Epoch: epoch, Err: err} }

// StopRequested: somebody asked for the run to end.
func StopRequested() Event { return Event{Kind: EvStop} }

// StopDeadline: the stop timeout has passed since the first StopRequested.
func StopDeadline() Event { return Event{Kind: EvStopDeadline} }

// String is the event in the words of the golden scripts.
func (e Event) String() string {
	name := [...]string{"tick", "planned", "computed", "outputs-done", "committed", "failed", "stop", "stop-deadline"}[e.Kind]
	switch e.Kind {
	case EvTick:
		return fmt.Sprintf("%s %d", name, e.Now)
	case EvStop, EvStopDeadline:
		return name
	case EvFailed:
		return fmt.Sprintf("%s %d %v", name, e.Epoch, e.Err)
	}
	if e.Last {
		return fmt.Sprintf("%s %d last", name, e.Epoch)
	}
	return fmt.Sprintf("%s %d", name, e.Epoch)
}

// ActionKind says what to do.
type ActionKind int

// The actions; the package comment says what each asks for.
const (
	Plan ActionKind = iota
	Compute
	Seal
	Outputs
	Commit
	Forget
	Abort
	Stop
)

// Action is one thing to do.
type Action struct {
	Kind  ActionKind
	Batch Batch // all but Forget and Stop
	UpTo  int64 // Forget: batch times not after it
	Err   error // Stop: nil after a clean stop
}

// String is the action in the words of the golden scripts.
func (a Action) String() string {
	name := [...]string{"plan", "compute", "seal", "outputs", "commit", "forget", "abort", "stop"}[a.Kind]
	switch a.Kind {
	case Forget:
		return fmt.Sprintf("%s <= %d", name, a.UpTo)
	case Stop:
		if a.Err != nil {
			return fmt.Sprintf("%s: %v", name, a.Err)
		}
		return name
	case Plan:
		return fmt.Sprintf("%s %d @%d after %d", name, a.Batch.Epoch, a.Batch.Time, a.Batch.Prev)
	case Compute:
		if a.Batch.Redo {
			return fmt.Sprintf("%s %d @%d after %d, planned before", name, a.Batch.Epoch, a.Batch.Time, a.Batch.Prev)
		}
	}
	return fmt.Sprintf("%s %d @%d", name, a.Batch.Epoch, a.Batch.Time)
}
