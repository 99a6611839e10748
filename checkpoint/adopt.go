package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/sink"
)

// adopt finds the deltas that a run wrote for an epoch which every sink has
// (P6). The digests of the sinks then prove that they are the right ones, and
// that one which is absent was no change.
func (s *Session) adopt(ctx context.Context, epoch, term uint64) (protocol.Result, error) {
	m, err := s.metadataOf(ctx, term)
	if err != nil {
		return protocol.Result{}, err
	}
	if m == nil {
		return protocol.NotFound(), nil
	}
	var entries []OperatorCommit
	for i := range m.Operators {
		op := &m.Operators[i]
		oc := OperatorCommit{Number: op.Number, Layout: op.Layout, Partitions: make([]PartitionCommit, op.Partitions)}
		for part := range oc.Partitions {
			oc.Partitions[part], err = s.adoptFile(ctx, op, part, epoch, term)
			if Bad(err) {
				s.notice(Notice{Kind: NoticeAdopted, Operator: op.Name, Err: err,
					Text: fmt.Sprintf("epoch %d is out, but partition %d of operator %q cannot be adopted", epoch, part, op.Name)})
				return protocol.NotFound(), nil
			}
			if err != nil {
				return protocol.Result{}, err
			}
		}
		entries = append(entries, oc)
	}
	if err := s.adoptCounts(ctx, epoch, term); err != nil {
		return protocol.Result{}, err
	}
	s.adopted, s.target, s.entries = m, m, entries
	digests := make([]protocol.Sum, len(s.memories))
	for i, mem := range s.memories {
		digests[i] = protocol.Sum(sink.Digest(chainsOf(entries), mem.Output))
	}
	return protocol.Adopted(digests), nil
}

// metadataOf gives the metadata by which a run wrote the epoch after the newest
// commit: what it wrote itself since, else what is in force.
func (s *Session) metadataOf(ctx context.Context, term uint64) (*Metadata, error) {
	in := uint64(0)
	if s.inForce != nil {
		in = s.inForce.Seq
	}
	for seq := s.seqs; seq > in; seq-- {
		m, err := s.root.Metadata(ctx, seq)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m.Term == term && m.Prev == in {
			return m, nil
		}
	}
	return s.inForce, nil
}

// adoptFile makes the entry of a partition from the delta that is there, if one
// is. The number of keys is not in a delta, so the version is read.
func (s *Session) adoptFile(ctx context.Context, op *Operator, part int, epoch, term uint64) (PartitionCommit, error) {
	var prev PartitionCommit
	continues := op.Since < epoch
	if s.commit != nil && continues {
		oc := s.commit.Operator(op.Number)
		if oc == nil || oc.Layout != op.Layout || part >= len(oc.Partitions) {
			return prev, fmt.Errorf("%w: operator %q is not as its metadata says", statefile.ErrMismatch, op.Name)
		}
		prev = PartitionCommit{Keys: oc.Partitions[part].Keys, Chain: oc.Partitions[part].Chain}
	}
	name := StateName{Number: op.Number, Layout: op.Layout, Part: part, Version: epoch, Term: term, Kind: statefile.Delta}
	var size int64
	err := s.retry(ctx, "look for "+name.String(), func() error {
		o, err := s.cfg.Store.Stat(ctx, name.String())
		size = o.Size
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return prev, nil
	}
	if err != nil {
		return prev, err
	}
	info, sum, err := statefile.Verify(OpenFile(ctx, s.cfg.Store, name.String(), size), name.String(),
		&statefile.Want{Kind: statefile.Delta, Operator: op.Name, Partition: part, Version: int64(epoch), Deadlines: op.Deadlines})
	if err != nil {
		return prev, err
	}
	out := PartitionCommit{File: name.Base(), Base: info.Chain.IsZero(), Size: sum.Size, Checksum: sum.Checksum, Chain: sum.Chain, Keys: sum.Records}
	if out.Base {
		return out, nil
	}
	if info.Chain != prev.Chain {
		return prev, &statefile.MismatchError{Path: name.String(), Operator: op.Name, Partition: part, Version: int64(epoch),
			What: "chain hash of the version before", Got: info.Chain.String(), Want: prev.Chain.String()}
	}
	_, rows, err := loadRows(ctx, s.root, op.Number, part, epoch-1, s.notice)
	if err != nil {
		return prev, err
	}
	f := File{Name: name.String(), Version: epoch, Kind: statefile.Delta, Size: sum.Size, Chain: sum.Chain, Checksum: sum.Checksum}
	var buf rowBuffer
	if err := buf.apply(ctx, s.cfg.Store, &Files{Operator: op, Partition: part}, &f, rows); err != nil {
		return prev, err
	}
	out.Keys = int64(len(rows))
	return out, nil
}
