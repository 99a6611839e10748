package dstream

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/sink"
)

// Output writes every batch of a stream to an exactly-once sink: what the sink
// shows after a crash, a restart or a takeover is each epoch's output once, in
// order. It needs a checkpoint. name is the output's name in the job, by which the
// sink remembers what it has; it is not to change.
//
// Rows are written when the state of the epoch is durable and all plain outputs
// have run. Sinks of one unit (one Kafka cluster, one folder) show an epoch in one
// act.
func Output[T any](in Stream[T], name string, s sink.Sink[T], opts ...OpOption) {
	o := addOutput(in, "Output", sinkWrong(name, s), append([]OpOption{Name(name)}, opts...),
		// It is written later, see sinks; but its functions run with those of the plain
		// outputs, so that what they do (letters, counters) is known by then.
		func(b *batchRun, c *outputContext, r *rdd.RDD[T]) error {
			if sabotage.On("sink-rows-late") {
				return nil
			}
			return rdd.Materialize(c.ctx, b.run.exec, r.Deps()...)
		})
	ssc := o.node.ssc
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	o.unit = s.Unit
	o.bind = func(b *batchRun) (sink.Output, error) { return bindSink(b, o, name, s) }
}

func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// bindSink gives the stream's kept rows of a batch to a sink.
func bindSink[T any](b *batchRun, o *output, name string, s sink.Sink[T]) (sink.Output, error) {
	r, err := rddOf[T](b, o.node)
	if err != nil {
		return sink.Output{}, err
	}
	if err := rdd.Materialize(b.ctx, b.run.exec, r.Deps()...); err != nil {
		return sink.Output{}, err
	}
	o.rowsGiven = make([]int64, r.NumPartitions())
	return sink.Bind(s, name, r.NumPartitions(), func(ctx context.Context, partition int, yield func(T) error) error {
		n := &o.rowsGiven[partition] // nobody else's
		*n = 0
		t := &rdd.Task{Ctx: ctx, Name: "sink " + name, Partition: partition, Pools: b.run.pools}
		return b.run.exec.attempt(t, func(t *rdd.Task) error {
			return rdd.Protect(t, func(t *rdd.Task) error { return r.Compute(t, func(v T) error { *n++; return yield(v) }) })
		})
	}), nil
}

// sinkUnits lists the units of the job's sinks, each once, in the order of the
// outputs.
func (ssc *StreamingContext) sinkUnits() (units []sink.Unit) {
	seen := map[sink.Unit]bool{}
	for _, o := range ssc.outputs {
		if o.unit != nil && !seen[o.unit] {
			seen[o.unit] = true
			units = append(units, o.unit)
		}
	}
	return units
}

// sinkFaults lists exactly-once sinks that cannot be such.
func (ssc *StreamingContext) sinkFaults() (faults []*Fault) {
	byName := map[string]sink.Unit{}
	for _, o := range ssc.outputs {
		if o.unit == nil {
			continue
		}
		fault := func(err error) {
			faults = append(faults, &Fault{Caller: o.caller, Call: "dstream." + o.kind, Err: err})
		}
		if ssc.cfg.checkpoint.at == "" && !ssc.capturesSinks() {
			fault(errors.New("an exactly-once sink needs a checkpoint: add WithCheckpoint, or use ForeachRDD (for dead letters ForeachDeadLetter)"))
		}
		name := o.unit.Name()
		if other, ok := byName[name]; ok && other != o.unit {
			fault(fmt.Errorf("two units of sinks are named %q: use one for both outputs, or name them apart", name))
		}
		byName[name] = o.unit
	}
	return faults
}

// capturesSinks says that a test kit takes the sinks' place.
func (ssc *StreamingContext) capturesSinks() bool {
	return ssc.cfg.harness != nil && ssc.cfg.harness.CapturesSinks()
}

// sinks writes the exactly-once sinks of the epoch.
func (r *run) sinks() (name string, err error) {
	b := r.cur.b
	writers := make([]sink.Writer, 0, len(r.durable.units))
	for _, u := range r.durable.units {
		var outs []sink.Output
		for _, o := range r.ssc.outputs {
			if o.unit != u {
				continue
			}
			out, err := o.bind(b)
			if err != nil {
				return o.label(), err
			}
			outs = append(outs, out)
		}
		w, err := sink.NewWriter(u, b.batch.Epoch, outs, r.parallel)
		if err != nil {
			return u.Name(), err
		}
		writers = append(writers, w)
	}
	err = r.uncounted(func() error { return r.durable.sinks(r.hard, writers) })
	if err != nil {
		return "checkpoint", err
	}
	r.cur.countRows(r.ssc.outputs)
	return "", nil
}

// uncounted runs what belongs to a sink: it runs as often as writing needs it, when
// the counts of the epoch are made up, so what it adds to counters is dropped.
func (r *run) uncounted(f func() error) error {
	if sabotage.On("sink-functions-count") {
		return f()
	}
	return r.exec.counting.attempt(additions{}, f)
}

// countRows puts what the sinks were given into the progress of their outputs.
func (e *epochRun) countRows(outputs []*output) {
	for _, o := range outputs {
		for i := range e.progress.Outputs {
			if p := &e.progress.Outputs[i]; p.Name == o.label() && p.Kind == o.kind {
				for _, n := range o.rowsGiven {
					p.Rows += n
				}
			}
		}
		o.rowsGiven = nil
	}
}

// parallel runs tasks of a sink on the workers. A part is written once in a
// transaction, so none is tried again by itself.
func (r *run) parallel(ctx context.Context, n int, task func(ctx context.Context, i int) error) error {
	return pool.Run(ctx, r.workers, n, func(ctx context.Context, _, i int) error {
		return r.uncounted(func() error { return task(ctx, i) })
	})
}
