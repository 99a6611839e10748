package dstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// Job builds a graph on a context. It is a value: the same job can run in any
// number of contexts, and in the test kit.
type Job func(ssc *StreamingContext) error

// state is the life of a context; it only goes forward.
type state int

const (
	initialized state = iota
	active
	stopped
)

// StreamingContext is not a context.Context: it is one graph of streams, and
// its run. It is called ssc by convention. A context runs once. Operators are
// added from one goroutine before the start; the other methods may be called
// from any goroutine.
type StreamingContext struct {
	mu       sync.Mutex // protects what follows, until the start freezes the graph
	cfg      config
	nodes    []*node
	outputs  []*output
	faults   []*Fault
	state    state
	run      *run // set by Start
	counting *counting
	doneErr  error
}

// NewStreamingContext makes an empty context with the given batch interval,
// which must be more than 0. Wrong options are reported by Validate, Start and
// Run.
func NewStreamingContext(interval time.Duration, opts ...ContextOption) *StreamingContext {
	ssc := &StreamingContext{counting: newCounting(), cfg: config{
		interval:          interval,
		out:               vfs.Stdout(),
		maxQueued:         defaultMaxQueued,
		concurrentOutputs: 1,
		ioRetry:           defaultIORetry,
		clock:             clock.System(),
	}}
	if interval <= 0 {
		ssc.cfg.fault(caller(), "dstream.NewStreamingContext",
			fmt.Errorf("the batch interval is %v: want more than 0", interval))
	}
	for i, o := range opts {
		if o == nil {
			ssc.cfg.fault(caller(), "dstream.NewStreamingContext", fmt.Errorf("option %d is nil", i))
			continue
		}
		o(&ssc.cfg)
	}
	return ssc
}

// New is NewStreamingContext.
func New(interval time.Duration, opts ...ContextOption) *StreamingContext {
	return NewStreamingContext(interval, opts...)
}

// Run makes a context, lets the job build its graph, and runs it until ctx is
// cancelled or the run ends by itself. See StreamingContext.Run.
func Run(ctx context.Context, interval time.Duration, job Job, opts ...ContextOption) error {
	ssc := NewStreamingContext(interval, opts...)
	if job == nil {
		ssc.cfg.fault(caller(), "dstream.Run", errors.New("the job is nil"))
	} else if err := ssc.build(job); err != nil {
		return err
	}
	return ssc.Run(ctx)
}

// build runs the job's function. An output of a nil stream panics with its
// *Fault, as it knows no context; here it becomes a fault like any other.
func (ssc *StreamingContext) build(job Job) (err error) {
	defer func() {
		v := recover()
		if f, ok := v.(*Fault); ok {
			ssc.cfg.faults = append(ssc.cfg.faults, f)
		} else if v != nil {
			panic(v)
		}
	}()
	return job(ssc)
}

// Interval is the batch interval.
func (ssc *StreamingContext) Interval() time.Duration { return ssc.cfg.interval }

// addFault notes a fault of the call that made n; mu is held.
func (ssc *StreamingContext) addFault(n *node, err error) {
	ssc.faults = append(ssc.faults, &Fault{Caller: n.caller, Call: "dstream." + n.kind, Err: err})
}

// addable says whether the graph may still grow; mu is held.
func (ssc *StreamingContext) addable() error {
	if err := ssc.late(); err != nil {
		return fmt.Errorf("adding inputs, transformations and outputs is not possible: %w", err)
	}
	return nil
}

// late is what forbids changes of the graph, nil before the start; mu is held.
func (ssc *StreamingContext) late() error {
	switch ssc.state {
	case active:
		return ErrStarted
	case stopped:
		return ErrStopped
	}
	return nil
}

// lateFault notes a call that changes the graph too late, once a line of code
// (it may stand in a function that is called for every record), and ends the run:
// going on would hide that the call does nothing. mu is held.
func (ssc *StreamingContext) lateFault(at, call string, err error) {
	f := &Fault{Caller: at, Call: "dstream." + call, Err: err}
	if !slices.ContainsFunc(ssc.faults, func(g *Fault) bool { return g.Caller == f.Caller && g.Call == f.Call }) {
		ssc.faults = append(ssc.faults, f)
	}
	if ssc.run != nil {
		ssc.run.requestStop()
	}
}

// Validate reports everything that is wrong with the options and the graph as
// one *ValidationError, or nil. It may be called at any time.
func (ssc *StreamingContext) Validate() error {
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	return ssc.validate(caller())
}

// validate gathers the faults; mu is held.
func (ssc *StreamingContext) validate(at string) error {
	faults := append(append([]*Fault(nil), ssc.cfg.faults...), ssc.faults...)
	if !slices.ContainsFunc(ssc.outputs, func(o *output) bool { return !o.letters }) {
		faults = append(faults, &Fault{Caller: at, Call: "dstream.StreamingContext", Err: ErrNoOutputs})
	}
	if ssc.state == initialized { // later the run reads the names
		ssc.nameHidden() // their names must differ, too
	}
	faults = append(faults, ssc.duplicateNames()...)
	faults = append(faults, ssc.checkpointFaults()...)
	faults = append(faults, ssc.sinkFaults()...)
	faults = append(faults, ssc.settingFaults()...)
	faults = append(faults, ssc.clashFaults()...)
	faults = append(faults, ssc.recordFaults()...)
	faults = append(faults, ssc.endFaults(at)...)
	faults = append(faults, ssc.rateFaults()...)
	faults = append(faults, ssc.sourceFaults()...)
	if len(faults) == 0 {
		return nil
	}
	return &ValidationError{Faults: faults}
}

// duplicateNames finds names that two sources, or two stateful operators, or
// outputs of two streams share: the test kit, and later the checkpoint, find
// them by name.
func (ssc *StreamingContext) duplicateNames() (faults []*Fault) {
	first := map[string]string{}
	clash := func(what, name, at, call string) {
		if name == "" {
			return
		}
		key := what + name
		if before, ok := first[key]; ok {
			faults = append(faults, &Fault{Caller: at, Call: "dstream." + call,
				Err: fmt.Errorf("two %s are named %q: the other one is at %s", what, name, before)})
			return
		}
		first[key] = at
	}
	for _, n := range ssc.nodes {
		switch {
		case n.src != nil:
			clash("sources", n.name, n.caller, n.kind)
		case n.op != nil:
			clash("stateful operators", n.name, n.caller, n.kind)
		}
	}
	goesBy := map[string]*output{}
	for _, o := range ssc.outputs {
		if o.name != "" {
			clash("outputs", o.name, o.caller, o.kind)
		}
		// Unnamed outputs go by their stream's name. Two of one stream may share it:
		// they have the same records.
		other := goesBy[o.label()]
		if goesBy[o.label()] = o; other != nil && other.node != o.node && (o.name == "" || other.name == "") {
			faults = append(faults, &Fault{Caller: o.caller, Call: "dstream." + o.kind,
				Err: fmt.Errorf("two outputs of different streams go by the name %q: the other one is at %s; use dstream.Name", o.label(), other.caller)})
		}
	}
	return faults
}

// endFaults refuses WithStopWhenDone over sources that never end.
func (ssc *StreamingContext) endFaults(at string) (faults []*Fault) {
	if !ssc.cfg.stopWhenDone {
		return nil
	}
	for _, n := range ssc.nodes {
		if n.src != nil && !n.src.bounded() {
			faults = append(faults, &Fault{Caller: n.caller, Call: "dstream." + n.kind,
				Err: fmt.Errorf("WithStopWhenDone is set, and the source %q never ends", n.label())})
		}
	}
	return faults
}

// Start validates the job, opens its sources and starts its run on goroutines
// of its own. It returns when the run has begun; Wait waits for its end. A
// start that fails stops the context. A Stop meanwhile ends the opening: then nothing
// has run, Start returns ErrStopped as after a Stop before it, and Stop and Wait return nil.
func (ssc *StreamingContext) Start() error {
	runs, err := ssc.start(context.Background(), caller())
	if err == nil && !runs {
		return fmt.Errorf("dstream: start: %w", ErrStopped)
	}
	return err
}

// start is false without an error if it was stopped, or ctx ended, before the run began.
func (ssc *StreamingContext) start(ctx context.Context, at string) (runs bool, err error) {
	ssc.mu.Lock()
	switch ssc.state {
	case active:
		ssc.mu.Unlock()
		return false, fmt.Errorf("dstream: start: %w", ErrStarted)
	case stopped:
		ssc.mu.Unlock()
		return false, fmt.Errorf("dstream: start: %w", ErrStopped)
	}
	if err := ssc.validate(at); err != nil {
		ssc.state = stopped
		ssc.mu.Unlock()
		return false, err
	}
	ssc.state = active
	ssc.freeze()
	r := newRun(ssc)
	ssc.run = r
	ssc.mu.Unlock()
	// A stop ends the opening: nothing runs yet that is to be finished.
	opening, cancel := context.WithCancel(ctx)
	r.opened = cancel
	unhook := context.AfterFunc(r.soft, func() {
		if !sabotage.On("stop-waits-for-opening") {
			cancel()
		}
	})
	err = r.open(opening)
	unhook()
	if err != nil {
		err = errors.Join(err, r.abandon())
		if opening.Err() != nil && (errors.Is(err, opening.Err()) || errors.Is(err, context.Cause(opening))) {
			err = nil // it was stopped before the first batch
		}
		cancel()
		ssc.ended(err)
		close(r.done)
		return false, err
	}
	go r.drive()
	return true, nil
}

// ended notes the end of the run.
func (ssc *StreamingContext) ended(err error) {
	ssc.mu.Lock()
	ssc.state = stopped
	ssc.doneErr = err
	h := ssc.cfg.harness
	ssc.mu.Unlock()
	if h != nil {
		h.Ended(ssc.result())
	}
}

// Run starts the context and runs until ctx is cancelled, a stop is asked for,
// the sources are done (WithStopWhenDone), or a batch fails.
//
// Cancelling ctx is no error: the running batch is finished and committed, no
// further batch begins, and Run returns nil. If the batch does not end within
// WithStopTimeout it is aborted and Run returns a *StopTimeoutError. A Stop after that is
// the second signal, and aborts the batch at once.
//
// When a batch has failed and what is to be closed then hangs, Run returns after the stop
// timeout, too: with a *StopTimeoutError that names it and unwraps to the batch's error.
func (ssc *StreamingContext) Run(ctx context.Context) error {
	if runs, err := ssc.start(ctx, caller()); !runs {
		return err
	}
	r := ssc.run
	if err, ended := r.wait(ctx); ended {
		return err
	}
	r.askStop() // after a Stop it is no second one: the end of a context is one signal with it
	return r.stop(context.Background(), false)
}

// Stop ends the run: the running batch is finished and committed, then all
// sources are closed. It returns when that is done, with the run's error. When
// ctx ends first, or WithStopTimeout passes, the batch is aborted and Stop
// returns a *StopTimeoutError.
//
// A second Stop is the second signal: it aborts the running batch at once, and both
// return. So is a first one after the context of Run has ended; the end of that context
// while a Stop waits is not. Of two goroutines that stop a context together the later one
// aborts: to wait for the end as well, use Wait.
//
// Stopping a context that never ran is no error. One that has ended is not changed: Stop
// returns the run's error again, nil if it ended well. It must not be called from a
// function that the run itself calls (ErrInside).
func (ssc *StreamingContext) Stop(ctx context.Context) error {
	if inside() {
		return errInside("Stop")
	}
	ssc.mu.Lock()
	r := ssc.run
	if r == nil {
		ssc.state = stopped
		ssc.mu.Unlock()
		return nil
	}
	ssc.mu.Unlock()
	return r.stop(ctx, r.askStop())
}

// Wait waits until the run has ended and returns its error. When a stop has
// given up waiting for user code that does not return, Wait returns with that
// stop's *StopTimeoutError; and so it does after a failed batch, when what is to be closed
// has not ended within the stop timeout (see Run).
func (ssc *StreamingContext) Wait() error {
	if inside() {
		return errInside("Wait")
	}
	ssc.mu.Lock()
	r := ssc.run
	ssc.mu.Unlock()
	if r == nil {
		return fmt.Errorf("dstream: wait: %w", ErrNotStarted)
	}
	err, _ := r.wait(context.Background())
	return err
}

// result is the run's error: a late addition to the graph counts as one.
func (ssc *StreamingContext) result() error {
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	if ssc.doneErr == nil && len(ssc.faults) > 0 {
		return &ValidationError{Faults: ssc.faults}
	}
	return ssc.doneErr
}

// LastProgress is what the newest committed batch did, and whether the next one
// waits for the clock; false before the first batch.
func (ssc *StreamingContext) LastProgress() (Progress, bool) {
	ssc.mu.Lock()
	r := ssc.run
	ssc.mu.Unlock()
	if r == nil {
		return Progress{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest == nil {
		return Progress{}, false
	}
	p := *r.latest
	p.HeldUntil, p.ClockHolds = r.heldUntil, r.holds
	return p, true
}
