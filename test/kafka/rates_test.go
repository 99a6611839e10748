package kafkatest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/rdd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// timed is a job over a topic whose clock only the test moves: it ticks, and each batch
// takes as long for a record as the test says. So what backpressure measures is exact,
// and with it every rate that it sets.
type timed struct {
	*rig
	interval time.Duration
	clock    *clock.Manual
	h        *harness.Harness
	next     time.Time // the last tick that was waited for
	ssc      *dstream.StreamingContext
	read     atomic.Int64 // records

	mu   sync.Mutex
	done []dstream.Progress
}

// timed starts the job; the test's end stops it. each is what a record costs in batch
// 1, 2, 3 …; later ones cost nothing.
func (r *rig) timed(topic string, interval time.Duration, each []time.Duration, opts ...dstream.ContextOption) *timed {
	began := time.Unix(1_000_000, 0).UTC()
	j := &timed{rig: r, interval: interval, clock: clock.NewManual(began), h: harness.New(), next: began}
	j.h.RetryAtOnce() // nobody moves the clock for it
	j.ssc = dstream.New(interval, append(opts, dstream.WithClock(j.clock), dstream.WithHarness(j.h),
		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.done = append(j.done, p)
		}}))...)
	j.job(j.ssc, topic, each)
	require.NoError(r, j.ssc.Start())
	r.Cleanup(func() { _ = j.ssc.Stop(context.Background()) })
	return j
}

// job reads the topic from its beginning.
func (j *timed) job(ssc *dstream.StreamingContext, topic string, each []time.Duration) {
	in := kafka.DirectStream(ssc, "in", kafka.Brokers(strings.Split(j.addr, ",")...), kafka.Topics(topic), kafka.FromEarliest())
	dstream.ForeachRDD(in, func(ctx context.Context, b dstream.Batch, in *rdd.RDD[kafka.Record]) error {
		n, err := rdd.Count(ctx, in)
		j.read.Add(n)
		if i := int(b.Epoch) - 1; i < len(each) {
			j.clock.Advance(time.Duration(n) * each[i])
		}
		return err
	})
}

// tick lets the next batch come, and waits for it.
func (j *timed) tick() error {
	j.next = j.next.Add(j.interval)
	if d := j.next.Sub(j.clock.Now()); d > 0 { // a batch that took long has let it come by itself
		j.clock.Advance(d)
	}
	return j.h.WaitTick(j.ctx, j.next)
}

// batch waits for a batch by its number, and gives how many records of each partition
// it had, and what it says of its input.
func (j *timed) batch(number int) (rows []int64, s dstream.SourceProgress) {
	for j.batches() < number {
		require.NoError(j, j.tick())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s = j.done[number-1].Sources[0]
	for _, x := range s.Ranges {
		require.Equal(j, x.Until-x.From, x.InputRows)
		rows = append(rows, x.InputRows)
	}
	return rows, s
}

func (j *timed) batches() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.done)
}

// lag puts so many records into each of the two partitions.
func (r *rig) lag(topic string, each int) {
	var records []*kgo.Record
	for i := range 2 * each {
		records = append(records, value(int32(i%2), fmt.Sprint(i)))
	}
	r.produce(r.client(), topic, records...)
}

// TestRatesOfAJob: what whole batches take, with a cap for each partition of 100/s and
// batches of 100 ms. // KD7
func TestRatesOfAJob(t *testing.T) {
	onEach(t, func(r *rig) {
		capped := dstream.WithMaxRatePerPartition(100)
		const interval = 100 * time.Millisecond

		topic := r.topic(2)
		r.lag(topic, 50)
		j := r.timed(topic, interval, nil, capped)
		for n := range 5 {
			rows, s := j.batch(n + 1)
			require.Equal(r, []int64{10, 10}, rows, "a lag of 50 and 50, no backpressure")
			require.Zero(r, s.Rate)
		}
		rows, _ := j.batch(6)
		require.Equal(r, []int64{0, 0}, rows, "all is read")

		topic = r.topic(2)
		j = r.timed(topic, interval, nil, capped, dstream.WithBackpressure(), dstream.WithInitialRate(100))
		for n := range 3 {
			rows, s := j.batch(n + 1)
			require.Equal(r, []int64{0, 0}, rows, "no lag: there is nothing to limit")
			require.InDelta(r, 100, s.Rate, 0, "and nothing to learn a rate from")
		}
		r.lag(topic, 4)
		rows, _ = j.batch(4)
		require.Equal(r, []int64{4, 4}, rows, "all of it, below the rate of 100/s")

		topic = r.topic(2)
		r.lag(topic, 1000)
		j = r.timed(topic, interval, nil, capped, dstream.WithBackpressure(), dstream.WithInitialRate(1000))
		rows, s := j.batch(1)
		require.Equal(r, []int64{10, 10}, rows, "the partition's cap holds below the rate of 1000/s")
		require.InDelta(r, 1000, s.Rate, 0)
	})
}

// TestRatesThatBackpressureSets: rates of 100, 50 and 20 records a second make batches
// of 50, 25 and 10 in half a second, shared by lag. The job is as slow as these rates:
// without integral and derived terms the estimate is the speed that was measured. // KD8
func TestRatesThatBackpressureSets(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(2)
		r.lag(topic, 1000)
		at := func(speed int64) time.Duration { return time.Second / time.Duration(speed) } // of records a second
		j := r.timed(topic, 500*time.Millisecond, []time.Duration{at(100), at(50), at(20), at(100), at(100)},
			dstream.WithMaxRatePerPartition(100), dstream.WithBackpressure(dstream.PIDFactors(1, 0, 0), dstream.MinRate(1)), dstream.WithInitialRate(100))
		for i, x := range []struct{ rate, rows int64 }{
			{100, 50}, {100, 50}, // the first measure only begins
			{50, 25}, {20, 10},
			{100, 50}, // and up again
		} {
			rows, s := j.batch(i + 1)
			require.InDelta(r, x.rate, s.Rate, 1e-6)
			require.Equal(r, x.rows, s.Limit)
			require.Equal(r, x.rows, rows[0]+rows[1], "%v at %d/s", rows, x.rate)
			require.InDelta(r, rows[0], rows[1], 2, "the lags are nearly the same; what their division leaves goes to one")
		}
	})
}
