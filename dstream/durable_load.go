package dstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
)

// StateLoading says how far a partition's state is loaded, while a run starts.
type StateLoading = store.Progress

// loadTask is one partition to load.
type loadTask struct {
	n    *node
	part int
}

// ErrNotReady is the class of what ReadyErr returns.
var ErrNotReady = errors.New("dstream: the context is not ready")

// load brings the committed version of all operators into memory, all partitions
// side by side.
func (d *durable) load(ctx context.Context) ([]store.LoadStats, error) {
	version := Batch{}
	d.newest = make([]checkpoint.OperatorCommit, len(d.start.Operators))
	if c := d.start.Commit; c != nil {
		version.Epoch, version.Time = c.Epoch, time.Unix(0, c.Time).UTC()
	}
	for i, op := range d.start.Operators {
		d.newest[i] = d.committed(op)
	}
	var tasks []loadTask
	d.mu.Lock()
	d.loading, d.under, d.told = map[string]int{}, map[loadTask]StateLoading{}, false
	for _, n := range d.r.ops {
		i := d.place[n.label()]
		if err := n.op.attach(d, d.start.Operators[i], d.start.Changes[i]); err != nil {
			d.mu.Unlock()
			return nil, fmt.Errorf("operator %q: %w", n.label(), err)
		}
		if d.start.Changes[i].Fresh {
			continue
		}
		for part := range d.start.Operators[i].Partitions {
			tasks = append(tasks, loadTask{n, part})
		}
		d.loading[n.label()] = d.start.Operators[i].Partitions
	}
	d.mu.Unlock()
	d.loadFault = nil
	stats := make([]store.LoadStats, len(tasks))
	still := d.tellStill()
	err := pool.Run(ctx, d.r.workers, len(tasks), func(ctx context.Context, _, i int) error {
		t := tasks[i]
		d.mu.Lock()
		d.under[t] = StateLoading{Operator: t.n.label(), Partition: t.part}
		d.mu.Unlock()
		return d.retryLoad(ctx, func() (err error) {
			stats[i], err = t.n.op.load(ctx, t.part, version.Epoch, func(p StateLoading) { d.loadProgress(t, p) })
			return err
		})
	})
	still()
	err = errors.Join(err, d.loadFault)
	for _, n := range d.r.ops {
		if err != nil {
			n.op.giveUpLoad()
		} else if err = n.op.loaded(version); err != nil {
			err = fmt.Errorf("operator %q: %w", n.label(), err)
		} else {
			err = d.r.measure(n)
		}
	}
	d.files.Repaired = 0
	for _, s := range stats {
		d.files.Repaired += int64(s.Repaired)
		for _, bad := range s.Bad {
			d.notice(Notice{Kind: checkpoint.NoticeSnapshot, Err: bad.Err,
				Text: fmt.Sprintf("snapshot %s cannot be used; an older one and the deltas after it give the same version, and a new one will be written", bad.File)})
		}
	}
	return stats, err
}

// committed is what the newest commit says of an operator; partitions without a
// word yet are empty.
func (d *durable) committed(op checkpoint.Operator) checkpoint.OperatorCommit {
	out := checkpoint.OperatorCommit{Number: op.Number, Layout: op.Layout, Partitions: make([]checkpoint.PartitionCommit, op.Partitions)}
	if d.start.Commit == nil {
		return out
	}
	for _, c := range d.start.Commit.Operators {
		if c.Number == op.Number && c.Layout == op.Layout && len(c.Partitions) == op.Partitions {
			copy(out.Partitions, c.Partitions)
		}
	}
	return out
}

// retryLoad tries a load again while its failure may pass.
func (d *durable) retryLoad(ctx context.Context, load func() error) error {
	var pause backoff
	for {
		err := load()
		if err == nil || ctx.Err() != nil || checkpoint.Lasting(err) || !pause.wait(ctx, d.r.clock, d.r.exec.ioRetry, d.r.exec.retryNow) {
			return err
		}
	}
}

// loadProgress is called by the loads, from several goroutines.
func (d *durable) loadProgress(t loadTask, p StateLoading) {
	d.telling.Lock() // not mu: the listener may ask whether the context is ready
	defer d.telling.Unlock()
	d.mu.Lock()
	d.told, d.under[t] = true, p
	if p.Done {
		delete(d.under, t)
		if d.loading[p.Operator] > 0 {
			d.loading[p.Operator]--
		}
	}
	d.mu.Unlock()
	d.tellLoading(p)
}

// tellLoading tells the listeners; telling is held.
func (d *durable) tellLoading(p StateLoading) {
	err := d.r.listen(func(l *Listener) {
		if l.StateLoading != nil {
			l.StateLoading(p)
		}
	})
	d.loadFault = errors.Join(d.loadFault, err)
}

// stillEvery is half the time for which a load is silent at most.
const stillEvery = 2500 * time.Millisecond

// tellStill tells of the partitions under way again while nothing is told of any: a
// store that gives nothing for long must not look like a program that does nothing.
// stop ends it.
func (d *durable) tellStill() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		for clock.Wait(ctx, d.r.clock, stillEvery) == nil {
			d.telling.Lock()
			d.mu.Lock()
			var again []StateLoading
			if !d.told && !sabotage.On("load-silent") {
				again = slices.Collect(maps.Values(d.under))
			}
			d.told = false
			d.mu.Unlock()
			slices.SortFunc(again, func(a, b StateLoading) int {
				return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Partition, b.Partition))
			})
			for _, p := range again {
				d.tellLoading(p)
			}
			d.telling.Unlock()
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

func (d *durable) setReady(ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = ready
	d.loading = nil
}

// readyErr says what the run waits for.
func (d *durable) readyErr() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return nil
	}
	var left []string
	for name, n := range d.loading {
		if n > 0 {
			left = append(left, fmt.Sprintf("%q (%d)", name, n))
		}
	}
	switch {
	case d.loading == nil:
		return fmt.Errorf("%w: the checkpoint is being opened", ErrNotReady)
	case len(left) == 0:
		return fmt.Errorf("%w: the sources are being opened", ErrNotReady)
	}
	slices.Sort(left)
	return fmt.Errorf("%w: state is being loaded: partitions left of operators %s", ErrNotReady, strings.Join(left, ", "))
}

// ReadyErr is nil while the context runs with all of its state in memory and its
// sources open. Before, and while a run begins anew in place, it says what is waited
// for; afterwards, why the run ends, and that the context has stopped. It is what a
// readiness probe should ask; it does not wait. Listener.Ready and NotReady tell of the
// same changes, but for the end.
func (ssc *StreamingContext) ReadyErr() error {
	ssc.mu.Lock()
	r, state := ssc.run, ssc.state
	ssc.mu.Unlock()
	switch {
	case state == stopped:
		return fmt.Errorf("%w: %w", ErrNotReady, ErrStopped)
	case r == nil:
		return fmt.Errorf("%w: %w", ErrNotReady, ErrNotStarted)
	}
	if err := r.ending(); err != nil {
		return err
	}
	if r.durable != nil {
		return r.durable.readyErr()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun {
		return fmt.Errorf("%w: the sources are being opened", ErrNotReady)
	}
	return nil
}

// Ready reports whether ReadyErr is nil.
func (ssc *StreamingContext) Ready() bool { return ssc.ReadyErr() == nil }
