package milltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/statemill/statemill/internal/harness"
)

// captured is what the kit knows of one output name.
type captured struct {
	seen             bool // the job has an output of that name
	replace, discard bool
	parts            map[uint64]any // epoch → [][]T
	fail             faults
	gate             *Gate
}

func (k *Kit) output(name string) *captured {
	c := k.outputs[name]
	if c == nil {
		c = &captured{parts: map[uint64]any{}}
		k.outputs[name] = c
	}
	return c
}

// unknownOutputs is an error if the test has named outputs that the job, which
// has started, does not have: a fault that is never injected, or a function that
// runs although it was replaced, would make the test say nothing.
func (k *Kit) unknownOutputs() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	have := k.h.Engine().Outputs()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(k.outputs)) {
		if !slices.Contains(have, name) && !k.outputs[name].seen { // another run may have had it
			errs = append(errs, fmt.Errorf("milltest: the job has no output named %q: there are %q", name, have))
		}
	}
	return errors.Join(errs...)
}

// mustKnow is unknownOutputs for one name after the start.
func (k *Kit) mustKnow(name string) {
	k.t.Helper()
	if !k.started || k.startErr != nil {
		return
	}
	if have := k.h.Engine().Outputs(); !slices.Contains(have, name) {
		k.t.Fatalf("milltest: the job has no output named %q: there are %q", name, have)
	}
}

// ReplaceOutput captures the output of that name without running the job's own
// function, for functions that reach outside the test.
func (k *Kit) ReplaceOutput(name string) {
	k.t.Helper()
	k.mustKnow(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.output(name).replace = true
}

// DiscardOutput neither captures nor runs the output of that name.
func (k *Kit) DiscardOutput(name string) {
	k.t.Helper()
	k.mustKnow(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.output(name).discard = true
}

// FailOutput makes the next n runs of the output of that name fail with err,
// before anything of it has run.
func (k *Kit) FailOutput(name string, n int, err error) {
	k.t.Helper()
	k.mustKnow(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.output(name).fail = faults{n: n, err: err}
}

// onOutput takes the place of every output of the run.
func (k *Kit) onOutput(ctx context.Context, call harness.OutputCall, generation int) error {
	k.mu.Lock()
	c := k.output(call.Name)
	c.seen = true
	_, fault := c.fail.take()
	gate, discard, replace := c.gate, c.discard, c.replace
	k.mu.Unlock()
	if gate != nil {
		if err := gate.pass(ctx); err != nil {
			return err
		}
	}
	if fault != nil {
		return fault
	}
	if discard {
		return nil
	}
	parts, err := call.Partitions(ctx)
	if err != nil {
		return err
	}
	if call.Kind != "Print" && !replace {
		if err := call.Run(ctx); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation == k.generation {
		c.parts[call.Epoch] = parts
	}
	return nil
}

// Output gives what the output of that name wrote in each committed batch:
// index 0 is batch 1. A batch in which the output did not run (it has a slide,
// or it was skipped) is nil, one in which it wrote nothing is empty. An unnamed
// output goes by the name of its stream. A wrong name or type ends the test.
func Output[T any](k *Kit, name string) [][]T {
	k.t.Helper()
	parts := OutputParts[T](k, name)
	out := make([][]T, len(parts))
	for i, p := range parts {
		if p != nil {
			out[i] = append([]T{}, slices.Concat(p...)...) // not nil: it did run
		}
	}
	return out
}

// OutputParts is Output with the records of every partition apart.
func OutputParts[T any](k *Kit, name string) [][][]T {
	k.t.Helper()
	k.mustBeFine("Output " + name)
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.outputs[name]
	engine := k.h.Engine()
	if engine == nil {
		return nil // nothing has run yet
	}
	if !slices.Contains(engine.Outputs(), name) && (c == nil || !c.seen) {
		k.t.Fatalf("milltest: no output %q: the job has %q", name, engine.Outputs())
	}
	out := make([][][]T, engine.Epoch())
	if c == nil {
		return out
	}
	for epoch, v := range c.parts {
		if epoch < 1 || epoch > uint64(len(out)) {
			continue // written by a batch that was given up
		}
		parts, ok := v.([][]T)
		if !ok {
			k.t.Fatalf("milltest: output %q holds %s, not %T", name, elem(v), *new(T))
		}
		out[epoch-1] = parts
	}
	return out
}

// elem names the record type of a [][]T.
func elem(v any) string { return fmt.Sprintf("%T", v)[len("[][]"):] }

// Gate holds up an output until it is released.
type Gate struct {
	entered chan struct{} // one token a run that has arrived
	open    chan struct{}
	k       *Kit
}

// BlockOutput makes the output of that name wait, from its next run on, until
// the gate is released. Use it with [Kit.Advance], which does not wait.
func (k *Kit) BlockOutput(name string) *Gate {
	k.t.Helper()
	k.mustKnow(name)
	g := &Gate{entered: make(chan struct{}, 1024), open: make(chan struct{}), k: k}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.output(name).gate = g
	return g
}

func (g *Gate) pass(ctx context.Context) error {
	select {
	case g.entered <- struct{}{}:
	default: // nobody counts that many
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Entered waits until a run of the output stands at the gate (one call for each
// run).
func (g *Gate) Entered() {
	k := g.k
	k.t.Helper()
	if !k.started || k.startErr != nil {
		k.t.Fatalf("milltest: no run of the output has come to the gate: the job has not started (error: %v): call Advance before Entered", k.startErr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.waitFor)
	defer cancel()
	running, stop := k.whileRunning(ctx)
	defer stop()
	select {
	case <-g.entered:
		return
	case <-running.Done():
	}
	select {
	case <-g.entered: // both were true
	default:
		if k.Ended() {
			k.t.Fatalf("milltest: no run of the output has come to the gate: the run has ended (error: %v)", k.err())
		}
		k.t.Fatalf("milltest: no run of the output has come to the gate")
	}
}

// Release opens the gate for good. It may be called more than once.
func (g *Gate) Release() {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	g.release()
}

func (g *Gate) release() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (k *Kit) releaseAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range maps.Values(k.outputs) {
		if c.gate != nil {
			c.gate.release()
		}
	}
}
