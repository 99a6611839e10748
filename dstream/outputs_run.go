package dstream

import (
	"context"
	"errors"

	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
)

// WithConcurrentOutputs lets up to n plain outputs of one batch run side by side
// (R9). They begin in the order in which they were registered; what they have in
// common is computed once. Batches never overlap: all outputs of one have ended
// before it is committed and the next one begins. When one fails for good, no
// further one begins. Default 1: one after the other.
func WithConcurrentOutputs(n int) ContextOption {
	return option("WithConcurrentOutputs", func(c *config) error {
		c.concurrentOutputs = n
		return atLeastOne(n, "the number of concurrent outputs")
	})
}

// outputs runs the outputs that are due, in the order in which they were
// registered, or side by side. A failed one runs again over the same kept records
// (R3).
func (r *run) outputs() (name string, err error) {
	e := r.cur
	if r.durable != nil {
		if err := r.durable.outputs(r.hard); err != nil {
			return "checkpoint", err
		}
	}
	var due, ofLetters []*output
	for _, o := range r.ssc.outputs {
		if o.letters {
			ofLetters = append(ofLetters, o)
		} else if _, ok := e.b.slides(o.node); ok {
			due = append(due, o)
		}
	}
	done, errs := make([]OutputProgress, len(due)), make([]error, len(due))
	err = pool.Run(r.hard, r.ssc.cfg.concurrentOutputs, len(due), func(_ context.Context, _, i int) error {
		done[i], errs[i] = r.whole(due[i])
		return errs[i]
	})
	if err != nil {
		for i, o := range due {
			if errs[i] != nil {
				return o.label(), errs[i]
			}
		}
		return "", err
	}
	if name, err := r.settle(); err != nil { // all functions have run
		return name, err
	}
	for _, o := range ofLetters {
		one, err := r.whole(o)
		if err != nil {
			return o.label(), err
		}
		done = append(done, one)
	}
	e.progress.Outputs = done
	r.ssc.counting.end()
	if r.durable != nil {
		r.durable.counted()
		if name, err := r.sinks(); err != nil {
			return name, err
		}
	}
	e.phase(r, &e.progress.Phases.Output)
	return "", nil
}

// whole runs an output until it has succeeded or may not be tried again.
func (r *run) whole(o *output) (done OutputProgress, err error) {
	b := r.cur.batch
	done = OutputProgress{Name: o.label(), Kind: o.kind}
	began := r.clock.Now()
	if err := r.listen(func(l *Listener) {
		if l.OutputStarted != nil {
			l.OutputStarted(b, done.Name)
		}
	}); err != nil {
		return done, err
	}
	for {
		err = r.output(o, done.Attempts)
		done.Attempts++
		if err == nil || r.hard.Err() != nil {
			break
		}
		r.exec.troubles.failed("output "+done.Name, r.clock.Now(), err)
		lerr := r.listen(func(l *Listener) {
			if l.OutputFailed != nil {
				l.OutputFailed(b, done.Name, err)
			}
		})
		if err = errors.Join(err, lerr); lerr != nil || done.Attempts > r.ssc.cfg.taskRetries {
			break
		}
	}
	if err == nil {
		r.exec.troubles.passed("output " + done.Name)
	}
	done.Duration = r.clock.Now().Sub(began)
	if err != nil && r.hard.Err() != nil {
		err = context.Cause(r.hard)
	}
	return done, errors.Join(err, r.listen(func(l *Listener) {
		if l.OutputCompleted != nil {
			l.OutputCompleted(b, done, err)
		}
	}))
}

// output runs one attempt of an output.
func (r *run) output(o *output, attempt int) error {
	return r.exec.counting.attempt(nil, func() error { return r.outputAttempt(o, attempt) })
}

func (r *run) outputAttempt(o *output, attempt int) error {
	b := r.cur.b
	if attempt > 0 && sabotage.On("output-recompute") {
		b.slots[o.node.id] = slot{}
	}
	return r.do("output "+o.label(), func() (err error) {
		at := func(ctx context.Context) *outputContext { return &outputContext{ctx: ctx, attempt: attempt} }
		scope := new(badScope)
		ctx := context.WithValue(b.ctx, scopeKey{}, scope)
		defer func() {
			if err == nil {
				r.exec.tally.leave(&scope.bad, nil)
			}
		}()
		if r.harness == nil {
			return o.run(b, at(ctx))
		}
		return r.harness.Output(ctx, harness.OutputCall{
			Name: o.label(), Kind: o.kind, Epoch: b.batch.Epoch, Time: b.batch.Time, Attempt: attempt,
			Rows:       func(ctx context.Context) (any, error) { return o.rows(b, at(ctx)) },
			Partitions: func(ctx context.Context) (any, error) { return o.parts(b, at(ctx)) },
			Run:        func(ctx context.Context) error { return o.run(b, at(ctx)) },
		})
	})
}
