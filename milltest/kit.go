package milltest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
)

// patience is how long a kit waits for a batch before it calls the run hung.
// It is real time, and inside a synctest bubble the bubble's time: there a run
// in which nothing can happen any more is found at once.
const patience = 2 * time.Minute

// Kit runs one job under a test. Its methods belong to the test's goroutine;
// the job runs on its own.
type Kit struct {
	t        testing.TB
	interval time.Duration
	job      dstream.Job
	opts     []dstream.ContextOption
	h        *harness.Harness
	clock    *clock.Manual

	ssc     *dstream.StreamingContext
	started bool
	zero    time.Time // one interval before the first batch
	due     time.Time // batch time of the newest tick that the clock was moved to
	waitFor time.Duration

	startErr error // the job, its validation or its start failed
	stopped  bool
	pins     pins
	durable  durable

	mu      sync.Mutex // protects what the run's goroutines write too
	errSeen bool
	// generation counts runs: what an older one still writes after its crash is
	// not captured.
	generation int
	progress   []dstream.Progress
	outputs    map[string]*captured
}

// New makes a kit for job at the given batch interval. The job's function runs
// and the stream starts at the first [Kit.Tick], so inputs and faults are set
// up before it. opts are the job's own context options; the kit adds its clock
// and its hooks. The run is stopped at the end of the test.
func New(t testing.TB, interval time.Duration, job dstream.Job, opts ...dstream.ContextOption) *Kit {
	t.Helper()
	k := &Kit{
		t: t, interval: interval, job: job, opts: opts,
		clock:   clock.NewManual(time.Unix(0, 0).UTC()),
		waitFor: patience,
		outputs: map[string]*captured{},
		durable: durable{sources: map[string]any{}},
		pins:    pins{looked: map[string]int{}, warned: map[string]bool{}},
	}
	k.newHarness()
	t.Cleanup(k.cleanup)
	return k
}

// StartAt sets the clock before the first tick, also that of a run after
// [Kit.Restart] or [Kit.Crash]: time passes while nothing runs. Batch times lie on the grid of
// the interval: the first is the first multiple of it after t.
func (k *Kit) StartAt(t time.Time) {
	k.t.Helper()
	k.mustNotRun("StartAt")
	k.clock.Set(t.UTC())
}

// Patience sets how long a tick may take before the test fails as hung
// (default two minutes of real time).
func (k *Kit) Patience(d time.Duration) { k.waitFor = d }

// Workers overrides the number of worker goroutines, before the first tick. The
// results and their order do not depend on it.
func (k *Kit) Workers(n int) {
	k.t.Helper()
	k.mustNotRun("Workers")
	k.durable.workers = n
	k.h.SetWorkers(n)
}

// BlockSize overrides the rows of a shuffle block, before the first tick. The
// results and their order do not depend on it.
func (k *Kit) BlockSize(n int) {
	k.t.Helper()
	k.mustNotRun("BlockSize")
	k.durable.block = n
	k.h.SetBlockSize(n)
}

// Now is the time of the kit's clock, in UTC.
func (k *Kit) Now() time.Time { return k.clock.Now().UTC() }

// Start builds and starts the job, if that has not happened yet, and returns
// the error of it: the job's own, a fault of the graph, or of a name that is in
// neither. Tick and Advance start the job too; Start is for tests of the start.
func (k *Kit) Start() error {
	k.t.Helper()
	if !k.running() {
		k.see()
	}
	return k.startErr
}

// running starts the job if need be and says whether it could.
func (k *Kit) running() bool {
	if !k.started {
		k.started = true
		k.startErr = k.start()
	}
	return k.startErr == nil
}

// see notes that the test knows of the run's error.
func (k *Kit) see() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.errSeen = true
}

func (k *Kit) start() error {
	opts, err := k.checkpointOption()
	if err != nil {
		return err
	}
	opts = append(opts, k.opts...)
	opts = append(opts, dstream.WithHarness(k.h), dstream.WithClock(k.clock),
		dstream.WithListener(dstream.Listener{BatchCompleted: k.onCompleted}))
	k.ssc = dstream.NewStreamingContext(k.interval, opts...)
	if k.job == nil {
		return errors.New("milltest: the job is nil")
	}
	if err := k.build(); err != nil {
		return fmt.Errorf("the job's function: %w", err)
	}
	if err := k.ssc.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.waitFor)
	defer cancel()
	if err := k.h.WaitStarted(ctx); err != nil {
		return err
	}
	k.zero = k.h.Engine().ZeroTime()
	k.due = k.zero.Add(k.clock.Now().Sub(k.zero) / k.interval * k.interval)
	if err := k.unknownOutputs(); err != nil {
		return errors.Join(err, k.ssc.Stop(ctx))
	}
	return nil
}

// build runs the job's function; as in dstream.Run, an output of a nil stream,
// which panics with its fault, is an error.
func (k *Kit) build() (err error) {
	defer func() {
		v := recover()
		if f, ok := v.(*dstream.Fault); ok {
			err = f
		} else if v != nil {
			panic(v)
		}
	}()
	return k.job(k.ssc)
}

// Err is the error that ended the run or kept it from starting; nil while it
// runs and after a clean stop.
func (k *Kit) Err() error {
	k.see()
	return k.err()
}

func (k *Kit) err() error {
	if k.startErr != nil {
		return k.startErr
	}
	_, err := k.h.Result()
	return err
}

// Ended says whether the run is over, cleanly or not.
func (k *Kit) Ended() bool {
	ended, _ := k.h.Result()
	return ended || k.startErr != nil
}

// Stop stops the run as a first interrupt does: the batch that runs is finished
// and committed. It returns the run's error.
func (k *Kit) Stop() error {
	k.see()
	return k.stop()
}

func (k *Kit) stop() error {
	if !k.started || k.startErr != nil {
		return k.startErr
	}
	if k.stopped {
		return k.err()
	}
	k.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), k.waitFor)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- k.ssc.Stop(ctx) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	// The stop waits by the kit's clock, which nobody moves any more.
	for {
		k.clock.Advance(time.Minute)
		select {
		case err := <-result:
			return err
		default:
			runtime.Gosched()
		}
	}
}

// Context is the job's StreamingContext (not a context.Context), for what the
// kit has no call of its own for; nil before the start.
func (k *Kit) Context() *dstream.StreamingContext { return k.ssc }

// cleanup ends the run, reports an error that the test has not looked at, and
// looks at the states once more.
func (k *Kit) cleanup() {
	defer k.lookAtAllStates()
	k.releaseAll() // a blocked output would keep the run from stopping
	unseen := k.unseen()
	err := k.stop()
	if unseen != nil {
		k.t.Errorf("milltest: the run failed, and the test did not look at Kit.Err: %v", unseen)
	} else if err != nil && !k.seen() && !errors.Is(err, context.Canceled) {
		k.t.Errorf("milltest: stopping the run: %v", err)
	}
}

func (k *Kit) seen() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.errSeen
}

// unseen is the run's error if the test has not asked for it.
func (k *Kit) unseen() error {
	if k.seen() {
		return nil
	}
	return k.err()
}

// mustBeFine ends the test when the run has failed unnoticed: what the caller
// is about to compare would only hide the cause.
func (k *Kit) mustBeFine(what string) {
	k.t.Helper()
	if err := k.unseen(); err != nil {
		k.t.Fatalf("milltest: %s of a run that has failed (look at Kit.Err first if that is meant): %v", what, err)
	}
}

func (k *Kit) mustNotRun(what string) {
	k.t.Helper()
	if k.started {
		k.t.Fatalf("milltest: %s after the first tick: set it up before", what)
	}
}
