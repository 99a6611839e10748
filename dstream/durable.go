package dstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/core"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// durable is the checkpoint's side of a run: the session, the files of the
// operators and the maintenance beside the batches. The driver, or its hand, owns
// it; what is said to be shared is protected by mu.
type durable struct {
	r     *run
	cfg   *checkpointConfig
	id    string // of the run
	store vfs.Store
	units []sink.Unit
	// fenced are those of them that this run has, and closes.
	fenced map[sink.Unit]bool
	// counts says that the job has counters.
	counts bool

	session *checkpoint.Session
	after   uint64 // the term behind which the run begins anew
	start   checkpoint.Start
	place   map[string]int // operator name → index in start.Operators
	keeper  *store.Maintainer
	stop    context.CancelFunc // of the keeper
	keeping sync.WaitGroup

	// Of the newest commit and of the running epoch, by index in start.Operators.
	newest, entries []checkpoint.OperatorCommit
	checked         bool             // the owner check before the deltas has been made
	change          bool             // the layout is to be changed before the next epoch
	opening         bool             // the session is being opened, by the goroutine that tells notices
	counters        map[string]int64 // of the commit to come, once the epoch's functions have run
	files           CheckpointProgress

	telling   sync.Mutex // one call of a listener at a time while state is loaded
	loadFault error      // of those calls

	mu      sync.Mutex
	notices []Notice
	loading map[string]int // partitions that are yet to be loaded, by operator; nil before
	under   map[loadTask]StateLoading
	told    bool // of a load, since tellStill has looked
	ready   bool
}

// newDurable makes it whole but for the store. It is part of the run before anybody
// sees that: a probe may ask at any time.
func newDurable(r *run) *durable {
	d := &durable{r: r, cfg: &r.ssc.cfg.checkpoint, counts: r.exec.counting != nil, fenced: map[sink.Unit]bool{}, id: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())}
	if !r.ssc.capturesSinks() {
		d.units = r.ssc.sinkUnits()
	}
	return d
}

// begins opens the checkpoint, or goes on with it after a change, loads the state
// and says where the planner begins and which plan was the newest of a source.
func (d *durable) begins(ctx context.Context) (core.Start, func(string) *source.Plan, error) {
	const most = 10 // an older run that decides epoch after epoch is no accident any more
	for try := 1; ; try++ {
		err := d.begin(ctx)
		switch {
		case err == nil:
			start, err := d.coreStart()
			return start, d.lastPlan, err
		case !restarts(err) || try == most || ctx.Err() != nil:
			return core.Start{}, nil, err
		}
		d.follow(err)
		if err := d.leave(); err != nil {
			return core.Start{}, nil, err
		}
	}
}

// restarts says that the run is to begin anew under the next term (D7).
func restarts(err error) bool {
	return errors.Is(err, checkpoint.ErrRestart) || errors.Is(err, store.ErrTaken)
}

// follow notes the term behind which a run begins anew: only the next one will do,
// as somebody who has that is newer.
func (d *durable) follow(err error) {
	var again *checkpoint.RestartError
	if errors.As(err, &again) {
		d.after = again.Term
	} else if d.session != nil {
		d.after = d.session.Term()
	}
}

func (d *durable) begin(ctx context.Context) error {
	d.setReady(false)
	if d.store == nil {
		var err error
		if d.store, err = d.cfg.store(d.id); err != nil {
			return err
		}
	}
	if d.session == nil && d.after == 0 { // it has taken nothing yet
		if err := d.probe(ctx); err != nil {
			return err
		}
	}
	if err := d.open(ctx); err != nil {
		return err
	}
	d.start = d.session.Start()
	d.place = map[string]int{}
	for i, op := range d.start.Operators {
		d.place[op.Name] = i
	}
	err := d.r.prepare(func(name string) int { return d.start.Operators[d.place[name]].Partitions })
	if err != nil {
		return err
	}
	loads, err := d.load(ctx)
	if err = d.session.Loaded(ctx, err); err != nil {
		return err
	}
	if err := d.keep(loads); err != nil {
		return err
	}
	d.noticeClock()
	return d.tellNotices()
}

// open makes the session, or makes the change that is due in the one there is.
func (d *durable) open(ctx context.Context) error {
	if d.session != nil && d.change {
		d.change = false
		return d.session.Change(ctx)
	}
	cfg, err := d.config()
	if err != nil {
		return err
	}
	d.opening = true
	d.session, err = checkpoint.Open(ctx, cfg)
	d.opening = false
	return errors.Join(err, d.tellNotices())
}

// config describes the job to the checkpoint.
func (d *durable) config() (checkpoint.Config, error) {
	r, c := d.r, &d.r.ssc.cfg
	host, pid, err := d.cfg.host()
	if err != nil {
		return checkpoint.Config{}, fmt.Errorf("checkpoint: the name of this machine: %w", err)
	}
	began := r.clock.Now()
	cfg := checkpoint.Config{
		Store: d.store, Run: d.id, After: d.after, Host: host, PID: pid,
		Now:      func() int64 { return r.clock.Now().UnixNano() },
		Wait:     d.wait,
		Elapsed:  func() time.Duration { return r.clock.Now().Sub(began) },
		Interval: int64(c.interval), Zero: gridZero(r.clock.Now().UnixNano(), int64(c.interval)),
		Sources: d.sourceNames(), Sinks: d.units, Fenced: func(u sink.Unit) { d.fenced[u] = true }, Counts: d.counts,
		Rescale: d.cfg.rescale, Drop: d.cfg.drop, Takeover: d.cfg.takeover, AcceptRedo: d.cfg.accept,
		Options: d.cfg.opts, Notice: d.notice,
	}
	if cfg.Options.RetryLimit = c.ioRetry; c.ioRetry == 0 {
		cfg.Options.RetryLimit = -1
	}
	for _, n := range r.ops {
		op, err := n.op.describe(r)
		if err != nil {
			return cfg, &Fault{Caller: n.caller, Call: "dstream." + n.kind, Err: err}
		}
		cfg.Operators = append(cfg.Operators, op)
	}
	return cfg, nil
}

// gridZero is the latest multiple of the interval not after now: where a fresh
// grid begins.
func gridZero(now, interval int64) int64 {
	off := now % interval
	if off < 0 {
		off += interval
	}
	return now - off
}

// pause waits between two tries of the checkpoint's I/O.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	if r.exec.retryNow {
		return ctx.Err()
	}
	return clock.Wait(ctx, r.clock, d)
}

// coreStart says where the planner begins.
func (d *durable) coreStart() (core.Start, error) {
	start := core.Start{Resumed: true, Zero: d.start.Zero}
	d.r.ssc.counting.restore(d.start.Commit)
	if c := d.start.Commit; c != nil {
		start.Last = core.Point{Epoch: c.Epoch, Time: c.Time}
	}
	if p := d.start.Pending; p != nil {
		start.Pending = &core.Point{Epoch: p.Epoch, Time: p.Time}
		for _, s := range p.Sources {
			if !d.hasSource(s.Name) && !empty(s.Ranges) {
				return start, fmt.Errorf("epoch %d is planned and not committed, and reads source %q, which the program does not have: start the program that planned it once", p.Epoch, s.Name)
			}
		}
	}
	if d.start.Last != nil {
		for _, in := range d.r.inputs {
			if p := planOf(d.start.Last, in.name()); p != nil && !sabotage.On("positions-not-restored") {
				in.resume(*p)
			}
		}
	}
	return start, nil
}

func (d *durable) hasSource(name string) bool {
	for _, in := range d.r.inputs {
		if in.name() == name {
			return true
		}
	}
	return false
}

func empty(ranges []source.Range) bool {
	for _, r := range ranges {
		if r.Until > r.From {
			return false
		}
	}
	return true
}

// lastPlan is the newest plan made for a source, committed or not; nil if there
// is none.
func (d *durable) lastPlan(name string) *source.Plan {
	if p := planOf(d.start.Pending, name); p != nil {
		return p
	}
	return planOf(d.start.Last, name)
}

// planOf is a source's part of an epoch's plan.
func planOf(p *checkpoint.Plan, name string) *source.Plan {
	if p == nil {
		return nil
	}
	for _, s := range p.Sources {
		if s.Name == name {
			return &source.Plan{Ranges: s.Ranges}
		}
	}
	return nil
}

// between readies for the next life: maintenance ends, and so does the session,
// unless it goes on after a change of layout.
func (d *durable) between() error {
	d.stopKeeping()
	if d.change {
		return nil
	}
	return d.leave()
}

// leave ends maintenance and gives the session back.
func (d *durable) leave() error {
	d.stopKeeping()
	s := d.session
	d.session = nil
	if s == nil {
		return nil
	}
	return s.Close()
}

// close ends the checkpoint's side of the run.
func (d *durable) close() error {
	err := d.leave()
	for _, u := range d.units {
		if !d.fenced[u] && !sabotage.On("others-sinks-closed") {
			continue // it may be another run's
		}
		if cerr := d.r.do("close of sink "+u.Name(), u.Close); cerr != nil {
			err = errors.Join(err, fmt.Errorf("dstream: close sink %q: %w", u.Name(), cerr))
		}
	}
	return err
}
