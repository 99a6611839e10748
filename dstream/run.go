package dstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/core"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
)

// run is the run of a context. One driver goroutine (drive) owns everything
// that is not said to be shared; workers and callers of Stop see only what mu
// protects, and the channels.
type run struct {
	ssc        *StreamingContext
	harness    *harness.Harness // nil outside tests
	clock      clock.Clock
	workers    int
	stateBlock int
	secret     uint64
	pools      *rdd.Pools
	exec       *executor // for stages and actions
	serial     *executor // for Foreach
	background sync.WaitGroup

	hard     context.Context // ends when the run is aborted
	abort    context.CancelCauseFunc
	soft     context.Context // ends when a stop is asked for
	end      context.CancelFunc
	halt     context.Context // ends when no further batch shall begin: at a stop, after what is drained
	halts    context.CancelFunc
	late     chan struct{} // closed when the stop timeout has passed
	lateOnce sync.Once
	done     chan struct{} // closed when the driver has ended
	left     chan struct{} // closed when a stop has left user code alone that does not return
	leftErr  error         // set before left is closed
	leftOnce sync.Once
	over     chan struct{} // closed when the run has failed: nothing is tried any more, what is open is closed
	opened   func()        // ends the context with which the start opened

	inputs     []*input
	ops        []*node
	remembered []*batchRun // oldest first
	zero       time.Time
	core       *core.Core    // the driver's alone
	first      []core.Action // with which the planner begins: the redo of a pending epoch
	durable    *durable      // nil without a checkpoint
	meter      *meter        // nil without a limit
	cur        *epochRun     // the running epoch
	broken     error         // a roll-back that failed
	cause      error         // why the run ends, for a listener that ends the driver

	teller    teller
	printing  sync.Mutex // one output writes at a time
	listening sync.Mutex // one listener is called at a time

	mu          sync.Mutex     // protects epoch, last, doing, and the operators' current versions
	committing  bool           // the durable commit of last is under way
	epoch       uint64         // newest committed one
	committedAt time.Time      // its batch time
	foundAt     time.Time      // that of the newest epoch that the life began with
	last        Batch          // the running one
	doing       map[string]int // outputs and listeners that run
	latest      *Progress
	ticks       core.Stats
	openedAt    time.Time           // the sources
	begun       bool                // the first life: all sources are open
	finished    bool                // nothing is remembered any more
	stopAsked   bool                // by Stop, or by the end of Run's context
	overErr     error               // set before over is closed
	events      []func(l *Listener) // what came up beside the batches and is yet to be told
	skipsTold   int                 // of events, skipped ticks
	busy        bool                // the hand has an action
	heldUntil   time.Time           // the next batch, while the clock is held; else zero
	holds       int64
}

func newRun(ssc *StreamingContext) *run {
	c := &ssc.cfg
	r := &run{
		ssc: ssc, harness: c.harness, clock: c.clock, meter: newMeter(c.memoryLimit),
		workers: c.parallelism, secret: rand.Uint64(), pools: new(rdd.Pools),
		doing: map[string]int{}, done: make(chan struct{}), late: make(chan struct{}), left: make(chan struct{}),
		over: make(chan struct{}), opened: func() {},
	}
	if r.workers == 0 {
		r.workers = runtime.GOMAXPROCS(0)
	}
	r.hard, r.abort = context.WithCancelCause(context.Background())
	r.soft, r.end = context.WithCancel(context.Background())
	r.halt, r.halts = context.WithCancel(context.Background())
	workers := r.workers
	if h := c.harness; h != nil {
		if h.Workers() > 0 {
			workers = h.Workers()
		}
		r.stateBlock = h.BlockSize()
	}
	r.exec = &executor{
		workers: workers, retries: c.taskRetries, rules: ssc.recordRules(), ioRetry: c.ioRetry,
		retryNow: c.harness != nil && c.harness.RetriesAtOnce(),
		clock:    c.clock, pools: r.pools, hard: r.hard, tally: newTally(), troubles: new(troubles),
	}
	if len(ssc.counting.byName) > 0 {
		r.exec.counting = ssc.counting
	}
	r.serial = r.exec.serial()
	if c.checkpoint.at != "" {
		r.durable = newDurable(r)
	}
	for _, n := range ssc.nodes {
		switch {
		case !n.live:
		case n.src != nil:
			n.src.pressure = c.newPressure()
			r.inputs = append(r.inputs, n.src)
		case n.op != nil:
			r.ops = append(r.ops, n)
		}
	}
	return r
}

// open makes the operators, loads their state and opens the sources, until ctx ends.
func (r *run) open(ctx context.Context) error {
	if h := r.harness; h != nil {
		var faults []*Fault
		for _, name := range h.Unused() {
			faults = append(faults, &Fault{Caller: "milltest", Call: "Input", Err: fmt.Errorf("the job has no source named %q", name)})
		}
		if len(faults) > 0 {
			return &ValidationError{Faults: faults}
		}
	}
	if err := r.begins(ctx); err != nil {
		return fmt.Errorf("dstream: start: %w", err)
	}
	if h := r.harness; h != nil {
		h.Attach(r)
	}
	return nil
}

// abandon closes what a failed start has opened.
func (r *run) abandon() error {
	_ = r.closeSources() // the start's own error says more
	if r.durable == nil {
		return nil
	}
	return r.durable.close()
}

// closeSources closes what open has opened.
func (r *run) closeSources() error {
	var errs []error
	for _, in := range r.inputs {
		if in.opened {
			in.opened = false
			err := r.do("close of source "+in.name(), in.src.Close)
			in.closes()
			if err != nil {
				errs = append(errs, fmt.Errorf("dstream: close: %w", &ReadError{Source: in.name(), Err: err}))
			}
		}
	}
	return errors.Join(errs...)
}

// retry does a piece of I/O of a source until it succeeds, its limit passes, or
// ctx ends. The error is a *ReadError.
func (r *run) retry(ctx context.Context, in *input, do func() error) error {
	var pause backoff
	for {
		err := callErr(in.name(), do)
		if err == nil {
			r.exec.troubles.passed(in.name())
			return nil
		}
		r.exec.troubles.failed(in.name(), r.clock.Now(), err)
		var read *ReadError
		if !errors.As(err, &read) {
			err = &ReadError{Source: in.name(), Err: err}
		}
		if ctx.Err() != nil || permanent(err) || !pause.wait(ctx, r.clock, r.exec.ioRetry, r.exec.retryNow) {
			return err
		}
		in.retries++
	}
}

// do runs a user's function on the driver under the name that a stop timeout
// shows.
func (r *run) do(name string, f func() error) error {
	count := func(n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.doing[name] += n; r.doing[name] == 0 {
			delete(r.doing, name)
		}
	}
	count(1)
	defer count(-1)
	return callErr(name, f)
}

// listen calls one callback of every listener.
func (r *run) listen(f func(l *Listener)) error {
	if len(r.ssc.cfg.listeners) == 0 {
		return nil
	}
	r.listening.Lock()
	defer r.listening.Unlock()
	return r.do("listener", func() error {
		for i := range r.ssc.cfg.listeners {
			f(&r.ssc.cfg.listeners[i])
		}
		return nil
	})
}

// inBackground runs f beside the batches; the run's end waits for it.
func (r *run) inBackground(f func()) { r.background.Go(f) }

// noteTicks keeps the planner's counts where others can see them.
func (r *run) noteTicks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks = r.core.Stats()
}
