package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/sink"
)

// chains are the chain hashes of all operators and partitions, in the order of
// their numbers.
type chains []statefile.Sum

func chainsOf(ops []OperatorCommit) (c chains) {
	for i := range ops {
		for _, p := range ops[i].Partitions {
			c = append(c, p.Chain)
		}
	}
	return c
}

// sum tells chains apart.
func (c chains) sum() sink.Sum { return sink.Digest(c, sink.Sum{}) }

// fence shuts older runs out of a sink.
func (s *Session) fence(ctx context.Context, i int) (protocol.Result, error) {
	if s.rootID == "" {
		if err := s.identify(ctx); err != nil {
			return protocol.Result{}, err
		}
	}
	u := s.cfg.Sinks[i]
	f := sink.Fence{Root: s.rootID, Run: s.cfg.Run, Term: s.Term(), Notice: func(text string) {
		s.notice(Notice{Kind: NoticeSink, Text: "sink " + u.Name() + ": " + text})
	}}
	err := s.sinkCall(ctx, "fence sink "+u.Name(), func() error { return u.Fence(ctx, f) })
	var others *sink.InUseError
	if s.cfg.Fenced != nil && !errors.As(err, &others) {
		s.cfg.Fenced(u)
	}
	if err == nil {
		err = s.clash(u)
	}
	return s.sinkResult(protocol.OK(), err)
}

// clash asks a sink that is open now whether the job can have the others beside it.
func (s *Session) clash(u sink.Unit) error {
	x, ok := u.(sink.Exclusive)
	if !ok {
		return nil
	}
	for _, other := range s.cfg.Sinks {
		if other == u {
			continue
		}
		if err := x.Clash(other); err != nil {
			return &permanent{err}
		}
	}
	return nil
}

// readMemory reads what a sink remembers.
func (s *Session) readMemory(ctx context.Context, i int) (protocol.Result, error) {
	u := s.cfg.Sinks[i]
	var m sink.Memory
	var ok bool
	err := s.sinkCall(ctx, "read the memory of sink "+u.Name(), func() (err error) {
		m, ok, err = u.Memory(ctx)
		return err
	})
	if err != nil {
		return protocol.Result{}, fmt.Errorf("checkpoint: sink %s: %w", u.Name(), err)
	}
	s.memories[i] = m
	if !ok {
		return protocol.NoMemory(), nil
	}
	return protocol.MemoryIs(memory(m)), nil
}

func memory(m sink.Memory) protocol.Memory {
	return protocol.Memory{Epoch: m.Epoch, Term: m.Term, Digest: protocol.Sum(m.Digest)}
}

// writeSink writes an epoch into a sink, or only computes what it would.
func (s *Session) writeSink(ctx context.Context, a protocol.Action) (protocol.Result, error) {
	w := s.units[a.Sink]
	name := s.cfg.Sinks[a.Sink].Name()
	var out sink.Sum
	err := s.sinkCall(ctx, "write sink "+name, func() (err error) {
		out, err = w.Prepare(ctx, a.Dry)
		return err
	})
	m := sink.Memory{Epoch: a.Epoch, Term: a.Term, Output: out, Digest: sink.Digest(chainsOf(s.entries), out)}
	if err == nil && a.Dry {
		s.compare(a.Sink, m)
		return protocol.Wrote(protocol.Sum(m.Digest)), nil
	}
	if err == nil {
		err = s.sinkCall(ctx, "commit sink "+name, func() error { return w.Commit(ctx, m) })
	}
	if err == nil {
		s.memories[a.Sink] = m
	}
	return s.sinkResult(protocol.Wrote(protocol.Sum(m.Digest)), err)
}

// compare tells the user if a redo that is accepted came out another way.
func (s *Session) compare(i int, m sink.Memory) {
	if m.Digest != s.memories[i].Digest && s.cfg.AcceptRedo {
		s.notice(Notice{Kind: NoticeRedo, Text: fmt.Sprintf("epoch %d came out another way than sink %s has it (%s); the sink keeps what it has",
			m.Epoch, s.cfg.Sinks[i].Name(), differs(m, s.memories[i]))})
	}
	s.redone = m
}

// difference says what differs between a redo and what a sink has.
func (s *Session) difference(i int) string { return differs(s.redone, s.memories[i]) }

func differs(now, then sink.Memory) string {
	if now.Output != then.Output {
		return "the output differs"
	}
	return "the output is the same, the state differs"
}

// sinkCall tries a call of a sink again, unless its error has a meaning.
func (s *Session) sinkCall(ctx context.Context, what string, do func() error) error {
	var meant error
	err := s.retry(ctx, what, func() error {
		err := do()
		for _, e := range []error{sink.ErrNotOwner, sink.ErrFenced, sink.ErrUnknown, sink.ErrEpoch, sink.ErrMisuse} {
			if errors.Is(err, e) {
				meant = err
				return nil
			}
		}
		return err
	})
	if meant != nil {
		return meant
	}
	return err
}

// sinkResult gives a sink's error its meaning. ErrEpoch is resolved as an unknown
// outcome is: the memory tells who wrote.
func (s *Session) sinkResult(good protocol.Result, err error) (protocol.Result, error) {
	var newer *sink.NotOwnerError
	switch {
	case err == nil:
		return good, nil
	case errors.As(err, &newer):
		s.newer = &NotOwnerError{Term: s.Term(), Newer: newer.Newer, What: "sink " + newer.Unit}
		return protocol.NewerTerm(), nil
	case errors.Is(err, sink.ErrNotOwner):
		return protocol.NewerTerm(), nil
	case errors.Is(err, sink.ErrFenced), errors.Is(err, sink.ErrUnknown), errors.Is(err, sink.ErrEpoch):
		if s.lost++; s.lost > lostLimit {
			return protocol.Result{}, fmt.Errorf("checkpoint: given up after %d times: %w", lostLimit, err)
		}
		s.notice(Notice{Kind: NoticeSink, Text: "a sink has lost its hold or its answer; who owns it is looked up", Err: err})
		return protocol.Lost(), nil
	}
	return protocol.Result{}, fmt.Errorf("checkpoint: %w", err)
}

// lostLimit is how often in one epoch sinks may say that they were fenced.
const lostLimit = 20
