package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/statemap"
)

// WriteDelta writes what version m, which epoch makes, changed in a partition,
// and returns what the commit is to say of it. prev is what the commit before
// says; its chain hash is continued. A version that changed nothing writes no
// file. With base it writes all of m in the order of canonical keys, changed or
// not, and begins a new chain.
//
// m is open or sealed and not written to meanwhile. time is the batch time in
// unix nanoseconds. The file is durable when it returns. If the name is taken
// by equal content (an answer that was lost), that is success; by other content
// it is ErrTaken. After any other error it may be called again.
func (o *Operator[K, S]) WriteDelta(ctx context.Context, part int, epoch uint64, time int64, prev checkpoint.PartitionCommit, m *statemap.Map[K, S], base bool) (checkpoint.PartitionCommit, error) {
	if base {
		return o.write(ctx, part, epoch, time, checkpoint.PartitionCommit{}, int64(m.Len()), func(w io.Writer, e *statefile.Encoder[K, S], info statefile.Info) (statefile.Summary, error) {
			return o.base(w, e, info, m)
		}, true)
	}
	changed, err := changes(m)
	if err != nil {
		return checkpoint.PartitionCommit{}, o.fault(part, epoch, "write", err)
	}
	if !changed {
		return checkpoint.PartitionCommit{Keys: int64(m.Len()), Chain: prev.Chain}, nil
	}
	return o.write(ctx, part, epoch, time, prev, int64(m.Len()), func(w io.Writer, e *statefile.Encoder[K, S], info statefile.Info) (statefile.Summary, error) {
		return e.Delta(w, info, m)
	}, false)
}

// write writes the file of a version with what fill writes into it.
func (o *Operator[K, S]) write(ctx context.Context, part int, epoch uint64, time int64, prev checkpoint.PartitionCommit, keys int64, fill func(io.Writer, *statefile.Encoder[K, S], statefile.Info) (statefile.Summary, error), base bool) (checkpoint.PartitionCommit, error) {
	name := o.name(part, epoch, statefile.Delta)
	info := o.info(part, epoch, time)
	info.Kind, info.Chain = statefile.Delta, prev.Chain
	var sum statefile.Summary
	err := o.put(ctx, name.String(), func(w io.Writer, e *statefile.Encoder[K, S]) (err error) {
		sum, err = fill(w, e, info)
		return err
	}, func() *statefile.Want { return o.want(part, epoch, statefile.Delta, sum.Chain, sum.Checksum) })
	if err != nil {
		return checkpoint.PartitionCommit{}, o.fault(part, epoch, "write", err)
	}
	return checkpoint.PartitionCommit{
		File: name.Base(), Base: base, Size: sum.Size, Checksum: sum.Checksum, Keys: keys, Chain: sum.Chain,
	}, nil
}

// changes tells whether a version's delta has an entry at all.
func changes[K comparable, S any](m *statemap.Map[K, S]) (bool, error) {
	if m.DeltaLen() == 0 {
		return false, m.Err()
	}
	seq, err := m.Delta()
	if err != nil {
		return false, err
	}
	for range seq {
		return true, nil
	}
	return false, m.Err()
}

// base writes all of m as a delta from nothing. The order is that of keys, so
// that the bytes, and with them the chain hash, do not depend on how m came to
// be.
func (o *Operator[K, S]) base(w io.Writer, e *statefile.Encoder[K, S], info statefile.Info, m *statemap.Map[K, S]) (statefile.Summary, error) {
	type row struct {
		key K
		statemap.Entry[S]
	}
	rows := make([]row, 0, m.ApproxSize())
	for k, entry := range m.All() {
		rows = append(rows, row{k, entry})
	}
	if err := m.Err(); err != nil {
		return statefile.Summary{}, err
	}
	slices.SortFunc(rows, func(a, b row) int { return o.c.Key.Compare(a.key, b.key) })
	if err := e.Begin(w, info); err != nil {
		return statefile.Summary{}, err
	}
	for i := range rows {
		if err := e.Put(rows[i].key, rows[i].State, rows[i].Time); err != nil {
			return statefile.Summary{}, err
		}
	}
	return e.End()
}

// Written is a snapshot that was written.
type Written struct {
	Version uint64
	// Name is its name below the root, Size its length in bytes.
	Name string
	Size int64
}

// Snapshot writes all of a committed version as a snapshot. m is that version
// of the partition, sealed, and is not released before Snapshot returns; it may
// be an older version that the writer has left behind. The name carries the
// run's term, so a bad snapshot of another run is superseded, never rewritten.
// A taken name is success if the file is a whole one of this version and line.
// Errors: ErrNotCommitted, ErrTaken, those of the store and of the map.
func (o *Operator[K, S]) Snapshot(ctx context.Context, part int, version uint64, m *statemap.Map[K, S]) (Written, error) {
	pc, time, err := o.committed(ctx, part, version)
	if err != nil {
		return Written{}, o.fault(part, version, "snapshot", err)
	}
	if n := int64(m.Len()); n != pc.Keys {
		err := fmt.Errorf("the map has %d keys and the committed version %d: it is another version", n, pc.Keys)
		return Written{}, o.fault(part, version, "snapshot", err)
	}
	name := o.name(part, version, statefile.Snapshot).String()
	info := o.info(part, version, time)
	info.Compression, info.Chain = o.c.Snapshots, pc.Chain
	var sum statefile.Summary
	err = o.put(ctx, name, func(w io.Writer, e *statefile.Encoder[K, S]) (err error) {
		sum, err = e.Snapshot(w, info, m)
		return err
	}, func() *statefile.Want { return o.want(part, version, statefile.Snapshot, pc.Chain, statefile.Sum{}) })
	if err != nil {
		return Written{}, o.fault(part, version, "snapshot", err)
	}
	return Written{Version: version, Name: name, Size: sum.Size}, nil
}

// committed gives what the commit of a version says of a partition.
func (o *Operator[K, S]) committed(ctx context.Context, part int, version uint64) (pc checkpoint.PartitionCommit, time int64, err error) {
	c, err := o.c.Root.Commit(ctx, version)
	if errors.Is(err, fs.ErrNotExist) {
		if sabotage.On("snapshot-uncommitted") {
			return pc, 0, nil
		}
		err = fmt.Errorf("%w: %w", ErrNotCommitted, err)
	}
	if err != nil {
		return pc, 0, err
	}
	pc, ok := partitionOf(c, o.ID(part))
	if !ok {
		return pc, 0, fmt.Errorf("%w: commit %d has no layout %d of it", ErrNotCommitted, version, o.c.Operator.Layout)
	}
	return pc, c.Time, nil
}

// partitionOf finds a partition in a commit.
func partitionOf(c *checkpoint.Commit, id Partition) (pc checkpoint.PartitionCommit, ok bool) {
	op := c.Operator(id.Operator)
	if op == nil || op.Layout != id.Layout || id.Partition >= len(op.Partitions) {
		return pc, false
	}
	return op.Partitions[id.Partition], true
}

func (o *Operator[K, S]) info(part int, version uint64, time int64) statefile.Info {
	return statefile.Info{
		Compression: o.c.Deltas, Operator: o.c.Operator.Name, Partition: part,
		Version: int64(version), BatchTime: time, Deadlines: o.c.Operator.Deadlines,
	}
}

func (o *Operator[K, S]) want(part int, version uint64, kind statefile.Kind, chain, checksum statefile.Sum) *statefile.Want {
	return &statefile.Want{
		Kind: kind, Operator: o.c.Operator.Name, Partition: part, Version: int64(version),
		Deadlines: o.c.Operator.Deadlines, Chain: chain, Checksum: checksum,
	}
}

// put creates a file and, if the name is taken, reads it back (P4): the file
// that is wanted there means that an earlier answer was lost.
func (o *Operator[K, S]) put(ctx context.Context, name string, write func(io.Writer, *statefile.Encoder[K, S]) error, want func() *statefile.Want) error {
	if o.c.Put == nil {
		return errors.New("the operator was opened for reading")
	}
	t := o.tools.Get()
	defer o.tools.Put(t)
	if t.encoder == nil {
		t.encoder = statefile.NewEncoder(o.c.Key, o.c.State)
	}
	err := o.c.Put(ctx, name, func(w io.Writer) error { return write(w, t.encoder) })
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if sabotage.On("taken-not-read") {
		return nil
	}
	obj, serr := o.c.Store.Stat(ctx, name)
	if serr != nil {
		return serr
	}
	w := want()
	_, _, verr := statefile.Verify(reader(ctx, o.c.Store, obj, nil), name, w)
	switch {
	case verr == nil:
		return nil
	case ctx.Err() != nil:
		return verr
	}
	return fmt.Errorf("%w: %w", ErrTaken, verr)
}
