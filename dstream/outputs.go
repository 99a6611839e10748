package dstream

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"strings"

	"github.com/statemill/statemill/rdd"
)

// outputContext is one attempt of an output.
type outputContext struct {
	ctx     context.Context
	attempt int
}

// ForeachRDD runs f over the RDD of every batch, after the batch's state is
// sealed and before it is committed, in the order in which outputs were
// registered. An error of f fails the output: it is run again as often as
// WithTaskRetries says, over the same kept records, and then ends the run. So f
// may see a batch more than once, and must do its work by the batch's epoch.
//
// r, and all that is made from it, is valid until f returns; r.Retain keeps it
// longer, until r.Release.
func ForeachRDD[T any](in Stream[T], f func(ctx context.Context, b Batch, r *rdd.RDD[T]) error, opts ...OpOption) {
	addOutput(in, "ForeachRDD", nilFunction(f == nil), opts, func(b *batchRun, c *outputContext, r *rdd.RDD[T]) error {
		view, done, err := rdd.Pin(r)
		if err != nil {
			return err
		}
		defer done()
		return f(c.ctx, b.batch, view)
	})
}

// Foreach calls f for every record of every batch, in order, on one goroutine.
// See ForeachRDD for errors and retries.
func Foreach[T any](in Stream[T], f func(ctx context.Context, b Batch, v T) error, opts ...OpOption) {
	addOutput(in, "Foreach", nilFunction(f == nil), opts, func(b *batchRun, c *outputContext, r *rdd.RDD[T]) error {
		return each(b, c, r, func(v T) error { return f(c.ctx, b.batch, v) })
	})
}

// Print writes the batch time and the first n records of every batch to the
// context's writer (WithOutput), and "..." if there are more.
//
// As with all outputs, a nil stream panics with a *Fault, for it has no context;
// Run reports it with the other faults.
func Print[T any](in Stream[T], n int, opts ...OpOption) {
	var wrong error
	if n < 0 {
		wrong = fmt.Errorf("%d records to print: want 0 or more", n)
	}
	addOutput(in, "Print", wrong, opts, func(b *batchRun, c *outputContext, r *rdd.RDD[T]) error {
		first, err := rdd.Take(c.ctx, r, min(n, math.MaxInt-1)+1)
		if err != nil {
			return err
		}
		var text strings.Builder
		const rule = "-------------------------------------------\n"
		fmt.Fprintf(&text, "%sTime: %s\n%s", rule, b.batch.Time.Format("2006-01-02 15:04:05.999999999 MST"), rule)
		var line []byte
		for i, v := range first {
			if i == n {
				text.WriteString("...\n")
				break
			}
			line = append(appendText(line[:0], reflect.ValueOf(&v).Elem()), '\n')
			text.Write(line)
		}
		text.WriteByte('\n')
		b.run.printing.Lock() // of another output, WithConcurrentOutputs
		defer b.run.printing.Unlock()
		_, err = io.WriteString(b.run.ssc.cfg.out, text.String())
		return err
	})
}

// each runs f over all records of r in order: partition after partition, on one
// goroutine, and no partition a second time. What r depends on runs as all stages
// do: on all workers, with retries and by the record policy.
func each[T any](b *batchRun, c *outputContext, r *rdd.RDD[T], f func(T) error) error {
	if err := rdd.Materialize(c.ctx, b.run.exec, r.Deps()...); err != nil {
		return err
	}
	return rdd.ForeachPartition(c.ctx, r.WithExecutor(b.run.serial), func(_ context.Context, _ int, in iter.Seq[T]) error {
		for v := range in {
			if err := f(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// addOutput registers an output and returns it; wrong is what is wrong with its own arguments.
func addOutput[T any](in Stream[T], kind string, wrong error, opts []OpOption, f func(b *batchRun, c *outputContext, r *rdd.RDD[T]) error) *output {
	p := nodeOf(in)
	options, faults := opOptions(kind, opts, true, false)
	o := &output{node: p, name: options.name, kind: kind, caller: caller(), checks: options.checks}
	if p == nil || p.ssc == nil {
		// No stream, no context to note it on: going on would lose the output.
		panic(&Fault{Caller: o.caller, Call: "dstream." + kind, Err: errNilStream})
	}
	with := func(b *batchRun, do func(r *rdd.RDD[T]) error) error {
		r, err := rddOf[T](b, p)
		if err != nil {
			return err
		}
		return do(r)
	}
	o.run = func(b *batchRun, c *outputContext) error {
		return with(b, func(r *rdd.RDD[T]) error { return f(b, c, r) })
	}
	o.rows = func(b *batchRun, c *outputContext) (rows any, err error) {
		err = with(b, func(r *rdd.RDD[T]) error {
			got, err := rdd.Collect(c.ctx, r)
			rows = got
			return err
		})
		return rows, err
	}
	o.parts = func(b *batchRun, c *outputContext) (rows any, err error) {
		err = with(b, func(r *rdd.RDD[T]) error {
			got, err := rdd.Collect(c.ctx, rdd.Glom(r))
			rows = got
			return err
		})
		return rows, err
	}
	o.register(append([]error{wrong}, faults...))
	return o
}

// register adds the output to its context; faults is what is wrong with its call.
func (o *output) register(faults []error) {
	ssc := o.node.ssc
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	if err := ssc.addable(); err != nil {
		ssc.lateFault(o.caller, o.kind, err)
		return
	}
	ssc.outputs = append(ssc.outputs, o)
	for _, err := range faults {
		if err != nil {
			ssc.faults = append(ssc.faults, &Fault{Caller: o.caller, Call: "dstream." + o.kind, Err: err})
		}
	}
}
