package dstream_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// longest is the longest window of whole seconds: all that there ever was.
const longest = math.MaxInt64 / time.Second * time.Second

// A window as long as time itself loses nothing: neither while it runs, nor what windows of windows
// need, nor over a crash.
func TestWindowOfAllThereWas(t *testing.T) {
	kit := milltest.New(t, sec, func(c ssc) error {
		in := dstream.QueueNamed[int](c, "in", 1)
		all := dstream.Window(in, longest, sec).Named("all").Remember(5 * sec)
		dstream.Print(all, 0, dstream.Name("all"))
		dstream.Print(dstream.Window(all, longest, sec).Named("twice"), 0, dstream.Name("twice"))
		dstream.Print(dstream.CountByWindow(in, longest, sec).Named("count"), 0, dstream.Name("count"))
		return nil
	})
	kit.Checkpoint()
	milltest.Input[int](kit, "in").Batches([]int{1}, []int{2}, nil, []int{3})
	kit.Tick(2)
	kit.Crash()
	kit.Tick(1)
	kit.Restart()
	kit.Tick(1)
	require.NoError(t, kit.Err())
	require.Equal(t, [][]int{{1}, {1, 2}, {1, 2}, {1, 2, 3}}, milltest.Output[int](kit, "all"))
	require.Equal(t, [][]int{{1}, {1, 1, 2}, {1, 1, 2, 1, 2}, {1, 1, 2, 1, 2, 1, 2, 3}}, milltest.Output[int](kit, "twice"))
	require.Equal(t, [][]int64{{1}, {2}, {2}, {3}}, milltest.Output[int64](kit, "count"))
}

// A stream made of tables alone goes with streams of any slide.
func TestTablesHaveNoSlide(t *testing.T) {
	kit := milltest.New(t, sec, func(c ssc) error {
		in := dstream.QueueNamed[kv](c, "in", 1)
		table := dstream.Constant(c, dstream.Parallelize(c, []kv{{Key: "a", Value: 10}, {Key: "b", Value: 20}}))
		tenth := dstream.MapValues(table, func(v int) int { return v / 10 })
		both := dstream.Union(table, tenth)
		dstream.Print(dstream.Map(dstream.Join(dstream.Window(in, 2*sec, 2*sec), both, dstream.NumPartitions(1)),
			func(p dstream.Pair[string, dstream.Joined[int, int]]) kv {
				return kv{Key: p.Key, Value: p.Value.Left * p.Value.Right}
			}), 0, dstream.Name("o"))
		return nil
	})
	milltest.Input[kv](kit, "in").Batches(kvs("a1"), kvs("b2 c3"))
	kit.Tick(2)
	require.NoError(t, kit.Err())
	require.Equal(t, []string{"", "a1 a10 b4 b40"}, show(milltest.Output[kv](kit, "o")))

	// A window and an operator's state are no tables.
	c := dstream.New(sec)
	table := dstream.Constant(c, dstream.Parallelize(c, []kv{{Key: "a", Value: 10}}))
	dstream.Print(dstream.Union(dstream.Window(table, 3*sec, 3*sec), dstream.Window(table, 2*sec, 2*sec)), 1)
	require.ErrorContains(t, c.Validate(), "the streams have different slides: 3s of")
}

// The kit tells of what is added to a running graph, as Wait does.
func TestAddedInABody(t *testing.T) { // F8
	kit := milltest.New(t, sec, func(c ssc) error {
		in := dstream.QueueNamed[int](c, "in", 1)
		dstream.Print(dstream.Transform(in, func(_ time.Time, r *dstream.RDD[int]) (*dstream.RDD[int], error) {
			dstream.Print(in, 1)
			return r, nil
		}), 1)
		return nil
	})
	milltest.Input[int](kit, "in").Batch(1)
	kit.Tick(1)
	require.ErrorIs(t, kit.Stop(), dstream.ErrStarted)
	require.ErrorIs(t, kit.Err(), dstream.ErrStarted)
	require.ErrorContains(t, kit.Err(), "window_long_test.go")
}
