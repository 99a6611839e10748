package protocol

import "fmt"

// step is where a machine stands; each asks for one kind of action.
type step uint8

const (
	inspecting step = iota
	registering
	naming
	fencing
	reading
	finding
	rechecking
	loading
	planReading
	adopting
	idle
	planning
	computing
	deltas
	bases
	outputs
	drying // the redo of an epoch that some sinks have is compared with them
	writing
	fencingAgain
	readingAgain
	committing
	reporting
	checking
	stopped
)

// Next is what to do now. It is the same until Done is told its result; after a
// stop it is that stop for ever.
func (m *Machine) Next() Action {
	switch m.step {
	case inspecting:
		return Action{Kind: Inspect}
	case registering:
		return Action{Kind: Register, Term: m.term}
	case naming:
		return Action{Kind: FirstMetadata}
	case fencing, fencingAgain:
		return Action{Kind: Fence, Sink: m.sink, Term: m.term}
	case reading, readingAgain:
		return Action{Kind: ReadMemory, Sink: m.sink}
	case finding:
		return Action{Kind: FindCommit}
	case rechecking:
		return Action{Kind: Recheck, Epoch: m.commit.Epoch}
	case loading:
		return Action{Kind: Load, Epoch: m.commit.Epoch}
	case planReading:
		return Action{Kind: ReadPlan, Epoch: m.commit.Epoch + 1}
	case adopting:
		return Action{Kind: Adopt, Epoch: m.epoch, Term: m.greatestWriter()}
	case idle:
		return Action{Kind: Idle, Epoch: m.commit.Epoch}
	case planning:
		return Action{Kind: CreatePlan, Epoch: m.epoch, Plan: m.kind}
	case computing:
		return Action{Kind: Compute, Epoch: m.epoch, Redo: m.redo}
	case deltas:
		return Action{Kind: WriteDeltas, Epoch: m.epoch, Term: m.term}
	case bases:
		return Action{Kind: WriteBases, Epoch: m.epoch, Term: m.term}
	case outputs:
		return Action{Kind: PlainOutputs, Epoch: m.epoch}
	case drying, writing:
		return Action{Kind: WriteSink, Sink: m.sink, Epoch: m.epoch, Term: m.term, Dry: m.step == drying}
	case committing:
		return Action{Kind: CreateCommit, Epoch: m.epoch, Plan: m.kind}
	case reporting:
		return Action{Kind: Report, Epoch: m.epoch, Plan: m.kind}
	case checking:
		return Action{Kind: OwnerCheck, Term: m.term}
	}
	return m.stop
}

// Done takes in the result of the action that Next gave. A result that does not
// fit is a MisfitError and changes nothing.
func (m *Machine) Done(r Result) error {
	fits := false
	switch {
	case m.step == stopped:
	case r.kind == isFailed:
		m.failed()
		fits = true
	case m.step <= planReading || m.step == adopting:
		fits = m.started(r)
	case m.step == checking:
		fits = m.checked(r)
	case m.step >= drying && m.step <= readingAgain:
		fits = m.delivered(r)
	default:
		fits = m.advanced(r)
	}
	if !fits {
		return &MisfitError{Action: m.Next(), Result: r}
	}
	return nil
}

// failed ends the run after a failure. Before the owner file there is nobody to
// ask; an owner check that fails itself lets the earlier fault stand.
func (m *Machine) failed() {
	switch {
	case m.step == checking && m.then == stopped:
		m.step = stopped
	case m.step == checking || m.step <= registering:
		m.end(Action{Reason: Failed})
	default:
		m.lostOr(Action{Reason: Failed})
	}
}

// end stops the run.
func (m *Machine) end(a Action) {
	m.prepare(a)
	m.step = stopped
}

// prepare makes a Stop of what is known of it.
func (m *Machine) prepare(a Action) {
	a.Kind, a.Epoch, a.Committed = Stop, m.epoch, m.landed
	m.stop = a
}

// A MisfitError is a result that does not fit the action: a fault of the runner.
type MisfitError struct {
	Action Action
	Result Result
}

// Error names both.
func (e *MisfitError) Error() string {
	return fmt.Sprintf("protocol: result %q does not fit action %q: this is a fault of the runner", e.Result, e.Action)
}
