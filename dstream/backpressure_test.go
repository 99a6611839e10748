package dstream_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
)

// upTo runs the first n batches, each from its own tick on, however far outputs
// have moved the clock. Later ones may then run by themselves.
func (r *rig) upTo(n int) {
	r.t.Helper()
	for i := range n {
		next := zero.Add(time.Duration(i+1) * r.interval)
		if d := next.Sub(r.clock.Now()); d > 0 {
			r.clock.Advance(d)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		require.NoError(r.t, r.h.WaitTick(ctx, next))
		cancel()
	}
}

// slowJob has an output that takes as long for every record as perRecord says.
func slowJob(r **rig, perRecord *atomic.Int64, sources ...func(ssc *dstream.StreamingContext) *dstream.DStream[int]) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		for _, s := range sources {
			dstream.ForeachRDD(s(ssc), func(ctx context.Context, _ dstream.Batch, in *rdd.RDD[int]) error {
				n, err := rdd.Count(ctx, in)
				(*r).clock.Advance(time.Duration(n * perRecord.Load()))
				return err
			})
		}
		return nil
	}
}

func backlog(name string, n int) func(ssc *dstream.StreamingContext) *dstream.DStream[int] {
	return func(ssc *dstream.StreamingContext) *dstream.DStream[int] {
		return dstream.QueueNamed(ssc, name, 1, make([]int, n))
	}
}

// rates gives the rates and records of a source in the first n batches.
func (r *rig) rates(source, n int) (rates []float64, rows []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.progress[:n] {
		rates, rows = append(rates, p.Sources[source].Rate), append(rows, p.Sources[source].InputRows)
	}
	return rates, rows
}

// RC1, I1, I2 at the level of a job: the rate follows the speed of processing, down
// to the least one, and each batch takes what its rate says.
func TestBackpressureFollowsTheSpeed(t *testing.T) {
	var r *rig
	var each atomic.Int64
	each.Store(int64(5 * time.Millisecond))
	r = newRig(t, time.Second, slowJob(&r, &each, backlog("in", 100_000)),
		dstream.WithBackpressure(dstream.PIDFactors(1, 0, 0), dstream.MinRate(20)), dstream.WithInitialRate(10)).start()
	r.upTo(2) // 200 records a second
	each.Store(int64(4 * time.Millisecond))
	r.upTo(3) // 250
	each.Store(int64(100 * time.Millisecond))
	r.tick(2) // 10, of which the least is made
	rates, rows := r.rates(0, 5)
	require.Equal(t, []int64{10, 10, 200, 250, 20}, rows)
	require.InDeltaSlice(t, []float64{10, 10, 200, 250, 20}, rates, 1e-9)
	require.EqualValues(t, 20, r.last().Sources[0].Limit)
}

// I2: records that wait because of the delay count, by the integral factor.
func TestBackpressureCountsTheDelay(t *testing.T) {
	var r *rig
	var each atomic.Int64
	each.Store(int64(10 * time.Millisecond)) // 100 a second
	r = newRig(t, time.Second, slowJob(&r, &each, backlog("in", 100_000)),
		dstream.WithBackpressure(dstream.PIDFactors(1, 0.5, 0), dstream.MinRate(1)), dstream.WithInitialRate(120)).start()
	r.upTo(4)
	rates, rows := r.rates(0, 4)
	// Batch 2 starts 0.2 s late: 100 − 0.5·20 = 90. Batch 3 starts 0.4 s late: 100 − 0.5·40 = 80.
	require.InDeltaSlice(t, []float64{120, 120, 90, 80}, rates, 1e-9)
	require.Equal(t, []int64{120, 120, 90, 80}, rows)
}

// Report 36: the first batch has a cap though nothing is known yet, and a rate of
// less than one record per batch takes one record, never all.
func TestReport36Rates(t *testing.T) {
	var r *rig
	var each atomic.Int64
	each.Store(int64(10 * time.Second))
	r = newRig(t, time.Second, slowJob(&r, &each, backlog("in", 100_000)),
		dstream.WithBackpressure(dstream.MinRate(1e-6)), dstream.WithInitialRate(0.25)).start()
	for range 3 {
		r.tick(1)
		require.EqualValues(t, 1, r.last().InputRows)
		require.EqualValues(t, 1, r.last().Sources[0].Limit)
	}

	each.Store(0)
	var other *rig // the first one may still be in an output
	other = newRig(t, time.Second, slowJob(&other, &each, backlog("in", 100_000)), dstream.WithBackpressure()).start()
	other.tick(1)
	require.EqualValues(t, dstream.DefaultInitialRate, other.last().InputRows)
}

// Each source has a rate of its own; one that says nothing keeps the first one.
func TestBackpressurePerSource(t *testing.T) {
	var r *rig
	var each atomic.Int64
	each.Store(int64(time.Millisecond))
	r = newRig(t, time.Second, slowJob(&r, &each, backlog("busy", 10_000), backlog("idle", 0)),
		dstream.WithBackpressure(), dstream.WithInitialRate(100)).start()
	r.upTo(3)
	busy, _ := r.rates(0, 3)
	idle, _ := r.rates(1, 3)
	require.InDeltaSlice(t, []float64{100, 100, 1000}, busy, 1e-9)
	require.Equal(t, []float64{100, 100, 100}, idle)
}

// The other caps hold beside the rate, and without backpressure no rate is in force.
func TestCapsBesideBackpressure(t *testing.T) {
	var each atomic.Int64
	each.Store(int64(time.Millisecond))
	start := func(opts ...dstream.ContextOption) *rig {
		var r *rig // the job's own: that of a rig before may still be in an output, and move its clock
		r = newRig(t, time.Second, slowJob(&r, &each, backlog("in", 100_000)), opts...).start()
		return r
	}
	r := start(dstream.WithBackpressure(), dstream.WithInitialRate(math.Inf(1)), dstream.WithMaxRecordsPerBatch(30))
	r.upTo(3)
	rates, rows := r.rates(0, 3)
	require.Equal(t, []int64{30, 30, 30}, rows)
	require.Equal(t, []float64{0, 0}, rates[:2])
	require.InDelta(t, 1000, rates[2], 1e-9)

	r = start(dstream.WithBackpressure(), dstream.WithMaxRatePerPartition(7))
	r.tick(1)
	require.EqualValues(t, 7, r.last().InputRows)

	r = start(dstream.WithMaxRecordsPerBatch(30))
	r.tick(1)
	require.Zero(t, r.last().Sources[0].Rate)
	require.EqualValues(t, 30, r.last().Sources[0].Limit)
}

// RC1: wrong parameters are faults at the line of the option.
func TestBackpressureFaults(t *testing.T) {
	for text, opts := range map[string][]dstream.ContextOption{
		"WithBackpressure: rate estimator: the proportional factor is -1": {dstream.WithBackpressure(dstream.PIDFactors(-1, 0, 0))},
		"the integral factor is -1":                                       {dstream.WithBackpressure(dstream.PIDFactors(0, -1, 0))},
		"the derived factor is NaN":                                       {dstream.WithBackpressure(dstream.PIDFactors(0, 0, math.NaN()))},
		"the least rate is 0 records/s":                                   {dstream.WithBackpressure(dstream.MinRate(0))},
		"the least rate is -10 records/s":                                 {dstream.WithBackpressure(dstream.MinRate(-10))},
		"option 0 is nil":                                                 {dstream.WithBackpressure(nil)},
		"WithInitialRate: 0 records per second":                           {dstream.WithBackpressure(), dstream.WithInitialRate(0)},
		"NaN records per second":                                          {dstream.WithBackpressure(), dstream.WithInitialRate(math.NaN())},
		"WithInitialRate: the initial rate holds until back":              {dstream.WithInitialRate(5)},
	} {
		ssc := dstream.New(time.Second, opts...)
		dstream.Print(dstream.QueueStream(ssc, []int{1}), 1)
		err := ssc.Validate()
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "backpressure_test.go:")
	}
}
