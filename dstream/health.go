package dstream

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// The classes of what Healthy reports, beside ErrNotReady.
var (
	// ErrStalled: a source says that something is wrong with it, such as a partition
	// whose broker does not answer.
	ErrStalled = errors.New("a source is stalled")
	// ErrFailing: something of the running batch fails and is tried again.
	ErrFailing = errors.New("the batch fails")
	// ErrBehind: the run is further behind than WithMaxDelay or WithMaxLag allow.
	ErrBehind = errors.New("the run is behind")
	// ErrHeld: the clock was set back, and no batch begins until it has passed the last
	// batch time (Listener.ClockHeld).
	ErrHeld = errors.New("the clock is held")
)

// The least delay that counts as being behind, where WithMaxDelay was not given.
const (
	defaultDelayBatches = 10
	leastMaxDelay       = time.Minute
)

// WithMaxDelay sets how long a batch may wait for its end, from the time at which it
// was due, before Healthy says that the run is behind. More than 0. Default: ten
// intervals, but at least one minute. It stops nothing.
func WithMaxDelay(d time.Duration) ContextOption {
	return option("WithMaxDelay", func(c *config) error {
		c.maxDelay = d
		return positive(d, "the greatest delay")
	})
}

// WithMaxLag sets how many records (offsets) may wait in a source before Healthy says
// that the run is behind. At least 1, or Unlimited, which is the default. It stops
// nothing. Only sources that report are looked at (source.Reporter).
func WithMaxLag(n int64) ContextOption {
	return option("WithMaxLag", func(c *config) error {
		switch {
		case n == Unlimited:
			c.maxLag = 0
		case n < 1:
			return fmt.Errorf("the greatest lag is %d: want at least 1, or dstream.Unlimited", n)
		default:
			c.maxLag = n
		}
		return nil
	})
}

// Health is how a context is now: one look at what a page, a probe, or a log may want
// to show. It belongs to the caller.
type Health struct {
	// NotReady is what ReadyErr says, or the error that ended the run or by which it ends;
	// nil while it runs.
	NotReady error
	// Failing is what fails and is being tried again, by name.
	Failing []Failing
	// Batch is the batch that is due, or running, and has not been committed; its
	// Epoch is 0 if there is none. One that only waits has no epoch yet, and not this
	// time but that of the oldest one is told.
	Batch Batch
	// Delay is for how long that batch has been due, of this run's time; MaxDelay what
	// is allowed.
	Delay, MaxDelay time.Duration
	// Sources are the sources, in the order in which they were made.
	Sources []SourceHealth
	// MaxLag is how many records may wait in one source, 0 without a limit.
	MaxLag int64
	// HeldUntil is the time that the clock must reach for the next batch, while batches
	// wait because it was set back; else zero. Now is what the clock shows.
	HeldUntil, Now time.Time
}

// SourceHealth is how one source is.
type SourceHealth struct {
	Name string
	Open bool
	// Reports says that the source tells of itself; else Report is empty.
	Reports bool
	source.Report
}

// Lag is how many records (offsets) wait in all partitions.
func (h *SourceHealth) Lag() int64 { return lagOf(h.Report) }

// Failing is a piece of work that fails and is being tried again.
type Failing struct {
	What  string    // a source, a stage's partition, an output, or "checkpoint"
	Since time.Time // of the first failure in a row
	Tries int       // failures in a row
	Err   error     // of the last one
}

// HealthError says why a context is not healthy. errors.Is finds the classes
// ErrNotReady, ErrStalled, ErrFailing, ErrBehind and ErrHeld.
type HealthError struct {
	// Reasons are all reasons, each with its name in the text.
	Reasons []error
}

// Error tells all reasons.
func (e *HealthError) Error() string {
	texts := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		texts[i] = r.Error()
	}
	return "dstream: not healthy: " + strings.Join(texts, "; ")
}

// Unwrap gives the reasons.
func (e *HealthError) Unwrap() []error { return e.Reasons }

// Err is nil if all is well, else a *HealthError.
func (h Health) Err() error {
	var e HealthError
	add := func(class error, format string, args ...any) {
		e.Reasons = append(e.Reasons, &reason{class, fmt.Sprintf(format, args...)})
	}
	if h.NotReady != nil {
		e.Reasons = append(e.Reasons, h.NotReady)
	}
	for _, f := range h.Failing {
		add(ErrFailing, "%s has failed %d times since %s and is tried again: %v", f.What, f.Tries, f.Since.UTC().Format(time.RFC3339), f.Err)
	}
	for i := range h.Sources {
		s := &h.Sources[i]
		for _, w := range s.Warnings {
			add(ErrStalled, "source %q: %s", s.Name, w)
		}
		if lag := s.Lag(); h.MaxLag > 0 && lag > h.MaxLag {
			add(ErrBehind, "source %q: %d records wait, more than %d", s.Name, lag, h.MaxLag)
		}
	}
	if h.MaxDelay > 0 && h.Delay > h.MaxDelay {
		what := "the next batch"
		if h.Batch.Epoch > 0 {
			what = fmt.Sprintf("batch %d", h.Batch.Epoch)
		}
		add(ErrBehind, "%s of %s has been due for %v, more than %v", what, h.Batch.Time.Format(time.RFC3339), h.Delay, h.MaxDelay)
	}
	if h.Now.Before(h.HeldUntil) && !sabotage.On("hold-is-healthy") {
		add(ErrHeld, "the clock was set back: it shows %s, and no batch begins before %s, in %v",
			h.Now.Format(time.RFC3339), h.HeldUntil.Format(time.RFC3339), h.HeldUntil.Sub(h.Now))
	}
	if len(e.Reasons) == 0 {
		return nil
	}
	return &e
}

// reason is one of a HealthError's.
type reason struct {
	class error
	text  string
}

// Error is the reason's text.
func (r *reason) Error() string { return r.text }

// Unwrap gives the class.
func (r *reason) Unwrap() error { return r.class }

// Healthy is nil while the context runs, nothing of its batch fails, its sources move,
// it is not too far behind (WithMaxDelay, WithMaxLag), and its clock goes on; else it is
// a *HealthError that names what is wrong. It asks nobody and does not wait: it is made for a probe.
//
//	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
//		if err := ssc.Healthy(); err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//		}
//	})
//
// What is wrong may pass by itself, and often does: let a supervisor look several times
// before it restarts anything.
func (ssc *StreamingContext) Healthy() error { return ssc.Health().Err() }

// Health tells how the context is now. It may be called from any goroutine, also from
// listeners.
func (ssc *StreamingContext) Health() Health {
	h := Health{NotReady: ssc.ReadyErr(), MaxLag: ssc.cfg.maxLag, MaxDelay: ssc.cfg.greatestDelay()}
	ssc.mu.Lock()
	r, ended, state := ssc.run, ssc.doneErr, ssc.state
	ssc.mu.Unlock()
	if h.NotReady != nil && ended != nil {
		h.NotReady = fmt.Errorf("%w: %w", h.NotReady, ended)
	}
	if r == nil {
		return h
	}
	if state != stopped && r.ending() == nil { // then nothing is tried again
		h.Failing = r.exec.troubles.all()
	}
	for _, in := range r.inputs {
		s := SourceHealth{Name: in.name(), Open: in.isOpen()}
		if s.Open {
			s.Report, s.Reports = in.ask()
		} else if h.NotReady == nil {
			h.NotReady = fmt.Errorf("%w: source %q is not open", ErrNotReady, s.Name)
		}
		h.Sources = append(h.Sources, s)
	}
	if h.NotReady == nil {
		h.Batch, h.Delay = r.due()
		h.Now, h.HeldUntil = r.clock.Now().UTC(), r.held()
	}
	return h
}

// greatestDelay is WithMaxDelay or its default.
func (c *config) greatestDelay() time.Duration {
	switch {
	case c.maxDelay > 0:
		return c.maxDelay
	case c.interval > math.MaxInt64/defaultDelayBatches:
		return math.MaxInt64
	}
	return max(leastMaxDelay, defaultDelayBatches*c.interval)
}

// due is the oldest batch that is due and not committed, and for how long: counted from
// when the sources were opened, as what was due before is no delay of this run.
func (r *run) due() (b Batch, delay time.Duration) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last.Epoch > r.epoch:
		b = r.last
	case r.ticks.Queued > 0:
		b.Time = r.committedAt.Add(r.ssc.cfg.interval)
	default:
		return b, 0
	}
	since := b.Time
	if since.Before(r.openedAt) {
		since = r.openedAt
	}
	return b, max(0, now.Sub(since))
}

// troubles keeps what fails and is tried again. It is shared by whoever tries.
type troubles struct {
	mu    sync.Mutex
	found map[string]Failing
}

// failed notes that a piece of work has failed.
func (t *troubles) failed(what string, now time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := t.found[what]
	if !ok {
		f = Failing{What: what, Since: now}
	}
	f.Tries, f.Err = f.Tries+1, err
	if t.found == nil {
		t.found = map[string]Failing{}
	}
	t.found[what] = f
}

// passed notes that it has succeeded.
func (t *troubles) passed(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.found, what)
}

// forget forgets all: a batch begins, or has been committed.
func (t *troubles) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = nil
}

func (t *troubles) all() (out []Failing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.found {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Failing) int { return cmp.Compare(a.What, b.What) })
	return out
}
