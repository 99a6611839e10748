package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// CommitInput is what the engine knows of an epoch that is to be committed.
type CommitInput struct {
	// Operators has an entry for each of Start().Operators, in the same order.
	// Of a partition without a file, chain and number of keys stay as they were
	// and are filled in.
	Operators []OperatorCommit
	// Watermark is that after the epoch; 0 stands for that of the plan.
	Watermark int64
	// Floor is the oldest version to keep; a lower one than before counts as
	// that one.
	Floor uint64
	// Counters are for people and tools. Those whose names begin with TotalPrefix
	// count from commit to commit: epochs that compute nothing carry them over. See
	// Config.Counts for one that is adopted.
	Counters map[string]int64
}

// TotalPrefix begins the names of counters that are totals of all epochs so far.
const TotalPrefix = "total."

// Counts reports whether the job, or an earlier program of the root, has totals: only
// then there may be a [Counts].
func (c *Commit) Counts() bool { return len(c.totals()) > 0 }

// totals are the counters that a commit hands on to the next one.
func (c *Commit) totals() map[string]int64 {
	var out map[string]int64
	for name, n := range c.Counters {
		if strings.HasPrefix(name, TotalPrefix) {
			if out == nil {
				out = map[string]int64{}
			}
			out[name] = n
		}
	}
	return out
}

// at fails unless the machine asks for one of these.
func (s *Session) at(method string, kinds ...protocol.ActionKind) error {
	if s.stopped != nil {
		return s.stopped
	}
	a := s.m.Next()
	for _, k := range kinds {
		if a.Kind == k {
			return nil
		}
	}
	return fmt.Errorf("checkpoint: %s was called out of order: the session waits for %q", method, a)
}

// Plan begins the next epoch, by writing offsets/N. Of p, Time, Prev,
// Watermark, Sources and Settings are read; the positions of sources that the job
// does not have are carried on.
func (s *Session) Plan(ctx context.Context, p Plan) error {
	if err := s.at("Plan", protocol.Idle); err != nil {
		return err
	}
	s.carry(&p)
	err := checkNames(p.Sources)
	if err == nil {
		err = s.unreplaced(ctx)
	}
	if err == nil {
		err = s.writeMetadata(ctx, s.fit.batch)
	}
	if err != nil {
		return s.fail(ctx, err)
	}
	p.Format, p.Epoch, p.Kind = planFormat, s.Epoch(), KindBatch
	p.Term, p.Run, p.Metadata = s.Term(), s.cfg.Run, s.target.Seq
	p.Sinks = nil
	for _, u := range s.cfg.Sinks {
		p.Sinks = append(p.Sinks, u.Name())
	}
	s.plan = &p
	return s.done(ctx, protocol.Begin(protocol.Batch))
}

// Deltas is called when the epoch is computed, before its first delta is
// written; it finds out early that the run is no longer the owner.
func (s *Session) Deltas(ctx context.Context) error {
	if err := s.at("Deltas", protocol.Compute); err != nil {
		return err
	}
	// Before the deltas, so that who adopts them finds what they were written by.
	if err := s.writeMetadata(ctx, s.fit.batch); err != nil {
		return s.fail(ctx, err)
	}
	return s.done(ctx, protocol.OK())
}

// Outputs is called when all deltas are durable and plain outputs begin.
func (s *Session) Outputs() error {
	if err := s.at("Outputs", protocol.WriteDeltas); err != nil {
		return err
	}
	return s.m.Done(protocol.OK())
}

// Sinks writes the exactly-once sinks. in is the commit to come, of which Operators
// and, with Config.Counts, Counters must be what Commit is told then; units has one
// writer for each sink, in the order of Config.Sinks. Without sinks it need not be
// called.
func (s *Session) Sinks(ctx context.Context, in CommitInput, units []sink.Writer) error {
	if err := s.at("Sinks", protocol.PlainOutputs); err != nil {
		return err
	}
	if len(units) != len(s.cfg.Sinks) {
		return fmt.Errorf("checkpoint: %d writers for %d sinks", len(units), len(s.cfg.Sinks))
	}
	entries, err := s.complete(in.Operators)
	if err != nil {
		return err
	}
	s.entries, s.units = entries, units
	if sabotage.On("counts-after-sinks") {
		return errors.Join(s.done(ctx, protocol.OK()), s.writeCounts(ctx, in.Counters))
	}
	// Before any sink, so that who adopts the epoch finds it.
	if err := s.writeCounts(ctx, in.Counters); err != nil {
		return s.fail(ctx, err)
	}
	return s.done(ctx, protocol.OK())
}

// Commit writes commits/N, checks that the run is still the owner, and returns
// the commit. Until it has returned without an error, nothing may be reported of
// the epoch.
func (s *Session) Commit(ctx context.Context, in CommitInput) (*Commit, error) {
	if len(s.cfg.Sinks) == 0 && s.at("Commit", protocol.PlainOutputs) == nil {
		if err := s.m.Done(protocol.OK()); err != nil {
			return nil, err
		}
	}
	if err := s.at("Commit", protocol.CreateCommit); err != nil {
		return nil, err
	}
	entries, err := s.complete(in.Operators)
	if err != nil {
		return nil, err
	}
	if s.units != nil && chainsOf(s.entries).sum() != chainsOf(entries).sum() {
		return nil, fmt.Errorf("checkpoint: commit of epoch %d: the chain hashes are others than the sinks were written with", s.Epoch())
	}
	if err := s.sameCounters(&in); err != nil {
		return nil, err
	}
	s.entries, s.input, s.ready = entries, in, true
	if err := s.drive(ctx); err != nil {
		return nil, err
	}
	s.changed()
	return s.commit, nil
}

// Aborted tells that the epoch is given up because of err, which is returned,
// together with *NotOwnerError if a newer run is the cause. Open transactions of
// sinks are aborted, those too of an epoch that the session itself has given up:
// else who reads the sink would wait until they end by themselves. The session is
// over; the epoch stays planned, and the next session redoes it.
func (s *Session) Aborted(ctx context.Context, err error) error {
	if s.stopped != nil && sabotage.On("given-up-not-aborted") {
		return s.stopped
	}
	s.abortSinks(ctx)
	if s.stopped != nil {
		return s.stopped
	}
	return s.fail(ctx, err)
}

// abortSinks lets go of what the sinks have open; what is committed stays.
func (s *Session) abortSinks(ctx context.Context) {
	for _, u := range s.units {
		if aerr := u.Abort(ctx); aerr != nil {
			s.notice(Notice{Kind: NoticeSink, Text: "a transaction could not be aborted; it ends by itself", Err: aerr})
		}
	}
}

// complete makes the entries of a commit from those of the engine: what did not
// change keeps chain and keys, operators that the job has dropped are carried
// over until a change takes them away.
func (s *Session) complete(ops []OperatorCommit) ([]OperatorCommit, error) {
	if len(ops) != len(s.start.Operators) {
		return nil, fmt.Errorf("checkpoint: entries of %d operators for a job of %d", len(ops), len(s.start.Operators))
	}
	given := map[int]*OperatorCommit{}
	for i := range ops {
		op := &s.start.Operators[i]
		if ops[i].Number != op.Number || ops[i].Layout != op.Layout || len(ops[i].Partitions) != op.Partitions {
			return nil, fmt.Errorf("checkpoint: entry %d is of operator %d in layout %d with %d partitions, not of %q, which is %d, %d, %d",
				i, ops[i].Number, ops[i].Layout, len(ops[i].Partitions), op.Name, op.Number, op.Layout, op.Partitions)
		}
		given[op.Number] = &ops[i]
	}
	var out []OperatorCommit
	for i := range s.fit.batch {
		op := &s.fit.batch[i]
		var old *OperatorCommit
		if s.commit != nil {
			old = s.commit.Operator(op.Number)
		}
		oc := given[op.Number]
		if oc == nil {
			out = append(out, carried(old))
			continue
		}
		full := OperatorCommit{Number: op.Number, Layout: op.Layout, Partitions: make([]PartitionCommit, op.Partitions)}
		for p, pc := range oc.Partitions {
			switch {
			case pc.File != "" && (pc.Base || old == nil || op.Since < s.Epoch()):
			case pc.File == "" && old == nil:
				pc = PartitionCommit{}
			case pc.File == "" && op.Since < s.Epoch():
				pc = PartitionCommit{Keys: old.Partitions[p].Keys, Chain: old.Partitions[p].Chain}
			default:
				return nil, fmt.Errorf("checkpoint: operator %q, partition %d: a migrated operator's first files must be bases", op.Name, p)
			}
			if pc.File != "" {
				if err := pc.check(s.Epoch()); err != nil {
					return nil, fmt.Errorf("checkpoint: operator %q, partition %d: %w", op.Name, p, err)
				}
			}
			full.Partitions[p] = pc
		}
		out = append(out, full)
	}
	return out, nil
}

// carried is an entry of an epoch that did not touch the operator.
func carried(old *OperatorCommit) OperatorCommit {
	out := OperatorCommit{Number: old.Number, Layout: old.Layout, Partitions: make([]PartitionCommit, len(old.Partitions))}
	for p, pc := range old.Partitions {
		out.Partitions[p] = PartitionCommit{Keys: pc.Keys, Chain: pc.Chain}
	}
	return out
}
