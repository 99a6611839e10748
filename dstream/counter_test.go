package dstream_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/harness"
	"github.com/statemill/statemill/rdd"
)

// Every committed epoch counts once: failed attempts of partitions and outputs
// leave nothing, in functions, on other workers and in bodies of outputs.
func TestCounterCountsOnce(t *testing.T) {
	failed := map[int]bool{}
	bodies := 0
	var seen, inBody, inBodyTasks *dstream.Counter
	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		seen, inBody, inBodyTasks = ssc.Counter("seen"), ssc.Counter("body"), ssc.Counter("tasks")
		require.Same(t, seen, ssc.Counter("seen"))
		in := dstream.QueueNamed(ssc, "in", 1, []int{1, 2, 3}, []int{4}, []int{5})
		d := dstream.MapErr(in, func(i int) (int, error) {
			seen.Add(1)
			if i == 3 && !failed[i] {
				failed[i] = true
				return 0, errors.New("once")
			}
			return i, nil
		})
		dstream.ForeachRDD(d, func(ctx context.Context, b dstream.Batch, in *rdd.RDD[int]) error {
			bodies++
			inBody.Add(10)
			err := rdd.ForeachPartition(ctx, in, func(context.Context, int, iter.Seq[int]) error {
				inBodyTasks.Add(1)
				return nil
			})
			if bodies == 1 {
				return errors.New("once")
			}
			return err
		})
		return nil
	}, dstream.WithTaskRetries(1)).start()
	r.tick(1)
	require.Equal(t, []dstream.CounterProgress{
		{Name: "body", Added: 10, Total: 10}, {Name: "seen", Added: 3, Total: 3}, {Name: "tasks", Added: 1, Total: 1},
	}, r.last().Counters)
	r.tick(1)
	require.EqualValues(t, 4, seen.Value())
	require.EqualValues(t, 20, inBody.Value())
	require.EqualValues(t, 1, r.last().Counters[1].Added)

	// An epoch that is given up counts nothing.
	r.fail = func(harness.OutputCall) error { return errors.New("no") }
	require.Error(t, r.tryTick())
	require.EqualValues(t, 4, seen.Value())
	require.EqualValues(t, 2, inBodyTasks.Value())
}

// Totals survive stops, crashes and programs without the counter.
func TestCountersAreDurable(t *testing.T) {
	job := func(counts bool) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			add := func() {}
			if counts {
				c := ssc.Counter("words")
				add = func() { c.Add(1) }
			}
			dstream.Print(dstream.Map(dstream.QueueNamed[string](ssc, "words", 1), func(w string) string { add(); return w }), 1, dstream.Name("out"))
			return nil
		}
	}
	kit, in := durableKit(t, job(true))
	total := func() int64 { return kit.Context().Counter("words").Value() }
	in.Batch("a", "b")
	kit.Tick(1)
	require.EqualValues(t, 2, total())
	kit.Crash()
	in.Batch("c")
	kit.Tick(1)
	require.EqualValues(t, 3, total())
	kit.Restart()
	kit.Job(job(false))
	in.Batch("d")
	kit.Tick(1)
	kit.Restart()
	kit.Job(job(true))
	in.Batch("e")
	kit.Tick(1)
	require.EqualValues(t, 4, total())

}

func TestCounterFaults(t *testing.T) {
	ssc := dstream.New(time.Second)
	ssc.Counter("")
	dstream.Print(dstream.QueueStream(ssc, []int{1}), 1)
	require.ErrorContains(t, ssc.Validate(), "the counter has no name")

	r := newRig(t, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.QueueStream(ssc, []int{1}), 1)
		return nil
	}).start()
	r.ssc.Counter("late").Add(1)
	require.ErrorContains(t, r.end(), "StreamingContext.Counter")
}
