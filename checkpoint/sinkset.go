package checkpoint

import (
	"fmt"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
)

// A sink that a program leaves out is not written from then on, and when it comes back
// it lacks what came meanwhile: that is told. It is refused while an epoch is planned
// that the sink may have already: nobody would ask it, and what takes its place, such
// as the same topic under another name, would get the epoch a second time.

// SinksError tells that the program lacks sinks that may have the planned epoch.
type SinksError struct {
	// Epoch is the epoch that is planned and not committed.
	Epoch uint64
	// Missing are the sinks that the program lacks.
	Missing []string
}

// Error names the sinks, the epoch and the ways out.
func (e *SinksError) Error() string {
	return fmt.Sprintf("the program has no sink %s, which may have epoch %d already: start once the program that has it, which finishes the epoch, or give it up by WithDrop(%s)",
		quoted(e.Missing), e.Epoch, quoted(e.Missing))
}

// missingSinks are those of the names that the job does not have and does not give up.
func (s *Session) missingSinks(names []string) (missing []string) {
	if s.cfg.Sources == nil { // a tool, which knows of no sink
		return nil
	}
	for _, name := range names {
		if !s.hasSink(name) && !slices.Contains(s.cfg.Drop, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

func (s *Session) hasSink(name string) bool {
	for _, u := range s.cfg.Sinks {
		if u.Name() == name {
			return true
		}
	}
	return false
}

// fitSinks compares the job's sinks with those that may have the planned batch.
func (s *Session) fitSinks(plan *Plan) error {
	if missing := s.missingSinks(plan.Sinks); len(missing) > 0 && !sabotage.On("sinks-not-compared") {
		return &RefusedError{Reasons: []error{&SinksError{Epoch: plan.Epoch, Missing: missing}}}
	}
	return nil
}

// tellSinks tells of sinks that went, and of those that came back.
func (s *Session) tellSinks() {
	if s.commit == nil {
		return
	}
	var had []string
	for _, e := range s.commit.Sinks {
		had = append(had, e.Name)
	}
	for _, name := range s.missingSinks(had) {
		s.notice(Notice{Kind: NoticeSink, Text: fmt.Sprintf("sink %s of the checkpoint is not in the program: it gets nothing from epoch %d on", name, s.Epoch())})
	}
	for i, u := range s.cfg.Sinks {
		m := s.memories[i]
		if m.Epoch > 0 && m.Epoch < s.commit.Epoch && s.commit.Sink(u.Name()) == nil {
			s.notice(Notice{Kind: NoticeSink, Text: fmt.Sprintf("sink %s was not in the program for a while: it has epoch %d and goes on with epoch %d; what lies between is not in it",
				u.Name(), m.Epoch, s.Epoch())})
		}
	}
}
