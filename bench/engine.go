package main

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// interval is the batch interval of every job here; the clock is moved by hand, so it costs no time.
const interval = time.Second

// A driver runs a job by hand: its clock is moved by one interval for each batch, and the batch has ended when its tick
// has been handled.
type driver struct {
	clock *clock.Manual
	hooks *harness.Harness
	ssc   *dstream.StreamingContext
	now   time.Time
}

// newDriver makes the context of a job that will have that many workers and state partitions.
func newDriver(parallelism int, opts ...dstream.ContextOption) driver {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := driver{clock: clock.NewManual(start), hooks: harness.New(), now: start}
	r.ssc = dstream.NewStreamingContext(interval, append(opts, dstream.WithClock(r.clock), dstream.WithHarness(r.hooks),
		dstream.WithParallelism(parallelism), dstream.WithOutput(io.Discard))...)
	return r
}

// tick runs one batch.
func (r *driver) tick() error {
	r.now = r.now.Add(interval)
	r.clock.Advance(interval)
	return r.hooks.WaitTick(context.Background(), r.now)
}

func (r *driver) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.ssc.Stop(ctx)
}

// An engine is the whole job: slices of records → PartitionBy → mapWithState → outputs appended by partition.
type engine struct {
	driver
	in  *sliceSource[records, dstream.Pair[string, int64]]
	out sink[output]
}

// newEngine starts the job with the given number of source partitions, state partitions and workers, and loads every key.
func newEngine(d *data, parallelism int, opts ...dstream.ContextOption) (*engine, error) {
	e := buildEngine(parallelism, parallelism, opts...)
	if err := e.ssc.Start(); err != nil {
		return nil, err
	}
	return e, e.fill(d)
}

// buildEngine makes the job with as many workers and source partitions, and does not start it.
func buildEngine(parallelism, partitions int, opts ...dstream.ContextOption) *engine {
	e := &engine{
		driver: newDriver(parallelism, opts...), out: newSink[output](partitions),
		in: newSliceSource[records, dstream.Pair[string, int64]](parallelism),
	}
	records := dstream.From(e.ssc, "records", source.Source[dstream.Pair[string, int64]](e.in))
	sums := dstream.MapWithState(records, dstream.Function(add).Named("sums").NumPartitions(partitions))
	dstream.ForeachRDD(sums, e.out.collect)
	return e
}

// fill gives every key once.
func (e *engine) fill(d *data) error {
	for _, r := range d.all().chunks(d.perBatch) {
		if err := e.batch(r); err != nil {
			return err
		}
	}
	return nil
}

// add is the user function of all our sides.
func add(key string, value rdd.Option[int64], state *dstream.State[int64]) output {
	sum := state.OrElse(0) + value.OrElse(0)
	state.Update(sum)
	return output{key, sum}
}

func (e *engine) batch(in records) error {
	e.in.put(in)
	return e.tick()
}

// A sink keeps the outputs of the last batch, by partition.
type sink[T any] [][]T

func newSink[T any](partitions int) sink[T] { return make(sink[T], partitions) }

func (s sink[T]) collect(ctx context.Context, _ dstream.Batch, r *rdd.RDD[T]) error {
	return rdd.ForeachPartition(ctx, r, func(_ context.Context, p int, in iter.Seq[T]) error {
		out := s[p][:0]
		for v := range in {
			out = append(out, v)
		}
		s[p] = out
		return nil
	})
}

// len is the number of outputs of the last batch.
func (s sink[T]) len() (n int) {
	for _, out := range s {
		n += len(out)
	}
	return n
}
