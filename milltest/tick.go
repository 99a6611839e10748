package milltest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
)

// Tick moves the clock n intervals ahead, one at a time, and returns when the
// batch of the last one is complete: committed, its outputs written. It starts
// the job if need be. When the run has ended, Tick does nothing more; see
// [Kit.Err].
func (k *Kit) Tick(n int) {
	k.t.Helper()
	for range n {
		if !k.running() || k.Ended() {
			return
		}
		k.step()
		if !k.Await() {
			return
		}
	}
}

// Advance moves the clock n intervals ahead and does not wait for batches, only
// for the run to have seen each tick. Together with [Kit.BlockOutput] this is
// how ticks come to queue up and to be skipped.
func (k *Kit) Advance(n int) {
	k.t.Helper()
	for range n {
		if !k.running() || !k.awaitTimer() {
			return
		}
		k.step()
	}
}

func (k *Kit) step() {
	k.due = k.due.Add(k.interval)
	if k.due.After(k.clock.Now()) {
		k.clock.Set(k.due)
	}
}

// awaitTimer waits until the run waits for the next tick: only then has it seen
// the last one. (Otherwise two moves of the clock would look like one jump.)
func (k *Kit) awaitTimer() bool {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), k.waitFor)
	defer cancel()
	seen, stop := k.whileRunning(ctx)
	err := k.clock.BlockUntil(seen, 1)
	stop()
	if ctx.Err() != nil {
		k.t.Fatalf("milltest: the run does not wait for the next tick: %v", err)
	}
	return err == nil && !k.Ended()
}

// whileRunning gives a context that ends with the run.
func (k *Kit) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	running, stop := context.WithCancel(ctx)
	h := k.h // of this life: a crash gives the kit another one
	go func() {
		defer stop()
		// No tick is that late: this returns when the run ends.
		_ = h.WaitTick(running, time.Unix(0, math.MaxInt64))
	}()
	return running, stop
}

// AdvanceTime moves the clock by d at once, which need not be on the grid, and
// does not wait. It is for what else goes by the clock, such as a stop's
// timeout, and for clocks that jump: of the ticks that it passes only the last
// one gets a batch, the others are skipped.
func (k *Kit) AdvanceTime(d time.Duration) {
	k.t.Helper()
	if !k.running() {
		return
	}
	now := k.clock.Now().Add(d)
	if n := now.Sub(k.due) / k.interval; n > 0 {
		k.due = k.due.Add(n * k.interval)
	}
	k.clock.Set(now)
}

// Await waits until every tick so far has been handled: its batch is complete,
// or it was skipped because too many were waiting. It reports whether the run
// still goes on.
func (k *Kit) Await() bool {
	k.t.Helper()
	if !k.started || k.startErr != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.waitFor)
	defer cancel()
	err := k.h.WaitTick(ctx, k.due)
	var ended *harness.EndedError
	switch {
	case err == nil:
		return true
	case errors.As(err, &ended):
		return false
	}
	k.t.Fatalf("milltest: %v: the batch does not end: is an output blocked, or a function stuck?", err)
	return false
}

// onCompleted is the listener of the run.
func (k *Kit) onCompleted(p dstream.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.progress = append(k.progress, p)
}

// Progress gives what the engine reported of every completed batch so far.
func (k *Kit) Progress() []dstream.Progress {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]dstream.Progress(nil), k.progress...)
}
