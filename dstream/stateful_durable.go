package dstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
)

// durableNode is a stateful operator as the checkpoint's side of a run sees it.
// The driver calls its methods, load and what unit gives excepted.
type durableNode interface {
	// storable is an error if keys or states cannot be stored.
	storable() error
	// describe tells the checkpoint what the operator stores.
	describe(r *run) (checkpoint.JobOperator, error)
	// attach makes the operator's files, and empty maps for what is to be loaded.
	attach(d *durable, op checkpoint.Operator, c checkpoint.Change) error
	// load loads one partition of a version; it is called from any goroutine.
	load(ctx context.Context, part int, version uint64, progress func(store.Progress)) (store.LoadStats, error)
	// loaded makes what was loaded the current version.
	loaded(b Batch) error
	// giveUpLoad lets go of what was loaded.
	giveUpLoad()
	// deltas writes what the running version changed; before is what the commit
	// before says.
	deltas(ctx context.Context, d *durable, before checkpoint.OperatorCommit) (checkpoint.OperatorCommit, error)
	// written takes note that the running version is committed.
	written()
	// unit is the operator as maintenance sees it, without its number.
	unit(r *run) store.Unit
}

// opFiles are the files of an operator in one life of a run.
type opFiles[K comparable, S any] struct {
	files *store.Operator[K, S]
	maps  []*statemap.Map[K, S] // loaded ones
	fresh bool                  // there is nothing to load
	base  bool                  // the next files hold all of the version
}

func (o *statefulOp[K, V, S, M]) storable() error {
	if o.notStorable != nil {
		return o.notStorable
	}
	_, _, err := o.spec.Stored()
	return err
}

func (o *statefulOp[K, V, S, M]) describe(r *run) (checkpoint.JobOperator, error) {
	c, state, err := o.spec.Stored()
	if err != nil {
		return checkpoint.JobOperator{}, err
	}
	key, err := codec.KeyFor[K]()
	if err != nil {
		return checkpoint.JobOperator{}, err
	}
	set := o.spec.Settings()
	p := o.spec.PartitionerOr(r.workers)
	op := checkpoint.JobOperator{
		Operator: checkpoint.Operator{
			Name: o.node.label(), Kind: strings.ToLower(o.node.kind[:1]) + o.node.kind[1:],
			Partitions: p.Partitions(), Partitioner: storedPartitioner(p.String()),
			KeyCodec: statefile.KeyID[K](), StateCodec: c.ID(), Key: key.Schema(), State: state,
			Deadlines: set.Keyed, Settings: map[string]string{},
		},
		PartitionsGiven: set.Partitions > 0,
		HasInitial:      set.InitialState,
		Place:           o.place(key),
		Convert:         o.convert(r.ssc.cfg.checkpoint.steps[o.node.label()], c),
	}
	if set.Timeout > 0 {
		op.Settings["timeout"] = set.Timeout.String()
	}
	if o.interval > 0 {
		op.Settings["checkpointInterval"] = o.interval.String()
	}
	if o.window != "" {
		windowSetting(&op, o.window)
	}
	return op, nil
}

// storedPartitioner is a partitioner's name without its number of partitions.
func storedPartitioner(name string) string {
	if i := strings.LastIndexByte(name, '('); i > 0 {
		return name[:i]
	}
	return name
}

// place gives the partition of stored keys; nil for partitioners whose name says
// all.
func (o *statefulOp[K, V, S, M]) place(key *codec.Key[K]) func([]byte, int) (int, error) {
	p := o.spec.PartitionerOr(1)
	if _, ok := partitioner.Stored(p.String()); ok {
		return nil
	}
	return func(b []byte, n int) (int, error) {
		if n != p.Partitions() {
			return 0, fmt.Errorf("partitioner %s places keys in %d partitions, not in %d", p, p.Partitions(), n)
		}
		k, err := key.Decode(b)
		if err != nil {
			return 0, err
		}
		return partitioner.Of(p, k)
	}
}

// convert makes states of an older schema ones of today.
func (o *statefulOp[K, V, S, M]) convert(steps []codec.Migration, today codec.Codec[S]) func(codec.Schema) (func(dst, state []byte) ([]byte, error), error) {
	return func(old codec.Schema) (func(dst, state []byte) ([]byte, error), error) {
		reader, err := codec.Reader(old, today, steps...)
		if err != nil && len(steps) == 0 {
			return nil, errNoMigration
		}
		if err != nil {
			return nil, err
		}
		return func(dst, state []byte) ([]byte, error) {
			v, err := reader.Decode(state)
			if err != nil {
				return dst, err
			}
			return today.Append(dst, v)
		}, nil
	}
}

// errNoMigration: the types' difference, which the checkpoint tells, needs one.
var errNoMigration = errors.New("there are none: give the steps by dstream.WithMigration")

// errLayout: a pending epoch is to be finished in a layout that only the older
// program knows: where its function places new keys cannot be found out.
var errLayout = errors.New("an epoch is planned and not committed, and must be finished in the old layout first, in which only the old program can place keys")

// layout gives the spec another number of partitions than it asks for, for the
// epoch that is pending when the number changes.
func (o *statefulOp[K, V, S, M]) layout(spec StateSpec[K, V, S, M], partitions int) (StateSpec[K, V, S, M], error) {
	p := spec.PartitionerOr(partitions)
	if p.Partitions() == partitions {
		return spec, nil
	}
	switch storedPartitioner(p.String()) {
	case "hash":
		return spec.NumPartitions(partitions), nil
	case "murmur2":
		if q, ok := any(partitioner.Murmur2(partitions)).(partitioner.Partitioner[K]); ok {
			return spec.Partitioner(q), nil
		}
	}
	return spec, fmt.Errorf("%w: the checkpoint has %d partitions, the program gives %s: start once with the partitioner of %d partitions that the program had before, stop it after a batch, and then start this one",
		errLayout, partitions, p, partitions)
}

func (o *statefulOp[K, V, S, M]) attach(d *durable, op checkpoint.Operator, c checkpoint.Change) error {
	state, _, err := o.spec.Stored()
	if err != nil {
		return err
	}
	key, err := codec.KeyFor[K]()
	if err != nil {
		return err
	}
	cfg := store.Config[K, S]{
		Store: d.store, Root: d.session.Root(), Operator: op, Key: key, State: state,
		Put: d.session.Put, Term: d.start.Term, Deltas: d.cfg.opts.Compression, Snapshots: d.cfg.opts.Compression,
		Expect: d.policy().Versions,
	}
	if c.Migrated {
		if cfg.LoadState, err = codec.Reader(c.Old.State, state, d.cfg.steps[op.Name]...); err != nil {
			return err
		}
	}
	files, err := store.NewOperator(cfg)
	if err != nil {
		return err
	}
	o.disk = opFiles[K, S]{
		files: files, maps: make([]*statemap.Map[K, S], op.Partitions), fresh: c.Fresh,
		base: c.Migrated || c.Fresh && (o.spec.Settings().InitialState || !d.start.Fresh),
	}
	if sabotage.On("initial-not-durable") {
		o.disk.base = c.Migrated
	}
	return nil
}

func (o *statefulOp[K, V, S, M]) load(ctx context.Context, part int, version uint64, progress func(store.Progress)) (store.LoadStats, error) {
	m, stats, err := o.disk.files.Load(ctx, part, version, o.op.NewMap, progress)
	if err == nil {
		o.disk.maps[part] = m
	}
	return stats, err
}

func (o *statefulOp[K, V, S, M]) loaded(b Batch) error {
	if o.disk.fresh {
		o.current = nil // the first batch begins with the initial state
		return nil
	}
	v, err := o.op.FromMaps(b, o.disk.maps)
	if err != nil {
		return err
	}
	v.ReleaseMapped()
	o.current, o.carried, o.disk.maps = v, b.Epoch, nil
	return nil
}

func (o *statefulOp[K, V, S, M]) giveUpLoad() {
	for _, m := range o.disk.maps {
		if m != nil {
			m.Release()
		}
	}
	o.disk.maps = nil
}

func (o *statefulOp[K, V, S, M]) deltas(ctx context.Context, d *durable, before checkpoint.OperatorCommit) (checkpoint.OperatorCommit, error) {
	v, b := o.next, d.r.cur.batch
	if v == nil { // between two slides: the epoch names the files that there are
		if !o.disk.base || sabotage.On("carried-base-not-written") {
			return unchanged(before), nil
		}
		v = o.current
	}
	out := checkpoint.OperatorCommit{Number: before.Number, Layout: before.Layout, Partitions: make([]checkpoint.PartitionCommit, v.Partitions())}
	name := "write " + o.node.label()
	err := d.r.exec.RunTasks(ctx, name, v.Partitions(), func(t *rdd.Task) (err error) {
		i := t.Partition
		out.Partitions[i], err = o.disk.files.WriteDelta(t.Ctx, i, b.Epoch, b.Time.UnixNano(), before.Partitions[i], v.Records()[i].StateMap, o.disk.base)
		return err
	})
	return out, err
}

func (o *statefulOp[K, V, S, M]) written() { o.disk.base = false }

func (o *statefulOp[K, V, S, M]) unit(r *run) store.Unit {
	u := store.Unit{Pin: func(part int) (store.Pinned, error) { return o.pin(r, part) }}
	if o.interval > 0 {
		u.Policy = store.AtCheckpointInterval(0, o.interval)
	}
	return u
}

// errNothing: a snapshot was asked for before the first version.
var errNothing = errors.New("the operator has no version yet")

// pin holds the newest committed version of a partition for maintenance.
func (o *statefulOp[K, V, S, M]) pin(r *run, part int) (store.Pinned, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.current == nil {
		return store.Pinned{}, errNothing
	}
	held := o.current.StateTimes()
	if err := held.Retain(); err != nil {
		return store.Pinned{}, err
	}
	if sabotage.On("carried-version-older") {
		o.carried = o.current.Batch().Epoch
	}
	files, version, m := o.disk.files, o.carried, o.current.Records()[part].StateMap
	return store.Pinned{
		Version: version,
		Write: func(ctx context.Context) (store.Written, error) {
			return files.Snapshot(ctx, part, version, m)
		},
		Release: held.Release,
	}, nil
}

// forget lets go of the operator's state, for the run to begin anew; the run's mu
// is held.
func (o *statefulOp[K, V, S, M]) forget() {
	if o.current != nil {
		o.current.ReleaseState()
	}
	o.current, o.next, o.running = nil, nil, nil
}
