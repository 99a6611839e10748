package dstream

import (
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/staterdd"
)

// Call is one call of a keyed operator: its batch, the key's state, Emit and
// SetDeadline. It is valid during the call only.
type Call[S, M any] = staterdd.Call[S, M]

// MapWithStateDStream is the stream of a stateful operator's outputs, with its
// state beside it.
type MapWithStateDStream[K comparable, S, M any] struct {
	*DStream[M]
	op        interface{ checkpointInterval() *time.Duration }
	snapshots func() *DStream[Pair[K, S]]
	remembers bool // Checkpoint has it remembered, too: it is an UpdateStateByKey
}

// StateSnapshots is the stream of all live keys with their state after each
// batch, in the order of the keys' canonical bytes within each partition.
func (s *MapWithStateDStream[K, S, M]) StateSnapshots() *DStream[Pair[K, S]] { return s.snapshots() }

// defaultCheckpointSlides is the default checkpoint interval in slides, leastCheckpoint that
// of an UpdateStateByKey, rounded up to a whole slide: both are Spark's.
const (
	defaultCheckpointSlides = 10
	leastCheckpoint         = 10 * time.Second
)

// Checkpoint is StateSpec.CheckpointInterval, said on the stream: the interval,
// a positive multiple of the slide, of the operator's own state. Its outputs are
// not checkpointed. An UpdateStateByKey is also remembered for two intervals, as it
// is in Spark. It returns the stream.
func (s *MapWithStateDStream[K, S, M]) Checkpoint(interval time.Duration) *MapWithStateDStream[K, S, M] {
	s.change("Checkpoint", func(n *node) error {
		if err := positive(interval, "the checkpoint interval"); err != nil {
			return err
		}
		*s.op.checkpointInterval() = interval
		if s.remembers {
			n.remember = max(n.remember, longer(interval, interval))
		}
		return checkpointMultiple(interval, n.slide)
	})
	return s
}

// CheckpointInterval is how often the operator's state is due to be written as a
// whole, and the grain of TimeoutScan(AtCheckpoint): what was set, or ten slides. For an
// UpdateStateByKey the default is Spark's for it, the least multiple of the slide that is
// ten seconds or more.
func (s *MapWithStateDStream[K, S, M]) CheckpointInterval() time.Duration {
	slide := s.SlideDuration()
	switch d := *s.op.checkpointInterval(); {
	case d > 0:
		return d
	case !s.remembers || sabotage.On("update-ten-slides"):
		return defaultCheckpointSlides * min(slide, math.MaxInt64/defaultCheckpointSlides)
	case slide <= 0 || slide >= leastCheckpoint:
		return slide
	}
	return (leastCheckpoint + slide - 1) / slide * slide
}

func checkpointMultiple(interval, slide time.Duration) error {
	if slide > 0 && interval%slide != 0 {
		return fmt.Errorf("the checkpoint interval %v is not a multiple of the slide %v", interval, slide)
	}
	return nil
}

// MapWithState keeps state per key: the spec's function is called for every
// record, in order, with the key's state. The stream gives what it emits: for
// each batch first the outputs of the records, then those of the keys that timed
// out. Over a window it is called, and keys time out, at the window's slides alone.
//
// The operator's name is the spec's. Partitions that are not given are as many
// as the context's parallelism.
func MapWithState[K comparable, V, S, M any](in Stream[Pair[K, V]], spec StateSpec[K, V, S, M]) *MapWithStateDStream[K, S, M] {
	return addStateful(in, "MapWithState", spec)
}

// Keyed runs f for every record (v set) and for every deadline that passed (v
// not set): the one primitive under all stateful operators. After a deadline
// call the key's state is removed unless the call updates it or sets a new
// deadline. Over a window deadlines pass at the window's slides. The context's
// parallelism is the number of partitions, unless NumPartitions is given.
func Keyed[K comparable, V, S, M any](in Stream[Pair[K, V]], name string, f func(c *Call[S, M], k K, v Option[V]) error, opts ...OpOption) *MapWithStateDStream[K, S, M] {
	o, faults := opOptions("Keyed", opts, false, true)
	spec := staterdd.Keyed(f).Named(name)
	if o.partitionsSet && o.partitions > 0 {
		spec = spec.NumPartitions(o.partitions)
	}
	d := addStateful(in, "Keyed", spec)
	d.node.check(faults...)
	return d
}

func addStateful[K comparable, V, S, M any](in Stream[Pair[K, V]], kind string, spec StateSpec[K, V, S, M]) *MapWithStateDStream[K, S, M] {
	p := nodeOf(in)
	n := newNode(nil, kind, p)
	n.name = spec.Settings().Name
	n.stable = true
	n.check(spec.Validate()...)
	op := &statefulOp[K, V, S, M]{node: n, parent: p, spec: spec, interval: spec.Settings().CheckpointInterval}
	n.check(checkpointMultiple(op.interval, n.slide))
	n.op = op
	d := bind(n, func(b *batchRun) (*rdd.RDD[M], error) {
		if err := op.begin(b); err != nil {
			return nil, err
		}
		return op.next.Mapped().WithDeps(op.running), nil
	})
	return &MapWithStateDStream[K, S, M]{DStream: d, op: op, snapshots: func() *DStream[Pair[K, S]] { return op.snapshots(d) }}
}

// statefulNode is a stateful operator as the run sees it. The driver goroutine
// calls its methods.
type statefulNode interface {
	durableNode
	// prepare makes the operator, before the first batch of a life. partitions is
	// the number of partitions in this life; 0 leaves it to the spec.
	prepare(r *run, partitions int) error
	// idle carries the version on, in a batch between two slides of the operator.
	idle(b *batchRun) error
	// stage computes the version that the batch is building, and seals it; nil if the
	// batch is none of the operator's.
	stage() *rdd.Stage
	// sealed is an error if the version of the running batch is not sealed.
	sealed() error
	// abort takes back the version of the running batch, sealed or not.
	abort() error
	// commit makes the sealed version the current one, or what there is that of the batch
	// too; the run's mu is held.
	commit()
	// measure tells the meter what the newest version takes, that of the running
	// batch if there is one.
	measure(m *meter) error
	// progress tells about the version of the running batch.
	progress() OperatorProgress
	// forget lets go of the current version; the run's mu is held.
	forget()
	// hold gives at most n of the current version's rows as
	// []harness.StateRow[K, S] when the returned function is called; the run's mu is
	// held for hold alone.
	hold() (rows func(n int) (any, error), err error)
}

// statefulOp is a stateful operator in a run.
type statefulOp[K comparable, V, S, M any] struct {
	node   *node
	parent *node
	spec   StateSpec[K, V, S, M]
	// interval is the checkpoint interval that was set, 0 if none was.
	interval time.Duration
	// window is that whose results go on from one to the next; "" without one.
	window string
	// notStorable, which may be nil, is why a checkpoint cannot have the states.
	notStorable error

	op      *staterdd.Operator[K, V, S, M]
	current *staterdd.MapWithStateRDD[K, S, M] // newest committed version
	next    *staterdd.MapWithStateRDD[K, S, M] // of the running batch, nil between two slides
	running *rdd.Stage
	carried uint64        // the epoch up to which current is the state
	epoch   uint64        // the running one
	disk    opFiles[K, S] // in a run on a checkpoint

	footprint *staterdd.Footprint[K, S] // made when first asked for
}

func (o *statefulOp[K, V, S, M]) prepare(r *run, partitions int) (err error) {
	spec := o.spec
	if partitions > 0 {
		if spec, err = o.layout(spec, partitions); err != nil {
			return err
		}
	}
	if spec.Settings().Name == "" {
		spec = spec.Named(o.node.label()) // errors shall name it
	}
	if o.interval > 0 {
		spec = spec.CheckpointInterval(o.interval)
	}
	parallelism := r.workers
	if partitions > 0 {
		parallelism = partitions
	}
	var grid func(int64) int64
	if slide := o.node.grid(); slide > r.ssc.cfg.interval {
		grid = func(t int64) int64 { return r.lastGrid(time.Unix(0, t), slide).UnixNano() }
	}
	o.op, err = staterdd.NewOperator(spec, staterdd.Options{
		Parallelism: parallelism,
		Slide:       o.node.slide,
		Grid:        grid,
		Secret:      r.secret,
		BlockSize:   r.stateBlock,
		Background:  r.inBackground,
		Executor:    r.exec,
		Now:         r.clock.Now,
		Meter:       o.meter(r.meter),
	})
	return err
}

func (o *statefulOp[K, V, S, M]) checkpointInterval() *time.Duration { return &o.interval }

// initial makes the version before the first one, if there is none. Its keys get the
// time of the first slide.
func (o *statefulOp[K, V, S, M]) initial(b *batchRun) error {
	o.epoch = b.batch.Epoch
	if o.current != nil {
		return nil
	}
	at := b.batch.Time
	if slid, due := b.slides(o.node); !due && !sabotage.On("initial-too-early") {
		at = slid.Add(o.node.grid())
	}
	first, err := o.op.Initial(at)
	if err != nil {
		return err
	}
	first.ReleaseMapped()
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	o.current = first
	return nil
}

// idle carries the version on, in a batch between two slides.
func (o *statefulOp[K, V, S, M]) idle(b *batchRun) error { return o.initial(b) }

// begin makes the version of the batch; its stage has not run yet.
func (o *statefulOp[K, V, S, M]) begin(b *batchRun) error {
	if err := o.initial(b); err != nil {
		return err
	}
	data, err := o.data(b)
	if err != nil {
		return err
	}
	next, stage, err := o.op.Advance(o.current, data, b.batch)
	if err != nil {
		return err
	}
	o.next = next
	// What reads the version in this batch (a chained operator, a Transform)
	// waits for this stage: all partitions have succeeded, so the version is
	// sealed. It becomes the current one with the commit, and not before.
	o.running = rdd.NewStage(rdd.StageConfig{
		Name: "seal " + o.node.label(), Deps: []*rdd.Stage{stage}, Tasks: 1,
		Run: func(*rdd.Task) error { return next.Seal() },
	})
	b.atForget(o.node, next.ReleaseMapped)
	return nil
}

// data gives the batch's records as row blocks by the operator's partitioner:
// those of the parent if it has just made them, else a shuffle of its own, whose
// blocks go back to the pool as soon as the version is computed.
func (o *statefulOp[K, V, S, M]) data(b *batchRun) (*rdd.Shuffled[K, V], error) {
	r, err := rddOf[Pair[K, V]](b, o.parent)
	if err != nil {
		return nil, err
	}
	if s, ok := b.shuffles[o.parent.id].(*rdd.Shuffled[K, V]); ok && s.Partitioner().Equal(o.op.Partitioner()) {
		return s, nil
	}
	s := rdd.Shuffle(rdd.Within(r, o.node.label()), o.op.Partitioner())
	b.afterCompute = append(b.afterCompute, s.Release)
	return s, s.Err()
}

func (o *statefulOp[K, V, S, M]) stage() *rdd.Stage { return o.running }

func (o *statefulOp[K, V, S, M]) sealed() error {
	if o.next == nil || o.next.Sealed() {
		return nil
	}
	return staterdd.ErrNotSealed
}

func (o *statefulOp[K, V, S, M]) abort() error {
	if o.next == nil {
		return nil
	}
	next := o.next
	o.next, o.running = nil, nil
	return next.Abort()
}

// commit lets the version before go: it is only held on by those who read it.
// The outputs of the new one stay until the batch is forgotten.
func (o *statefulOp[K, V, S, M]) commit() {
	o.carried = o.epoch
	if o.next == nil {
		return
	}
	o.current.ReleaseState()
	o.current, o.next, o.running = o.next, nil, nil
}

// meter gives what a task calls while its partition grows.
func (o *statefulOp[K, V, S, M]) meter(m *meter) func(partition int, heap, keys int64) error {
	if m == nil {
		return nil
	}
	return func(partition int, heap, keys int64) error { return m.observe(o.node, partition, heap, keys, -1) }
}

func (o *statefulOp[K, V, S, M]) measure(m *meter) error {
	v := o.next
	if v == nil {
		v = o.current
	}
	if v == nil {
		return nil
	}
	if o.footprint == nil {
		o.footprint = staterdd.NewFootprint[K, S]()
	}
	for i, rec := range v.Records() {
		s := rec.StateMap
		var before *statemap.Map[K, S]
		if v != o.current {
			before = o.current.Records()[i].StateMap
		}
		if err := m.observe(o.node, i, s.HeapBytes(), int64(s.Len()), o.footprint.PerKey(i, before, s)); err != nil {
			return err
		}
	}
	return nil
}

func (o *statefulOp[K, V, S, M]) progress() OperatorProgress {
	p := OperatorProgress{Name: o.node.label(), Partitions: o.op.Partitioner().Partitions()}
	switch {
	case o.next != nil:
		s := o.next.Stats()
		p.Keys, p.Calls, p.TimedOut, p.Changed = s.Keys, s.Calls, s.TimedOut, s.Changed
		p.Inserted, p.Removed, p.Skipped, p.HeapBytes = s.Inserted, s.Removed, s.Skipped, s.HeapBytes
		p.Updates, p.Removals = s.Updates, s.Removals
	case o.current != nil: // carried on
		s := o.current.Stats()
		p.Keys, p.HeapBytes = s.Keys, s.HeapBytes
	}
	return p
}

func (o *statefulOp[K, V, S, M]) hold() (func(n int) (any, error), error) {
	if o.current == nil {
		return func(int) (any, error) { return []harness.StateRow[K, S]{}, nil }, nil
	}
	current := o.current
	held := current.StateTimes() // holds the state alone: the outputs may be forgotten
	if err := held.Retain(); err != nil {
		return nil, err
	}
	return func(n int) (any, error) {
		defer held.Release()
		rows := []harness.StateRow[K, S]{}
		for i, rec := range current.Records() {
			for k, e := range rec.StateMap.All() {
				if len(rows) == n {
					return rows, nil
				}
				t := e.Time
				if current.Keyed() {
					deadline, has, state := staterdd.UnpackDeadline(t)
					if !state {
						continue
					}
					if t = deadline; !has {
						t = 0
					}
				}
				rows = append(rows, harness.StateRow[K, S]{Key: k, State: e.State, Time: t, Partition: i})
			}
			if err := rec.StateMap.Err(); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}, nil
}

// snapshots adds the stream of the operator's state. A batch that is remembered
// pins its version only if there is such a stream.
func (o *statefulOp[K, V, S, M]) snapshots(of *DStream[M]) *DStream[Pair[K, S]] {
	n := newNode(nil, "StateSnapshots", of.node)
	n.stable = true
	return bind(n, func(b *batchRun) (*rdd.RDD[Pair[K, S]], error) {
		if _, err := b.get(of.node); err != nil {
			return nil, err
		}
		r := o.next.Snapshots().WithDeps(o.running)
		if err := r.Retain(); err != nil {
			return nil, err
		}
		b.atForget(n, r.Release)
		return r, nil
	})
}

// shuffle lays r out by p for this batch.
func shuffle[K comparable, V any](b *batchRun, n *node, r *rdd.RDD[Pair[K, V]], p partitioner.Partitioner[K]) (*rdd.RDD[Pair[K, V]], error) {
	if have := rdd.PartitionerOf(r); have != nil && have.Equal(p) {
		return r, nil
	}
	s := rdd.Shuffle(rdd.Within(r, n.label()), p)
	if err := s.Err(); err != nil {
		return nil, err
	}
	b.shuffles[n.id] = s
	b.atForget(n, s.Release)
	return s.RDD().Named(n.label()), nil
}
