package main

import (
	"context"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// interval is the batch interval of every job here; the clock is moved by hand, so it costs no time.
const interval = time.Second

// An engine is the whole job: slices of records → PartitionBy → mapWithState → outputs appended by partition. The clock
// is moved by one interval for each batch, and the batch has ended when its tick has been handled.
type engine struct {
	in    *sliceSource
	clock *clock.Manual
	hooks *harness.Harness
	ssc   *dstream.StreamingContext
	now   time.Time
	out   [][]output
}

// newEngine starts the job with the given number of source partitions, state partitions and workers, and loads every key.
func newEngine(d *data, parallelism int) (*engine, error) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := &engine{
		in: &sliceSource{from: make([]int64, parallelism)}, clock: clock.NewManual(start), hooks: harness.New(), now: start,
		out: make([][]output, parallelism),
	}
	e.ssc = dstream.NewStreamingContext(interval, dstream.WithClock(e.clock), dstream.WithHarness(e.hooks),
		dstream.WithParallelism(parallelism), dstream.WithOutput(io.Discard))
	records := dstream.From(e.ssc, "records", source.Source[dstream.Pair[string, int64]](e.in))
	sums := dstream.MapWithState(records, dstream.Function(add).Named("sums"))
	dstream.ForeachRDD(sums, e.collect)
	if err := e.ssc.Start(); err != nil {
		return nil, err
	}
	for _, r := range d.all().chunks(d.perBatch) {
		if err := e.batch(r); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// add is the user function of all our sides.
func add(key string, value rdd.Option[int64], state *dstream.State[int64]) output {
	sum := state.OrElse(0) + value.OrElse(0)
	state.Update(sum)
	return output{key, sum}
}

func (e *engine) collect(ctx context.Context, _ dstream.Batch, r *rdd.RDD[output]) error {
	return rdd.ForeachPartition(ctx, r, func(_ context.Context, p int, in iter.Seq[output]) error {
		out := e.out[p][:0]
		for v := range in {
			out = append(out, v)
		}
		e.out[p] = out
		return nil
	})
}

func (e *engine) batch(in records) error {
	e.in.put(in)
	e.now = e.now.Add(interval)
	e.clock.Advance(interval)
	return e.hooks.WaitTick(context.Background(), e.now)
}

func (e *engine) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return e.ssc.Stop(ctx)
}

// sliceSource is a source of slices: each plan takes the slice that was put and splits it over the partitions.
type sliceSource struct {
	waiting records
	reading records
	from    []int64 // of each partition
}

// put gives the next batch. It must not be called while a batch runs.
func (s *sliceSource) put(in records) { s.waiting = in }

// Open starts at offset 0.
func (s *sliceSource) Open(context.Context, *source.Plan) error { return nil }

// Plan takes the waiting slice.
func (s *sliceSource) Plan(context.Context, source.Limits) (source.Plan, error) {
	s.reading, s.waiting = s.waiting, records{}
	var p source.Plan
	for i, from := range s.from {
		p.Ranges = append(p.Ranges, source.Range{Partition: strconv.Itoa(i), From: from, Until: from + int64(s.cut(i+1)-s.cut(i))})
	}
	return p, nil
}

func (s *sliceSource) cut(i int) int { return s.reading.len() * i / len(s.from) }

// Read pushes a range of the slice.
func (s *sliceSource) Read(_ context.Context, r source.Range, emit func(int64, dstream.Pair[string, int64]) error) error {
	part, err := strconv.Atoi(r.Partition)
	if err != nil {
		return err
	}
	in := s.reading.slice(s.cut(part), s.cut(part+1))
	for i, k := range in.keys {
		if err := emit(r.From+int64(i), dstream.KV(k, in.values[i])); err != nil {
			return err
		}
	}
	return nil
}

// Committed moves the source past the slice.
func (s *sliceSource) Committed(_ context.Context, p source.Plan) error {
	for i, r := range p.Ranges {
		s.from[i] = r.Until
	}
	s.reading = records{}
	return nil
}

// Close does nothing.
func (s *sliceSource) Close() error { return nil }
