// Package harness is the door by which the test kit gets into a running
// StreamingContext, so that a job runs unchanged on scripted input.
//
// A *Harness is given to one context (dstream.WithHarness). Before the start
// the kit puts its own sources in the place of the job's by name, wraps the
// outputs, and sets knobs that no user needs. While the context runs, the kit
// waits until a tick of the batch clock has been handled, and reads the newest
// committed state of an operator by its name.
//
// Types of records and states cross this package as any, once per batch and
// output, never once per record: the kit knows the type its caller asked for.
//
// It decides nothing about the run: without hooks a context with a harness
// does exactly what one without does.
package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// StateRow is one key of an operator's state, with the time of its last update
// (unix nanoseconds) and its partition.
type StateRow[K comparable, S any] struct {
	Key       K
	State     S
	Time      int64
	Partition int
}

// OutputCall is one run of one output for one batch. Name is the output's own
// name, else the name of its stream. Attempt counts from 0.
type OutputCall struct {
	Name    string
	Kind    string // "Print", "ForeachRDD", "Foreach"
	Epoch   uint64
	Time    time.Time
	Attempt int
	// Rows collects the batch's records of the stream, in order, as []T. It may
	// be called more than once: the records are kept.
	Rows func(ctx context.Context) (any, error)
	// Partitions collects them as [][]T, one slice a partition.
	Partitions func(ctx context.Context) (any, error)
	// Run runs the job's own output.
	Run func(ctx context.Context) error
}

// ReadCall is one read of one range of a source: it is made before the source
// is asked, once per attempt.
type ReadCall struct {
	Source      string
	Partition   string
	From, Until int64
	Epoch       uint64
	Attempt     int
}

// Engine is what a running context offers. Its methods may be called from any
// goroutine, between batches or while one runs; they see committed versions.
type Engine interface {
	// State gives the newest committed state of the named operator as
	// []StateRow[K, S].
	State(operator string) (any, error)
	// Sample is State of at most n keys.
	Sample(operator string, n int) (any, error)
	// Sources, Operators and Outputs list the names in registration order.
	Sources() []string
	Operators() []string
	Outputs() []string
	// Log says that the operator keeps records as they came, for a window: it is none
	// of the user's.
	Log(operator string) bool
	// ZeroTime is one interval before the first batch time.
	ZeroTime() time.Time
	// Epoch is the newest committed epoch.
	Epoch() uint64
}

// Harness carries hooks and knobs into a context and its events out of it. Use
// New; one Harness serves one context. Setters are for before the start.
type Harness struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every event
	engine  Engine
	handled int64 // greatest tick handled, unix nanoseconds
	any     bool  // a tick was handled at all
	ended   bool
	err     error

	sources   map[string]any
	used      map[string]bool
	onOutput  func(ctx context.Context, c OutputCall) error
	onRead    func(c ReadCall) error
	onPlan    func(source string, epoch uint64, attempt int) error
	workers   int
	blockSize int
	retryNow  bool
	inline    bool
	sinks     bool
}

// New makes a harness without hooks.
func New() *Harness {
	return &Harness{changed: make(chan struct{}), sources: map[string]any{}, used: map[string]bool{}}
}

// ReplaceSource puts src, a source.Source of the stream's own record type, in
// the place of the source of that name. A name that no source has, or a source
// of another type, is a fault that the context's start reports.
func (h *Harness) ReplaceSource(name string, src any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources[name] = src
}

// OnOutput sets a hook that is called in the place of every output. It may call
// c.Run, collect c.Rows, or return an injected error.
func (h *Harness) OnOutput(f func(ctx context.Context, c OutputCall) error) { h.onOutput = f }

// OnRead sets a hook that is called before every read of a range; its error is
// the read's error. It is called on worker goroutines.
func (h *Harness) OnRead(f func(c ReadCall) error) { h.onRead = f }

// OnPlan sets a hook that is called before a source is asked for its plan; its
// error is the plan's error.
func (h *Harness) OnPlan(f func(source string, epoch uint64, attempt int) error) { h.onPlan = f }

// SetWorkers overrides the number of workers (0 leaves it).
func (h *Harness) SetWorkers(n int) { h.workers = n }

// SetBlockSize overrides how many records a stateful operator looks up together:
// 1 to 64 (0 leaves it). It makes no difference to the result.
func (h *Harness) SetBlockSize(n int) { h.blockSize = n }

// RetryAtOnce makes retries of I/O not wait: with a manual clock nobody would
// wake them.
func (h *Harness) RetryAtOnce() { h.retryNow = true }

// MaintainInline makes the maintenance of a checkpoint happen after each commit
// and not beside the batches, so that every run makes the same calls in the same
// order.
func (h *Harness) MaintainInline() { h.inline = true }

// CaptureSinks leaves exactly-once sinks alone: their outputs run through the hook
// of OnOutput and nothing else.
func (h *Harness) CaptureSinks() { h.sinks = true }

// CapturesSinks says whether it does. For the engine.
func (h *Harness) CapturesSinks() bool { return h.sinks }

// MaintainsInline says whether it shall. For the engine.
func (h *Harness) MaintainsInline() bool { return h.inline }

// Source gives the replacement of a named source and notes that it was used.
// For the engine.
func (h *Harness) Source(name string) (any, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sources[name]
	if ok {
		h.used[name] = true
	}
	return s, ok
}

// Unused lists replacements that no source asked for. For the engine.
func (h *Harness) Unused() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name := range h.sources {
		if !h.used[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Workers, BlockSize and RetriesAtOnce give the knobs. For the engine.
func (h *Harness) Workers() int { return h.workers }

// BlockSize is the records of a lookup block, 0 if not set.
func (h *Harness) BlockSize() int { return h.blockSize }

// RetriesAtOnce says whether retries shall not wait.
func (h *Harness) RetriesAtOnce() bool { return h.retryNow }

// Output runs one output through the hook. For the engine.
func (h *Harness) Output(ctx context.Context, c OutputCall) error {
	if h.onOutput == nil {
		return c.Run(ctx)
	}
	return h.onOutput(ctx, c)
}

// Read asks the hook before a read. For the engine.
func (h *Harness) Read(c ReadCall) error {
	if h.onRead == nil {
		return nil
	}
	return h.onRead(c)
}

// Plan asks the hook before a plan. For the engine.
func (h *Harness) Plan(source string, epoch uint64, attempt int) error {
	if h.onPlan == nil {
		return nil
	}
	return h.onPlan(source, epoch, attempt)
}

// Attach tells that the context has started. For the engine.
func (h *Harness) Attach(e Engine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engine = e
	h.broadcast()
}

// TickHandled tells that the tick of batch time t (unix nanoseconds) needs
// nothing more: its epoch is committed, or it was skipped. For the engine.
func (h *Harness) TickHandled(t int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.any || t > h.handled {
		h.handled, h.any = t, true
	}
	h.broadcast()
}

// Ended tells that the run is over. For the engine.
func (h *Harness) Ended(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended, h.err = true, err
	h.broadcast()
}

// broadcast wakes all waiters; mu is held.
func (h *Harness) broadcast() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Engine gives the running context, nil before its start.
func (h *Harness) Engine() Engine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.engine
}

// Result says whether the run is over and with what error.
func (h *Harness) Result() (ended bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended, h.err
}

// WaitStarted waits until the context has started, or its run is over.
func (h *Harness) WaitStarted(ctx context.Context) error {
	return h.wait(ctx, "the start", func() bool { return h.engine != nil })
}

// WaitTick waits until the tick of batch time t has been handled. It returns
// *EndedError, wrapping the run's error, if the run ended before that.
func (h *Harness) WaitTick(ctx context.Context, t time.Time) error {
	at := t.UnixNano()
	return h.wait(ctx, "the batch of "+t.UTC().Format(time.RFC3339Nano),
		func() bool { return h.any && h.handled >= at })
}

// EndedError says that the run ended while someone waited for it.
type EndedError struct {
	Waited string // what was waited for
	Err    error  // the run's error, nil for a clean end
}

func (e *EndedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("harness: the run ended before %s", e.Waited)
	}
	return fmt.Sprintf("harness: the run ended before %s: %v", e.Waited, e.Err)
}

// Unwrap gives the run's error.
func (e *EndedError) Unwrap() error { return e.Err }

func (h *Harness) wait(ctx context.Context, what string, ok func() bool) error {
	for {
		h.mu.Lock()
		done, ended, err, changed := ok(), h.ended, h.err, h.changed
		h.mu.Unlock()
		switch {
		case done:
			return nil
		case ended:
			return &EndedError{Waited: what, Err: err}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("harness: waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}
