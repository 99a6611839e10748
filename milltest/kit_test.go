package milltest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

type count = dstream.Pair[string, int]

// wordCount is a job as a user writes it: nothing in it knows of the kit.
func wordCount(ssc *dstream.StreamingContext) error {
	lines := dstream.From(ssc, "lines", source.NewQueue[string](1))
	words := dstream.FlatMap(lines, strings.Fields)
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(
		func(word string, one dstream.Option[int], state *dstream.State[int]) count {
			n := state.OrElse(0) + one.OrElse(0)
			if !state.IsTimingOut() {
				state.Update(n)
			}
			return dstream.KV(word, n)
		}).Named("counts").Timeout(3*time.Second).NumPartitions(2))
	dstream.Print(counts, 10)
	return nil
}

func TestSameJobOnScriptedBatches(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, wordCount)
	in := milltest.Input[string](kit, "lines")
	in.Batch("a b a").Batch().Batch("b")

	kit.Tick(1)
	assert.Equal(t, [][]count{{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "a", Value: 2}}}, sorted(milltest.Output[count](kit, "counts")))
	assert.Equal(t, map[string]int{"a": 2, "b": 1}, milltest.State[string, int](kit, "counts"))
	assert.Equal(t, 2, in.Pending())

	kit.Tick(2)
	assert.Equal(t, map[string]milltest.Timed[int]{
		"a": {State: 2, Time: time.Unix(1, 0).UTC()},
		"b": {State: 2, Time: time.Unix(3, 0).UTC()},
	}, milltest.StateTimes[string, int](kit, "counts"))
	assert.Len(t, milltest.Output[count](kit, "counts"), 3)

	kit.Tick(2) // the script is used up: empty batches, in which a times out
	assert.Equal(t, map[string]int{"b": 2}, milltest.State[string, int](kit, "counts"))
	assert.Equal(t, time.Unix(5, 0).UTC(), kit.Now())
	progress := kit.Progress()
	require.Len(t, progress, 5)
	assert.EqualValues(t, 1, progress[0].InputRows)
	assert.EqualValues(t, 1, progress[4].Operators[0].TimedOut)
	assert.Equal(t, time.Unix(5, 0).UTC(), progress[4].Batch.Time)
	assert.NoError(t, kit.Stop())
	assert.True(t, kit.Ended())
	kit.Tick(1) // after the end a tick does nothing
	assert.Len(t, kit.Progress(), 5)
}

// sorted puts keys in order, keeping the order of each key's records: which
// partition a key lives in is no concern of these tests.
func sorted(batches [][]count) [][]count {
	for _, b := range batches {
		for i := range b {
			for j := i; j > 0 && b[j].Key < b[j-1].Key; j-- {
				b[j], b[j-1] = b[j-1], b[j]
			}
		}
	}
	for _, b := range batches {
		if len(b) == 3 && b[0].Key == "a" && b[1].Key == "a" {
			b[1], b[2] = b[2], b[1]
		}
	}
	return batches
}

func TestInsideASynctestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kit := milltest.New(t, time.Hour, wordCount)
		milltest.Input[string](kit, "lines").Batch("x")
		before := time.Now()
		kit.Tick(3)
		assert.Equal(t, before, time.Now(), "the kit must not wait by the bubble's clock")
		assert.Equal(t, map[string]int{}, milltest.State[string, int](kit, "counts"))
	})
}

func TestStartAtAndUnalignedGrid(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, 10*time.Second, wordCount)
	kit.StartAt(time.Date(2024, 5, 1, 12, 0, 3, 0, time.UTC))
	kit.Tick(2)
	p := kit.Progress()
	require.Len(t, p, 2)
	assert.Equal(t, time.Date(2024, 5, 1, 12, 0, 10, 0, time.UTC), p[0].Batch.Time)
	assert.Equal(t, time.Date(2024, 5, 1, 12, 0, 20, 0, time.UTC), p[1].Batch.Time)
}

// numbers is a stream of numbers with one output by the job's own function.
func numbers(got func(int) error) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "numbers", source.NewQueue[int](1))
		dstream.Foreach(dstream.Map(in, func(i int) int { return i * 10 }), func(_ context.Context, _ dstream.Batch, v int) error {
			return got(v)
		}, dstream.Name("tens"))
		return nil
	}
}

func TestOutputFunctionsRunAndAreCaptured(t *testing.T) {
	t.Parallel()
	var sum atomic.Int64
	kit := milltest.New(t, time.Second, numbers(func(v int) error { sum.Add(int64(v)); return nil }))
	milltest.Input[int](kit, "numbers").Partitions(2).Batch(1, 2, 3).Empty(1)
	kit.Tick(2)
	assert.EqualValues(t, 60, sum.Load())
	assert.Equal(t, [][]int{{10, 20, 30}, {}}, milltest.Output[int](kit, "tens"))
	assert.Equal(t, [][][]int{{{10}, {20, 30}}, {{}, {}}}, normal(milltest.OutputParts[int](kit, "tens")))
}

// normal makes no difference between an empty and a nil partition.
func normal(batches [][][]int) [][][]int {
	for _, b := range batches {
		for i, p := range b {
			if p == nil {
				b[i] = []int{}
			}
		}
	}
	return batches
}

func TestReplacedAndDiscardedOutputsDoNotRun(t *testing.T) {
	t.Parallel()
	fail := func(int) error { return errors.New("the database") }
	kit := milltest.New(t, time.Second, numbers(fail))
	kit.ReplaceOutput("tens")
	milltest.Input[int](kit, "numbers").Batch(1)
	kit.Tick(1)
	assert.Equal(t, [][]int{{10}}, milltest.Output[int](kit, "tens"))

	kit = milltest.New(t, time.Second, numbers(fail))
	kit.DiscardOutput("tens")
	milltest.Input[int](kit, "numbers").Batch(1)
	kit.Tick(1)
	assert.Equal(t, [][]int{nil}, milltest.Output[int](kit, "tens"))
}

func TestSeveralInputs(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		a := dstream.From(ssc, "a", source.NewQueue[int](1))
		b := dstream.From(ssc, "b", source.NewQueue[int](1))
		dstream.Print(dstream.Union(a, b), 1, dstream.Name("both"))
		return nil
	})
	milltest.Input[int](kit, "a").Batch(1).Batch(2)
	milltest.Input[int](kit, "b").Batch(10)
	kit.Tick(2)
	assert.Equal(t, [][]int{{1, 10}, {2}}, milltest.Output[int](kit, "both"))
}

func TestEndStopsAJobThatWaitsForIt(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, numbers(func(int) error { return nil }), dstream.WithStopWhenDone())
	milltest.Input[int](kit, "numbers").Batch(1).Batch(2).End()
	kit.Tick(10)
	assert.True(t, kit.Ended())
	assert.NoError(t, kit.Err())
	assert.Equal(t, [][]int{{10}, {20}}, milltest.Output[int](kit, "tens"))
}

func TestForeachRDDSeesPartitions(t *testing.T) {
	t.Parallel()
	var parts atomic.Int64
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "numbers", source.NewQueue[int](1))
		dstream.ForeachRDD(in, func(_ context.Context, _ dstream.Batch, r *rdd.RDD[int]) error {
			parts.Store(int64(r.NumPartitions()))
			return nil
		})
		return nil
	})
	milltest.Input[int](kit, "numbers").Partitions(5).Batch(1, 2)
	kit.Tick(1)
	assert.EqualValues(t, 5, parts.Load())
	assert.Equal(t, [][]int{{1, 2}}, milltest.Output[int](kit, "numbers"), "an unnamed output goes by its stream's name")
}
