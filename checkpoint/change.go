package checkpoint

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/protocol"
)

// Change makes the changes that Start().ChangeWanted tells of, as an epoch of
// its own (P8). Afterwards Start tells of another version to load. No batch may
// be under way. A migration or partitioner of the program that fails on a row is a
// *RefusedError, and nothing has been written of the change.
func (s *Session) Change(ctx context.Context) error {
	if err := s.at("Change", protocol.Idle); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if s.fit.change {
		err := s.retry(ctx, "try the change", func() error { return s.rehearse(ctx, s.commit, s.inForce, s.fit.after) })
		if err != nil {
			return s.fail(ctx, err)
		}
		for _, n := range s.fit.notices {
			s.notice(n)
		}
		if err := s.writeMetadata(ctx, s.fit.after); err != nil {
			return s.fail(ctx, err)
		}
		s.plan = &Plan{Format: planFormat, Epoch: s.Epoch(), Kind: KindChange, Term: s.Term(), Run: s.cfg.Run,
			Time: s.commit.Time, Prev: s.commit.Time, Watermark: s.commit.Watermark, Metadata: s.target.Seq, Sources: []SourcePlan{}}
		if err := s.done(ctx, protocol.Begin(protocol.Change)); err != nil {
			return err
		}
		if err := s.prepare(); err != nil {
			return err
		}
	}
	return s.begun(ctx)
}

// converter makes states of an old schema new ones: it appends to dst.
type converter func(dst, state []byte) ([]byte, error)

// rewrite is what a change does to one operator.
type rewrite struct {
	old, now *Operator
	place    func(key []byte, n int) (int, error) // nil: partitions stay
	convert  converter                            // nil: states stay
	foreign  bool                                 // place is the program's
}

// steps says what leads from the metadata in force to the target of a change;
// operators that are in neither list of rewrites are carried over or dropped. An
// error says why this program cannot do it.
func (s *Session) steps(from, target *Metadata, epoch uint64) ([]rewrite, error) {
	if from == nil {
		return nil, fmt.Errorf("%s plans a change of a root without commits", PlanName(epoch))
	}
	var out []rewrite
	for i := range target.Operators {
		now := &target.Operators[i]
		old := from.operator(now.Number)
		if old == nil {
			return nil, fmt.Errorf("%s plans a change that brings operator %q in, which only a batch does", PlanName(epoch), now.Name)
		}
		if now.Since != epoch {
			continue
		}
		var job *JobOperator
		for j := range s.cfg.Operators {
			if s.cfg.Operators[j].Name == now.Name {
				job = &s.cfg.Operators[j]
			}
		}
		r := rewrite{old: old, now: now}
		var err error
		if now.Layout != old.Layout {
			if r.place, err = placer(job, now.Partitioner); err != nil {
				return nil, fmt.Errorf("the change that %s plans: %w", PlanName(epoch), err)
			}
		}
		r.foreign = r.place != nil && job != nil && job.Place != nil
		if r.convert, err = conversion(job, old, now); err != nil {
			return nil, fmt.Errorf("the change that %s plans: %w", PlanName(epoch), err)
		}
		out = append(out, r)
	}
	return out, nil
}

// conversion finds what makes states of the old schema those of the new one; nil
// if they may stay as they are.
func conversion(job *JobOperator, old, now *Operator) (converter, error) {
	if codec.ClassOf(codec.Compare(old.State, now.State)) != codec.Incompatible && !incompatibleOlder(old, now) {
		return nil, nil
	}
	if job == nil || job.Convert == nil || !job.State.Equal(now.State) {
		return nil, fmt.Errorf("operator %q: its states become %s from %s: start the program once that has this type and the migration to it",
			now.Name, now.State, old.State)
	}
	return job.Convert(old.State)
}

func incompatibleOlder(old, now *Operator) bool {
	return slices.ContainsFunc(old.Older, func(o OldSchema) bool {
		return codec.ClassOf(codec.Compare(o.State, now.State)) == codec.Incompatible
	})
}

// writeBases carries out the change that is planned: it writes the files of all
// operators that are rewritten and makes the entries of the commit.
func (s *Session) writeBases(ctx context.Context) (protocol.Result, error) {
	target, err := s.root.Metadata(ctx, s.plan.Metadata)
	if err != nil {
		return protocol.Result{}, fmt.Errorf("checkpoint: the change that %s plans: %w", PlanName(s.plan.Epoch), err)
	}
	steps, err := s.steps(s.inForce, target, s.plan.Epoch)
	if err != nil {
		return protocol.Result{}, &RefusedError{Reasons: []error{err}}
	}
	s.target, s.entries = target, []OperatorCommit{}
	for i := range target.Operators {
		now := &target.Operators[i]
		at := slices.IndexFunc(steps, func(r rewrite) bool { return r.now == now })
		if at < 0 {
			s.entries = append(s.entries, carried(s.commit.Operator(now.Number)))
			continue
		}
		oc, err := s.rewrite(ctx, &steps[at])
		if err != nil {
			return protocol.Result{}, fmt.Errorf("checkpoint: change of operator %q: %w", now.Name, err)
		}
		s.entries = append(s.entries, oc)
	}
	return protocol.OK(), nil
}

// rewrite writes the bases of one operator, in the order of their keys, so that
// whoever writes them writes the same bytes. It holds the operator's rows.
func (s *Session) rewrite(ctx context.Context, r *rewrite) (OperatorCommit, error) {
	oc := OperatorCommit{Number: r.now.Number, Layout: r.now.Layout, Partitions: make([]PartitionCommit, r.now.Partitions)}
	parts := make([]map[string]value, r.now.Partitions)
	for p := range parts {
		parts[p] = map[string]value{}
	}
	for p := range r.old.Partitions {
		_, rows, err := loadRows(ctx, s.root, r.old.Number, p, s.commit.Epoch, s.notice)
		if err != nil {
			return oc, err
		}
		if r.place == nil {
			parts[p] = rows
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(rows)) { // sorted, so that the same key is at fault each time
			to, err := r.to(k)
			if err != nil {
				return oc, err
			}
			parts[to][k] = rows[k]
		}
	}
	for p := range parts {
		pc, err := s.writeBase(ctx, r, p, parts[p])
		if err != nil {
			return oc, fmt.Errorf("partition %d: %w", p, err)
		}
		oc.Partitions[p], parts[p] = pc, nil
	}
	return oc, nil
}

// writeBase writes the base of one partition.
func (s *Session) writeBase(ctx context.Context, r *rewrite, part int, rows map[string]value) (PartitionCommit, error) {
	keys := slices.Sorted(maps.Keys(rows))
	if r.convert != nil {
		var buf []byte
		for _, k := range keys {
			v := rows[k]
			if v.state == nil {
				continue
			}
			var err error
			if buf, err = r.stateOf(buf[:0], k, v.state); err != nil {
				return PartitionCommit{}, err
			}
			v.state = append(make([]byte, 0, len(buf)), buf...)
			rows[k] = v
		}
	}
	name := StateName{Number: r.now.Number, Layout: r.now.Layout, Part: part, Version: s.plan.Epoch, Term: s.Term(), Kind: statefile.Delta}
	info := statefile.Info{Kind: statefile.Delta, Compression: s.cfg.Options.Compression, Operator: r.now.Name, Partition: part,
		Version: int64(s.plan.Epoch), BatchTime: s.plan.Time, Deadlines: r.now.Deadlines, KeyCodec: r.now.KeyCodec, StateCodec: r.now.StateCodec}
	var sum statefile.Summary
	var enc statefile.RawEncoder
	err := s.Put(ctx, name.String(), func(w io.Writer) (err error) {
		if err = enc.Begin(w, info); err != nil {
			return err
		}
		for _, k := range keys {
			if err = enc.Put([]byte(k), rows[k].state, rows[k].time); err != nil {
				return err
			}
		}
		sum, err = enc.End()
		return err
	})
	if err != nil {
		return PartitionCommit{}, err
	}
	return PartitionCommit{File: name.Base(), Base: true, Size: sum.Size, Checksum: sum.Checksum, Chain: sum.Chain, Keys: sum.Records}, nil
}

// keyText prints a key for errors.
func keyText(op *Operator, key string) string {
	if text, err := op.Key.AppendJSON(nil, []byte(key)); err == nil {
		return string(text)
	}
	return fmt.Sprintf("%x", key)
}
