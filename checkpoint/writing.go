package checkpoint

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/internal/sabotage"
)

// metadata makes a document of these operators.
func (s *Session) metadata(seq uint64, ops []Operator) *Metadata {
	m := &Metadata{Format: metadataFormat, Seq: seq, Root: s.rootID, Term: s.Term(), Run: s.cfg.Run,
		Interval: s.cfg.Interval, Zero: s.zero, Numbers: s.fit.numbers, Operators: ops}
	if m.Operators == nil {
		m.Operators = []Operator{}
	}
	if s.inForce != nil {
		m.Prev = s.inForce.Seq
	}
	return m
}

// writeMetadata sees to it that there is metadata with these operators for the
// next commit to name: what is in force, or what this session has written, else
// a new document under the next free number. Documents that no commit names are
// never built upon, whoever wrote them (P8, CE16).
func (s *Session) writeMetadata(ctx context.Context, ops []Operator) error {
	want := s.metadata(0, ops)
	for _, m := range []*Metadata{s.inForce, s.target} {
		if m != nil && m.Interval == want.Interval && m.Numbers == want.Numbers && sameOperators(m.Operators, want.Operators) {
			s.target = m
			return nil
		}
	}
	for {
		s.seqs++
		want.Seq = s.seqs
		name := MetadataName(want.Seq)
		out, err := s.create(ctx, name, want, func([]byte) (uint64, error) { return 0, nil })
		if err != nil {
			return err
		}
		if out.free || sabotage.On("metadata-reused") {
			s.target = want
			return nil
		}
	}
}

// createPlan writes offsets/N.
func (s *Session) createPlan(ctx context.Context) (protocol.Result, error) {
	name := PlanName(s.plan.Epoch)
	out, err := s.create(ctx, name, s.plan, func(b []byte) (uint64, error) {
		there := new(Plan)
		err := decode(b, name, s.plan.Epoch, there)
		return there.Term, s.seen(there.Term, name, err)
	})
	return out.kind, err
}

// seen keeps the greater term that a file shows.
func (s *Session) seen(term uint64, name string, err error) error {
	if err == nil && term > s.Term() {
		s.newer = &NotOwnerError{Term: s.Term(), Newer: term, What: name}
	}
	return err
}

// createCommit writes commits/N.
func (s *Session) createCommit(ctx context.Context, a protocol.Action) (protocol.Result, error) {
	c := &Commit{Format: commitFormat, Epoch: a.Epoch, Kind: s.plan.Kind, Term: s.Term(), Run: s.cfg.Run,
		Time: s.plan.Time, Watermark: s.plan.Watermark, Metadata: s.target.Seq, Operators: s.entries}
	if c.Operators == nil {
		c.Operators = []OperatorCommit{}
	}
	if s.commit != nil && !sabotage.On("floor-falls") {
		c.Floor = s.commit.Floor
	}
	if s.commit != nil {
		c.Counters = s.commit.totals()
	}
	if s.adopted != nil && s.counted != nil && !sabotage.On("counts-not-adopted") {
		c.Counters = s.counted.Counters
	}
	switch {
	case a.Plan == protocol.Change:
		c.Watermark, c.Sinks = s.commit.Watermark, s.commit.Sinks
		if sabotage.On("change-forgets-sinks") {
			c.Sinks = nil
		}
	case s.adopted == nil:
		if s.input.Watermark != 0 {
			c.Watermark = s.input.Watermark
		}
		c.Counters = s.input.Counters
		c.Floor = max(c.Floor, min(s.input.Floor, a.Epoch))
		fallthrough
	default:
		for i, u := range s.cfg.Sinks {
			if m, ok := s.m.Memory(i); ok {
				c.Sinks = append(c.Sinks, SinkCommit{Name: u.Name(), Epoch: m.Epoch, Term: m.Term, Digest: statefile.Sum(m.Digest)})
			}
		}
	}
	name := CommitName(a.Epoch)
	s.trying = c
	out, err := s.create(ctx, name, c, func(b []byte) (uint64, error) {
		there := new(Commit)
		err := decode(b, name, a.Epoch, there)
		return there.Term, s.seen(there.Term, name, err)
	})
	if err != nil || !out.free {
		return out.kind, err
	}
	// Not yet believed: the owner check comes first.
	s.written = c
	return out.kind, nil
}

// report makes the commit the newest.
func (s *Session) report(context.Context) (protocol.Result, error) {
	c := s.written
	s.commit, s.inForce = c, s.target
	s.root.add(c, s.target, s.plan)
	switch {
	case s.adopted != nil:
		s.notice(Notice{Kind: NoticeAdopted, Text: fmt.Sprintf("epoch %d was out already and is committed as it was written", c.Epoch)})
	case c.Kind == KindChange:
		s.notice(Notice{Kind: NoticeChange, Text: fmt.Sprintf("the change of epoch %d is done", c.Epoch)})
	}
	s.written, s.trying, s.entries, s.units, s.adopted, s.counted = nil, nil, nil, nil, nil, nil
	s.input, s.ready, s.lost = CommitInput{}, false, 0
	return protocol.OK(), nil
}

// add keeps documents that this process has written.
func (r *Root) add(c *Commit, m *Metadata, p *Plan) {
	r.mu.Lock()
	r.commits.put(c.Epoch, c)
	r.metadata.put(m.Seq, m)
	r.plans.put(p.Epoch, p)
	r.mu.Unlock()
	r.saw(c)
}
