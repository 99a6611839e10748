package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zeebo/xxh3"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/internal/sabotage"
)

// judge compares the job with the root as commit and the plan after it have it.
// It only reads.
func (s *Session) judge(ctx context.Context, r *Root, c *Commit) (fit, error) {
	var base *Metadata
	next := uint64(1)
	var err error
	if c != nil {
		next = c.Epoch + 1
		s.past = max(s.past, c.Term)
		if base, err = r.Metadata(ctx, c.Metadata); err != nil {
			return fit{}, err
		}
	}
	plan, err := r.Plan(ctx, next)
	pending := err == nil && plan.Kind == KindBatch
	if err == nil {
		s.past = max(s.past, plan.Term)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fit{}, err
	case plan.Kind == KindChange:
		// It will be finished as planned, and then the job must fit that.
		target, err := r.Metadata(ctx, plan.Metadata)
		if err != nil {
			return fit{}, fmt.Errorf("checkpoint: the change that %s plans: %w", PlanName(next), err)
		}
		if _, err := s.steps(base, target, next); err != nil {
			return fit{}, &RefusedError{Reasons: []error{err}}
		}
		f, err := fitJob(&s.cfg, target, c, next+1, false)
		var refused *RefusedError
		if errors.As(err, &refused) {
			// The numbers it tells are not in force yet.
			return f, &RefusedError{Reasons: []error{fmt.Errorf("the change that %s plans comes first, and after it: %w", PlanName(next), err)}}
		}
		return f, err
	}
	if pending {
		if err := s.fitSinks(plan); err != nil {
			return fit{}, err
		}
	}
	return fitJob(&s.cfg, base, c, next, pending)
}

// inspect is all that can refuse a start, then the lock, and writes nothing
// before that (CE17).
func (s *Session) inspect(ctx context.Context) (protocol.Result, error) {
	if !sabotage.On("inspect-late") {
		if ok, err := s.suits(ctx); !ok {
			return protocol.Unsuitable(), err
		}
	}
	owner, err := s.newestOwner(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	if err := s.takeLock(ctx, owner); err != nil {
		return protocol.Result{}, err
	}
	// With the lock, nobody adds to it.
	if owner, err = s.newestOwner(ctx); err != nil {
		return protocol.Result{}, err
	}
	if ok, err := s.rehearseFirst(ctx); !ok {
		return protocol.Unsuitable(), err
	}
	_, err = s.cfg.Store.Stat(ctx, MetadataName(1))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return protocol.Result{}, fmt.Errorf("checkpoint: probe %s: %w", MetadataName(1), err)
	}
	newest := s.past // no name is used twice, even if owners are gone
	if sabotage.On("terms-reused") {
		newest = 0
	}
	if owner != nil {
		newest = max(newest, owner.Term)
	}
	return protocol.Inspected(newest, err != nil), nil
}

// suits reports whether the job fits; without an error the reason is kept.
func (s *Session) suits(ctx context.Context) (ok bool, err error) {
	err = s.root.Read(ctx, func(c *Commit) error {
		if err := s.root.lost(ctx, c); err != nil {
			return err
		}
		last, err := s.root.lastBatch(ctx, c)
		if err == nil {
			err = s.fitSources(last)
		}
		if err != nil {
			return err
		}
		s.fit, err = s.judge(ctx, s.root, c)
		return err
	})
	if errors.Is(err, ErrRefused) {
		s.failure = err
		return false, nil
	}
	return err == nil, err
}

// register takes the term.
func (s *Session) register(ctx context.Context, term uint64) (protocol.Result, error) {
	o := &Owner{Format: ownerFormat, Term: term, Run: s.cfg.Run, Host: s.cfg.Host, PID: s.cfg.PID, Since: s.cfg.Now(),
		Counts: s.cfg.counting()}
	name := OwnerName(term)
	out, err := s.create(ctx, name, o, func(b []byte) (uint64, error) {
		// Whose it is does not matter; a damaged one is taken, too.
		return term, nil
	})
	if err != nil || !out.free {
		return out.kind, err
	}
	s.term.Store(term)
	return out.kind, nil
}

// firstMetadata creates metadata/1, or takes the root's id from the one that is
// there (P8).
func (s *Session) firstMetadata(ctx context.Context) (protocol.Result, error) {
	id := xxh3.Hash128([]byte(fmt.Sprintf("%s\n%s\n%d\n%d", s.cfg.Run, s.cfg.Host, s.cfg.PID, s.cfg.Now()))).Bytes()
	m := s.metadata(1, s.fit.batch)
	m.Root, m.Zero = statefile.Sum(id).String(), s.cfg.Zero
	out, err := s.create(ctx, MetadataName(1), m, func(b []byte) (uint64, error) {
		there := new(Metadata)
		err := decode(b, MetadataName(1), 1, there)
		return there.Term, err
	})
	if err != nil {
		return out.kind, err
	}
	if out.free {
		s.target = m
		s.notice(Notice{Kind: NoticeNewRoot, Text: "the root is new, its id is " + m.Root})
	}
	return out.kind, s.identify(ctx)
}

// identify reads the root's id.
func (s *Session) identify(ctx context.Context) error {
	return s.retry(ctx, "read "+MetadataName(1), func() error {
		m, err := s.root.Metadata(ctx, 1)
		if err == nil {
			s.rootID, s.zero = m.Root, m.Zero
		}
		return err
	})
}

// findCommit finds the newest commit, with one list.
func (s *Session) findCommit(ctx context.Context) (protocol.Result, error) {
	if err := s.identify(ctx); err != nil {
		return protocol.Result{}, err
	}
	seqs, err := s.root.numbers(ctx, metadataFolder)
	if err != nil {
		return protocol.Result{}, err
	}
	if len(seqs) > 0 {
		s.seqs = seqs[len(seqs)-1]
	}
	err = s.root.Read(ctx, func(*Commit) error {
		c, _, err := s.root.list(ctx)
		if err == nil && c != nil {
			s.inForce, err = s.root.Metadata(ctx, c.Metadata)
		}
		s.commit = c
		return err
	})
	switch {
	case err != nil:
		return protocol.Result{}, err
	case s.commit == nil:
		return protocol.NoCommit(), nil
	case s.commit.Term > s.Term():
		s.newer = &NotOwnerError{Term: s.Term(), Newer: s.commit.Term, What: CommitName(s.commit.Epoch)}
	}
	return protocol.CommitIs(s.found(s.commit)), nil
}

// found is a commit in the words of the protocol.
func (s *Session) found(c *Commit) protocol.Found {
	f := protocol.Found{Epoch: c.Epoch, Term: c.Term, Sinks: make([]protocol.Entry, len(s.cfg.Sinks))}
	for i, u := range s.cfg.Sinks {
		if e := c.Sink(u.Name()); e != nil {
			f.Sinks[i] = protocol.Entry{Present: true, Memory: protocol.Memory{Epoch: e.Epoch, Term: e.Term, Digest: protocol.Sum(e.Digest)}}
		}
	}
	return f
}

// newestOwner is the newest owner/ file. Only its number counts, so a damaged one
// is told and refuses nothing.
func (s *Session) newestOwner(ctx context.Context) (*Owner, error) {
	owner, err := s.root.Owner(ctx)
	if !errors.Is(err, ErrCorrupt) {
		return owner, err
	}
	terms, lerr := s.root.numbers(ctx, ownerFolder)
	if lerr != nil || len(terms) == 0 {
		return nil, errors.Join(err, lerr)
	}
	s.notice(Notice{Kind: NoticeStart, Err: err, Text: "the newest owner file cannot be read; its number is all that is needed of it"})
	return &Owner{Format: ownerFormat, Term: terms[len(terms)-1]}, nil
}

// recheck is inspect's judgement once more, about the commit that counts.
func (s *Session) recheck(ctx context.Context) (protocol.Result, error) {
	_, err := s.judge(ctx, s.root, s.commit)
	if errors.Is(err, ErrRefused) {
		s.failure = err
		return protocol.Unsuitable(), nil
	}
	return protocol.OK(), err
}

// readPlan looks for a plan that waits.
func (s *Session) readPlan(ctx context.Context, n uint64) (protocol.Result, error) {
	p, err := s.root.Plan(ctx, n)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.NoPlan(), nil
	}
	if err != nil {
		return protocol.Result{}, err
	}
	s.plan = p
	if p.Term > s.Term() {
		s.newer = &NotOwnerError{Term: s.Term(), Newer: p.Term, What: PlanName(n)}
	}
	kind := protocol.Batch
	if p.Kind == KindChange {
		kind = protocol.Change
	} else if p.Metadata != 0 {
		s.planned, err = s.root.Metadata(ctx, p.Metadata)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return protocol.Result{}, err
		}
	}
	return protocol.PlanIs(p.Term, kind), nil
}

// prepare judges the job beside what is in force now.
func (s *Session) prepare() (err error) {
	pending := s.m.Next().Kind == protocol.Compute
	if s.fit, err = fitPlanned(&s.cfg, s.inForce, s.commit, s.Epoch(), pending, s.planned); err != nil {
		s.stopped = err
	}
	return err
}

// begun sets what Start gives.
func (s *Session) begun(ctx context.Context) error {
	s.start = Start{Term: s.Term(), Root: s.rootID, Fresh: s.commit == nil, Zero: s.zero, Commit: s.commit,
		Operators: s.fit.job, Changes: s.fit.changes, ChangeWanted: s.fit.change}
	if s.m.Next().Kind == protocol.Compute {
		s.start.Pending = s.plan
	}
	for _, n := range s.fit.notices {
		s.notice(n)
	}
	err := s.retry(ctx, "read the last plan", func() (err error) {
		s.start.Last, err = s.root.lastBatch(ctx, s.commit)
		return err
	})
	if err != nil {
		// A newer run's clean-up may be why it is gone.
		s.stopped = s.Loaded(ctx, err)
		return s.stopped
	}
	s.tellSources(s.start.Last)
	s.tellSinks()
	return nil
}

// changed sets what Start gives after an epoch.
func (s *Session) changed() {
	s.start.Fresh, s.start.Pending = false, nil
	s.start.Commit, s.start.Last = s.commit, s.plan
	s.start.Changes = make([]Change, len(s.start.Operators))
	for i := range s.start.Operators {
		s.start.Changes[i].Old = &s.start.Operators[i]
	}
	s.plan = nil
}
