package dstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
)

// One epoch on a checkpoint, each step durable before the next: plan → compute →
// deltas → plain outputs → exactly-once sinks → commit.

// settingPartitions is the number of partitions that the operators by key of the epoch
// have which were not given one. Whoever redoes the epoch takes it from the plan: on
// another machine, or with another WithParallelism, what the sinks get would differ.
const settingPartitions = "defaultPartitions"

// plan writes down what the epoch reads, before anything is read.
func (d *durable) plan(ctx context.Context, prev int64) error {
	b := d.r.cur.batch
	p := checkpoint.Plan{Time: b.Time.UnixNano(), Prev: prev, Settings: map[string]string{
		settingPartitions: strconv.Itoa(d.r.cur.b.parts),
	}}
	for _, in := range d.r.inputs {
		p.Sources = append(p.Sources, checkpoint.SourcePlan{Name: in.name(), Ranges: in.plan.Ranges})
	}
	d.beginEpoch()
	return d.session.Plan(ctx, p)
}

// redo takes the plan of an epoch from the file that an earlier run has written.
func (d *durable) redo() error {
	d.beginEpoch()
	pending := d.start.Pending
	if text, ok := pending.Settings[settingPartitions]; ok && !sabotage.On("redo-other-partitions") {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: %w: the setting %s is %q, not a number of partitions",
				checkpoint.PlanName(pending.Epoch), checkpoint.ErrCorrupt, settingPartitions, text)
		}
		d.r.cur.b.parts = int(n)
	}
	for _, in := range d.r.inputs {
		p := planOf(pending, in.name())
		if p == nil {
			p = &source.Plan{} // a source that the plan does not know
		}
		in.retries, in.limit, in.rate = 0, 0, 0 // planned under those of another run
		if err := in.begin(*p); err != nil {
			return fmt.Errorf("%s: source %q: %w", checkpoint.PlanName(pending.Epoch), in.name(), err)
		}
	}
	return nil
}

func (d *durable) beginEpoch() {
	d.entries = make([]checkpoint.OperatorCommit, len(d.newest))
	for i, e := range d.newest { // what no delta stage replaces has not changed
		d.entries[i] = unchanged(e)
	}
	d.checked = false
	d.files.DeltaFiles, d.files.DeltaBytes = 0, 0
}

// unchanged is the entry of a version that changed nothing.
func unchanged(e checkpoint.OperatorCommit) checkpoint.OperatorCommit {
	e.Partitions = slices.Clone(e.Partitions)
	for i := range e.Partitions {
		p := &e.Partitions[i]
		*p = checkpoint.PartitionCommit{Keys: p.Keys, Chain: p.Chain}
	}
	return e
}

// deltas writes what the epoch changed in one operator, right after its stage.
func (d *durable) deltas(ctx context.Context, n *node) error {
	if !d.checked { // P3
		if err := d.session.Deltas(ctx); err != nil {
			return err
		}
		d.checked = true
	}
	i := d.place[n.label()]
	e, err := n.op.deltas(ctx, d, d.newest[i])
	if err != nil {
		return err
	}
	d.entries[i] = e
	for _, p := range e.Partitions {
		if p.File != "" {
			d.files.DeltaFiles++
			d.files.DeltaBytes += p.Size
		}
	}
	return nil
}

// outputs is called when all deltas are durable.
func (d *durable) outputs(ctx context.Context) error {
	if !d.checked { // a job without stateful operators
		if err := d.session.Deltas(ctx); err != nil {
			return err
		}
		d.checked = true
	}
	return d.session.Outputs()
}

// sinks writes the exactly-once sinks.
func (d *durable) sinks(ctx context.Context, writers []sink.Writer) error {
	return d.session.Sinks(ctx, checkpoint.CommitInput{Operators: d.entries, Counters: d.counters}, writers)
}

// commit makes the epoch durable; the caller then makes it the newest in memory.
func (d *durable) commit(ctx context.Context) (*checkpoint.Commit, error) {
	if err := d.keeper.BeforeCommit(ctx); err != nil {
		return nil, err
	}
	return d.session.Commit(ctx, checkpoint.CommitInput{
		Operators: d.entries, Floor: d.keeper.Floor(^uint64(0)), Counters: d.counters,
	})
}

// counted makes up the counters of the commit, when all functions of the epoch have
// run: the totals of the user's, and what people may want to know of an epoch later.
func (d *durable) counted() {
	p := &d.r.cur.progress
	c := map[string]int64{"deltaBytes": d.files.DeltaBytes}
	for _, in := range d.r.inputs {
		for _, got := range in.reads {
			c["inputRows"] += got.rows
		}
	}
	d.r.ssc.counting.durable(c)
	for _, o := range p.Operators {
		c["keys"] += o.Keys
		c["changed"] += o.Changed
	}
	d.counters = c
}

// committedNow takes note of a commit that stands.
func (d *durable) committedNow(c *checkpoint.Commit) {
	d.newest = d.entries
	d.files.Commits++
	for _, n := range d.r.ops {
		n.op.written()
	}
	d.keeper.Committed(c)
	if d.inline() {
		_ = d.keeper.Round(d.r.hard) // faults are told as notices
	}
	// The old layout has done its last epoch.
	d.change = d.start.ChangeWanted
	d.start.Pending = nil
}

// fate finds out what became of a commit that failed or was cut off: whether the
// epoch counts after all, or whether nobody can tell now. It does not take long.
func (d *durable) fate() (stands, unknown bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := d.r.clock.NewTimer(stopGrace)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	f := d.session.CommitFate(ctx)
	return f == checkpoint.Committed, f == checkpoint.CommitUnknown
}

// aborted gives an epoch up because of err. It is an error only if that says more
// than err does: that a newer run is the cause.
func (d *durable) aborted(err error) error {
	if d.session == nil || restarts(err) || errors.Is(err, checkpoint.ErrNotOwner) || errors.Is(err, errNotBegun) {
		return nil // the session is over, or does not know of the epoch
	}
	// The run's own context may be what has ended.
	var newer *checkpoint.NotOwnerError
	errors.As(d.session.Aborted(context.WithoutCancel(d.r.hard), err), &newer)
	if newer == nil {
		return nil
	}
	return newer
}
