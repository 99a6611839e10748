package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/sink"
)

// done tells the machine a result and goes on.
func (s *Session) done(ctx context.Context, r protocol.Result) error {
	if err := s.m.Done(r); err != nil {
		return err
	}
	return s.drive(ctx)
}

// fail tells the machine that the action under way failed for good, and gives
// what the run ends with: err, unless a newer run is the cause.
func (s *Session) fail(ctx context.Context, err error) error {
	s.failure = err
	return s.done(ctx, protocol.Fail())
}

// drive carries out actions until one is the caller's, or the run is over.
func (s *Session) drive(ctx context.Context) error {
	for {
		a := s.m.Next()
		switch a.Kind {
		case protocol.Stop:
			s.stopped = s.reason(a)
			return s.stopped
		case protocol.Idle, protocol.Compute, protocol.WriteDeltas, protocol.PlainOutputs:
			return nil
		case protocol.CreateCommit:
			if a.Plan == protocol.Batch && s.adopted == nil && !s.ready {
				return nil // Commit has not been called yet
			}
		}
		var r protocol.Result
		var err error
		switch a.Kind {
		case protocol.Inspect, protocol.FindCommit, protocol.Recheck, protocol.ReadPlan, protocol.Adopt, protocol.WriteBases:
			// They read, or write what may be written again.
			err = s.retry(ctx, a.String(), func() (err error) {
				r, err = s.act(ctx, a)
				return err
			})
		default:
			r, err = s.act(ctx, a)
		}
		if err != nil {
			s.failure = err
			r = protocol.Fail()
		}
		if err := s.m.Done(r); err != nil {
			return err
		}
	}
}

// act carries out one action. An error is a Fail.
func (s *Session) act(ctx context.Context, a protocol.Action) (protocol.Result, error) {
	switch a.Kind {
	case protocol.Inspect:
		return s.inspect(ctx)
	case protocol.Register:
		return s.register(ctx, a.Term)
	case protocol.FirstMetadata:
		return s.firstMetadata(ctx)
	case protocol.Fence:
		return s.fence(ctx, a.Sink)
	case protocol.OwnerCheck:
		return s.ownerCheck(ctx)
	case protocol.ReadMemory:
		return s.readMemory(ctx, a.Sink)
	case protocol.FindCommit:
		return s.findCommit(ctx)
	case protocol.Recheck:
		return s.recheck(ctx)
	case protocol.Load:
		return protocol.OK(), nil // the engine loads when it has the session
	case protocol.ReadPlan:
		return s.readPlan(ctx, a.Epoch)
	case protocol.Adopt:
		return s.adopt(ctx, a.Epoch, a.Term)
	case protocol.CreatePlan:
		return s.createPlan(ctx)
	case protocol.WriteBases:
		return s.writeBases(ctx)
	case protocol.WriteSink:
		return s.writeSink(ctx, a)
	case protocol.CreateCommit:
		return s.createCommit(ctx, a)
	case protocol.Report:
		return s.report(ctx)
	}
	return protocol.Result{}, fmt.Errorf("checkpoint: no such action: %v", a)
}

// ownerCheck is P2.
func (s *Session) ownerCheck(ctx context.Context) (protocol.Result, error) {
	err := s.owned(ctx)
	var newer *NotOwnerError
	switch {
	case errors.As(err, &newer):
		s.newer = newer
		return protocol.Overtaken(), nil
	case err != nil:
		// The failure that led here is the one to tell.
		return protocol.Result{}, errors.Join(s.failure, err)
	}
	return protocol.StillNewest(), nil
}

// reason makes the error of a stop.
func (s *Session) reason(a protocol.Action) error {
	switch a.Reason {
	case protocol.NotOwner:
		e := s.newer
		if e == nil {
			e = &NotOwnerError{Term: s.Term(), Newer: s.Term() + 1, What: "another run"}
		}
		err := error(e)
		if a.Committed {
			err = fmt.Errorf("%w (commits/%d by this run stands)", err, a.Epoch)
		}
		return errors.Join(err, s.failure)
	case protocol.Restart:
		return &RestartError{Epoch: a.Epoch, Term: s.Term()}
	case protocol.RedoDiffers:
		return &RedoDiffersError{Epoch: a.Epoch, Sink: s.cfg.Sinks[a.Sink].Name(), What: s.difference(a.Sink)}
	case protocol.Refused:
		if s.failure != nil {
			return s.failure
		}
		return &RefusedError{Reasons: []error{s.why(a)}}
	case protocol.Failed:
		if s.failure != nil {
			return s.failure
		}
	case protocol.Finished:
		return errors.New("checkpoint: the session is closed")
	}
	return fmt.Errorf("checkpoint: the session is over: %v", a)
}

// MemoryError tells why a sink's memory and the root cannot go together.
type MemoryError struct {
	// Sink is the sink's name, Epoch the epoch that comes next.
	Sink  string
	Epoch uint64
	// Have is the epoch that the sink remembers and Want the one that the root
	// has; 0 for none.
	Have, Want uint64
	// Reason says it in words, with the ways out.
	Reason string
}

// Error names sink, both numbers and the ways out.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("sink %q remembers epoch %d, the checkpoint records epoch %d: %s", e.Sink, e.Have, e.Want, e.Reason)
}

// why explains a refusal of the protocol.
func (s *Session) why(a protocol.Action) error {
	name := ""
	if a.Sink < len(s.cfg.Sinks) {
		name = s.cfg.Sinks[a.Sink].Name()
	}
	memory := func(reason string) error {
		return &MemoryError{Sink: name, Epoch: a.Epoch, Have: a.Have, Want: a.Want, Reason: reason}
	}
	at := func() string {
		if r, ok := s.cfg.Sinks[a.Sink].(sink.Remembering); ok {
			return " (" + r.MemoryAt() + ")"
		}
		return ""
	}
	switch a.Why {
	case protocol.MemoryAbove:
		return memory("the checkpoint is an older copy, or files of it are lost: restore the newer one, or fork the root so that its sinks start anew")
	case protocol.MemoryBelow:
		return memory("the sink's data was restored from an older copy, or it forgot what came later" + at() + ": restore the newer one, or fork the root so that its sinks start anew")
	case protocol.MemoryMissing:
		return memory("the sink forgot it, or its data is gone" + at() + ": restore it, or fork the root so that its sinks start anew")
	case protocol.MemoryDiffers:
		return memory("both have the epoch, but not the same content: root and sink are of different histories: restore one of them, or fork the root")
	case protocol.MemoryMoved:
		return memory("somebody else writes to it in the name of this root: find and stop that program")
	case protocol.SinkNewer:
		return fmt.Errorf("sink %q was fenced by a newer run of this root, which the checkpoint does not know: the checkpoint is an older copy; use the newer one, or fork the root", name)
	case protocol.PlanMissing:
		return fmt.Errorf("a sink has epoch %d, but %s is gone: restore it from a copy of the root", a.Epoch, PlanName(a.Epoch))
	case protocol.PlanKindWrong:
		return fmt.Errorf("a sink has epoch %d, but %s plans a change, which writes no sink: root and sink are of different histories", a.Epoch, PlanName(a.Epoch))
	case protocol.DeltasMissing:
		return fmt.Errorf("every sink has epoch %d, but the state files that term %d wrote for it are damaged or of another line: restore them from a copy of the root", a.Epoch, a.Have)
	case protocol.DeltasDiffer:
		return fmt.Errorf("every sink has epoch %d, but the state files of term %d are not those that sink %q was written with: restore them from a copy of the root", a.Epoch, a.Have, name)
	case protocol.TermTwice:
		return fmt.Errorf("a file of epoch %d has this run's term %d, but this run did not write it: two programs use one run id, or a copy of the root was restored under a running program", a.Epoch, s.Term())
	}
	return fmt.Errorf("epoch %d: %v", a.Epoch, a.Why)
}
