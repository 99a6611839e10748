package dstream

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/rates"
	"github.com/statemill/statemill/internal/sabotage"
)

// Clock is the time that a context lives by: the system's, or a test's.
type Clock = clock.Clock

// ContextOption sets something of a StreamingContext. Faults of options are
// reported together with those of the graph, by Validate, Start and Run.
type ContextOption func(*config)

// Unlimited says in words that WithMaxRecordsPerBatch, WithMaxBytesPerBatch or
// WithMaxLag shall set no limit.
const Unlimited int64 = -1

// The defaults of options.
const (
	defaultMaxQueued   = 2
	defaultStopBatches = 10 // stop timeout in intervals
	leastStopTimeout   = time.Second
	defaultIORetry     = 30 * time.Second
)

type config struct {
	interval          time.Duration
	parallelism       int // 0: GOMAXPROCS at the start
	out               io.Writer
	listeners         []Listener
	taskRetries       int
	policy            RecordPolicy
	policySet         bool
	maxBad            *maxBad       // nil: no limit
	maxRecords        int64         // 0: no limit
	maxBytes          int64         // 0: no limit
	maxDelay          time.Duration // 0: see greatestDelay
	maxLag            int64         // 0: no limit
	maxRate           float64
	backpressure      *rates.Config // nil: none
	initialRate       float64
	initialRateAt     string // line of WithInitialRate, "": not given
	concurrentOutputs int
	maxQueued         int
	stopTimeout       time.Duration // 0: defaultStopTimeout
	remember          time.Duration
	stopWhenDone      bool
	checkpoint        checkpointConfig
	ioRetry           time.Duration
	memoryLimit       int64 // 0: none
	clock             clock.Clock
	harness           *harness.Harness
	faults            []*Fault
}

func (c *config) fault(caller, call string, err error) {
	c.faults = append(c.faults, &Fault{Caller: caller, Call: call, Err: err})
}

// option makes a ContextOption that remembers the line of its call.
func option(call string, set func(*config) error) ContextOption {
	at := caller()
	return func(c *config) {
		if err := set(c); err != nil {
			c.fault(at, "dstream."+call, err)
		}
	}
}

// WithParallelism sets the number of workers, and of partitions where none was
// given. Default: GOMAXPROCS.
func WithParallelism(n int) ContextOption {
	return option("WithParallelism", func(c *config) error {
		c.parallelism = n
		return atLeastOne(n, "the parallelism")
	})
}

// WithOutput sets where Print writes. Default: the process's standard output.
// Writes come from one goroutine at a time.
func WithOutput(w io.Writer) ContextOption {
	return option("WithOutput", func(c *config) error {
		c.out = w
		if w == nil {
			return errors.New("the writer is nil: use io.Discard to print nothing")
		}
		return nil
	})
}

// WithListener adds callbacks. It may be given more than once.
func WithListener(l Listener) ContextOption {
	return option("WithListener", func(c *config) error { c.listeners = append(c.listeners, l); return nil })
}

// WithTaskRetries lets a partition whose function failed, and an output that
// failed, run n more times before the batch fails. Default 0, at most 100.
func WithTaskRetries(n int) ContextOption {
	return option("WithTaskRetries", func(c *config) error {
		c.taskRetries = n
		if n < 0 || n > 100 {
			return fmt.Errorf("%d task retries: want 0 to 100", n)
		}
		return nil
	})
}

// WithMaxRecordsPerBatch caps the records that a batch takes from each source,
// from the first batch on; they are shared by lag and no partition starves.
// Default Unlimited. 0 is refused: say Unlimited.
func WithMaxRecordsPerBatch(n int64) ContextOption {
	return option("WithMaxRecordsPerBatch", func(c *config) error {
		switch {
		case n == Unlimited:
			c.maxRecords = 0
		case n < 1:
			return fmt.Errorf("%d records per batch: want at least 1, or dstream.Unlimited", n)
		default:
			c.maxRecords = n
		}
		return nil
	})
}

// WithMaxRatePerPartition caps the records per second that a batch takes from
// each partition of a source: rate × interval, rounded down. A rate that gives
// less than one record per batch, or is more than 1e15, is refused. Default: no
// limit.
func WithMaxRatePerPartition(recordsPerSecond float64) ContextOption {
	return option("WithMaxRatePerPartition", func(c *config) error {
		c.maxRate = recordsPerSecond
		if !(recordsPerSecond > 0) || recordsPerSecond > 1e15 {
			return fmt.Errorf("%v records per second: want more than 0, at most 1e15; leave the option out for no limit", recordsPerSecond)
		}
		if c.interval > 0 && c.perPartition() < 1 {
			return fmt.Errorf("%v records per second are less than one record per interval of %v: want at least %v",
				recordsPerSecond, c.interval, 1/c.interval.Seconds())
		}
		return nil
	})
}

// perPartition is the limit of records per batch and source partition, 0: none.
// A great rate times a long interval may be more than an int64 holds.
func (c *config) perPartition() int64 {
	if sabotage.On("rate-is-per-batch") {
		return int64(c.maxRate)
	}
	return int64(min(rates.Records(c.maxRate, c.interval), 1<<62))
}

// WithMaxQueuedBatches sets how many ticks may wait while a batch runs; later
// ones are skipped and counted. Default 2, at least 1.
func WithMaxQueuedBatches(n int) ContextOption {
	return option("WithMaxQueuedBatches", func(c *config) error {
		c.maxQueued = n
		return atLeastOne(n, "the number of queued batches")
	})
}

// defaultStopTimeout is ten intervals. With an interval of few milliseconds that
// would abort an ordinary batch in every stop, so it is at least a second.
func defaultStopTimeout(interval time.Duration) time.Duration {
	if interval > math.MaxInt64/defaultStopBatches {
		return math.MaxInt64
	}
	return max(leastStopTimeout, defaultStopBatches*interval)
}

// WithStopTimeout sets how long a stop waits for the running batch before it
// aborts it, and how long the error of a failed batch waits for sources and sinks to be
// closed before Run and Wait return it. Default: ten intervals, but at least one second.
func WithStopTimeout(d time.Duration) ContextOption {
	return option("WithStopTimeout", func(c *config) error {
		c.stopTimeout = d
		return positive(d, "the stop timeout")
	})
}

// WithRemember keeps the data of every kept stream for at least d, for Slice.
// Default: one interval.
func WithRemember(d time.Duration) ContextOption {
	return option("WithRemember", func(c *config) error {
		c.remember = d
		return positive(d, "the remember duration")
	})
}

// WithStopWhenDone ends the run, without an error, after the batch in which
// every source has said that it will give nothing more. Sources that never end
// make it a fault.
func WithStopWhenDone() ContextOption {
	return option("WithStopWhenDone", func(c *config) error { c.stopWhenDone = true; return nil })
}

// WithIORetry sets how long a failing plan, read or commit of a source is tried
// again, with growing pauses, before the batch fails; 0 does not retry.
// Default 30 s.
func WithIORetry(d time.Duration) ContextOption {
	return option("WithIORetry", func(c *config) error {
		c.ioRetry = d
		if d < 0 {
			return fmt.Errorf("the limit of I/O retries is %v: want 0 or more", d)
		}
		return nil
	})
}

// WithClock makes the context live by another clock, for tests and simulation.
// Default: the system's.
func WithClock(k Clock) ContextOption {
	return option("WithClock", func(c *config) error {
		c.clock = k
		if k == nil {
			return errors.New("the clock is nil")
		}
		return nil
	})
}

// WithHarness lets a test kit into the context; it is for package milltest.
func WithHarness(h *harness.Harness) ContextOption {
	return option("WithHarness", func(c *config) error {
		c.harness = h
		if h == nil {
			return errors.New("the harness is nil")
		}
		return nil
	})
}

func atLeastOne(n int, what string) error {
	if n < 1 {
		return fmt.Errorf("%s is %d: want at least 1", what, n)
	}
	return nil
}

func positive(d time.Duration, what string) error {
	if d <= 0 {
		return fmt.Errorf("%s is %v: want more than 0", what, d)
	}
	return nil
}
