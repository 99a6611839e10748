package milltest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/vfs"
)

// durable is the checkpoint of a kit, and what its runs have in common.
type durable struct {
	fs      *vfs.Mem // nil: the job has no checkpoint
	opts    []dstream.CheckpointOption
	wrap    func(vfs.FS) vfs.FS
	runs    int            // so many were begun
	sources map[string]any // inputs, for the next run too
	workers int
	block   int
}

// Checkpoint keeps the job on a checkpoint in memory, so that it can be stopped
// and crash, and go on: see [Kit.Restart] and [Kit.Crash]. It is called before the
// first tick. A job that has WithCheckpoint among its own options needs no call,
// and must not have one.
func (k *Kit) Checkpoint(opts ...dstream.CheckpointOption) {
	k.t.Helper()
	k.mustNotRun("Checkpoint")
	if k.durable.fs == nil {
		k.durable.fs = vfs.NewMem()
	}
	k.durable.opts = opts
}

// CheckpointFS is the file system of the checkpoint, which lies in its folder
// "checkpoint"; nil without one. After a crash it is another one.
func (k *Kit) CheckpointFS() *vfs.Mem { return k.durable.fs }

// CheckpointStore gives a store over the checkpoint, for readers and tools. tag
// tells it apart from all others.
func (k *Kit) CheckpointStore(tag string) vfs.Store {
	k.t.Helper()
	store, err := vfs.NewDir(k.durable.fs, checkpointFolder, tag)
	if err != nil {
		k.t.Fatalf("milltest: %v", err)
	}
	return store
}

const checkpointFolder = "checkpoint"

// WrapCheckpoint puts wrap around the file system of the next runs, for faults:
// see vfs.WithFaults. Nil takes it away.
func (k *Kit) WrapCheckpoint(wrap func(vfs.FS) vfs.FS) {
	k.t.Helper()
	k.mustNotRun("WrapCheckpoint")
	k.durable.wrap = wrap
}

// Job is the job of the next run, another version of the program: it is called
// after [Kit.Restart] or [Kit.Crash] and before the next tick, with the options in
// the place of those given to [New].
func (k *Kit) Job(job dstream.Job, opts ...dstream.ContextOption) {
	k.t.Helper()
	k.mustNotRun("Job")
	k.job, k.opts = job, opts
}

// Restart stops the run as [Kit.Stop] does, if it still runs, and makes the kit
// ready for another one on the same checkpoint: the next tick starts it. The clock
// stands where it stood; what inputs were given and have not delivered, they
// deliver to the next run. An error of the run that was not looked at ends the
// test.
func (k *Kit) Restart() {
	k.t.Helper()
	k.mustBeDurable("Restart")
	if err := k.stop(); err != nil && !k.seen() {
		k.t.Fatalf("milltest: Restart of a run that has failed (look at Kit.Err first if that is meant): %v", err)
	}
	k.next()
}

// Crash ends the run as a loss of power does: nothing more is written, and of the
// files only what was synced is there for the next run, which the next tick
// starts. What the run was doing (see [Kit.Advance] and [Kit.BlockOutput]) is
// given up.
func (k *Kit) Crash() {
	k.t.Helper()
	k.CrashKeeping(nil, 0)
}

// CrashKeeping is Crash with some of what was not synced kept: see
// vfs.Mem.CrashClone.
func (k *Kit) CrashKeeping(rng *rand.Rand, percent int) {
	k.t.Helper()
	k.mustBeDurable("Crash")
	found := k.durable.fs.CrashClone(rng, percent)
	k.mu.Lock()
	k.generation++ // what outputs still write, nobody has seen
	k.mu.Unlock()
	k.abandon()
	k.durable.fs = found
	k.next()
}

// abandon ends a run at once; what it still writes is lost.
func (k *Kit) abandon() {
	if !k.started || k.startErr != nil {
		return
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.ssc.Stop(gone)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), k.waitFor)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		k.t.Fatalf("milltest: Crash: the run's functions do not return")
	}
}

func (k *Kit) mustBeDurable(what string) {
	k.t.Helper()
	if k.durable.fs == nil {
		k.t.Fatalf("milltest: %s of a job without a checkpoint: call Checkpoint before the first tick", what)
	}
}

// next readies the kit for another run.
func (k *Kit) next() {
	k.mu.Lock()
	k.errSeen = false
	k.generation++
	k.mu.Unlock()
	k.started, k.stopped, k.startErr, k.ssc = false, false, nil, nil
	k.newHarness()
}

// newHarness makes the hooks of the next run.
func (k *Kit) newHarness() {
	h := harness.New()
	h.RetryAtOnce()
	h.MaintainInline()
	h.CaptureSinks()
	h.SetWorkers(k.durable.workers)
	h.SetBlockSize(k.durable.block)
	k.mu.Lock()
	generation := k.generation
	k.mu.Unlock()
	h.OnOutput(func(ctx context.Context, c harness.OutputCall) error { return k.onOutput(ctx, c, generation) })
	for name, src := range k.durable.sources {
		h.ReplaceSource(name, src)
	}
	k.h = h
}

// checkpointOption is the option of the kit's checkpoint for the run that begins.
func (k *Kit) checkpointOption() ([]dstream.ContextOption, error) {
	if k.durable.fs == nil {
		return nil, nil
	}
	k.durable.runs++
	var fs vfs.FS = k.durable.fs
	if k.durable.wrap != nil {
		fs = k.durable.wrap(fs)
	}
	store, err := vfs.NewDir(fs, checkpointFolder, fmt.Sprintf("run-%d", k.durable.runs))
	if err != nil {
		return nil, err
	}
	return []dstream.ContextOption{dstream.WithCheckpointStore(store, k.durable.opts...)}, nil
}

// Epoch is the newest committed epoch, 0 before the start.
func (k *Kit) Epoch() uint64 {
	if e := k.h.Engine(); e != nil {
		return e.Epoch()
	}
	return 0
}
