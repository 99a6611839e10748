package dstream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// F11, CP1: an inverse window with a checkpoint interval, killed after every batch, goes on, and what
// is behind it is written as a whole at multiples of the interval.
func TestCheckpointIntervalOfWindows(t *testing.T) {
	add, sub := func(a, b int) int { return a + b }, func(a, b int) int { return a - b }
	job := func(c ssc) error {
		in := dstream.QueueNamed[kv](c, "in", 1)
		dstream.Print(dstream.ReduceByKeyAndWindowInverse(in, add, sub, nil, 4*sec, sec, dstream.Name("sums"), dstream.NumPartitions(1)).Checkpoint(2*sec), 10, dstream.Name("sums out"))
		dstream.Print(dstream.Window(in, 3*sec, sec).Named("all").Checkpoint(3*sec), 10, dstream.Name("all out"))
		dstream.Print(dstream.CountByWindow(in, 3*sec, sec).Named("count").Checkpoint(2*sec), 10, dstream.Name("count out"))
		dstream.Print(dstream.CountByValueAndWindow(in, 3*sec, sec, dstream.Name("values"), dstream.NumPartitions(1)).Checkpoint(2*sec), 10, dstream.Name("values out"))
		dstream.Print(dstream.ReduceByWindowInverse(dstream.Map(in, func(p kv) int { return p.Value }), add, sub, 3*sec, sec).Named("total").Checkpoint(2*sec), 10, dstream.Name("total out"))
		return nil
	}
	run := func(durable bool) (*milltest.Kit, any) {
		kit := milltest.New(t, sec, job)
		if durable {
			kit.Checkpoint(dstream.RetainSnapshots(20))
		}
		in := milltest.Input[kv](kit, "in")
		for i := range 9 {
			in.Batch(kv{Key: "a", Value: 1 << i}, kv{Key: "b", Value: i})
		}
		for i := range 9 {
			if i > 0 && durable {
				require.NoError(t, kit.Err())
				kit.Restart()
			}
			kit.Tick(1)
		}
		return kit, []any{milltest.Output[kv](kit, "sums out"), milltest.Output[kv](kit, "all out"), milltest.Output[int64](kit, "count out"),
			milltest.Output[dstream.Pair[kv, int64]](kit, "values out"), milltest.Output[int](kit, "total out")}
	}
	_, want := run(false) // without a checkpoint it is no fault either
	kit, got := run(true)
	require.Equal(t, want, got)

	store := kit.CheckpointStore("reader")
	c, err := checkpoint.OpenRoot(store).Newest(t.Context())
	require.NoError(t, err)
	m, err := checkpoint.OpenRoot(store).Metadata(t.Context(), c.Metadata)
	require.NoError(t, err)
	intervals := map[string]string{}
	for _, op := range m.Operators {
		intervals[op.Name] = op.Settings["checkpointInterval"]
	}
	require.Equal(t, map[string]string{
		"sums": "2s", "sums batches": "2s", "all batches": "3s", "count": "2s", "count batches": "2s",
		"values": "2s", "values batches": "2s", "total": "2s", "total batches": "2s",
	}, intervals)
	list, err := store.List(t.Context(), "state/")
	require.NoError(t, err)
	snapshots := 0
	for _, o := range list {
		if strings.HasSuffix(o.Name, ".snapshot") {
			snapshots++
		}
	}
	require.Positive(t, snapshots)
}

// F11: the interval is a multiple of the window's slide, and other streams have none.
func TestCheckpointIntervalFaults(t *testing.T) {
	add := func(a, b int) int { return a + b }
	for want, set := range map[string]func(in *dstream.DStream[kv]){
		"the checkpoint interval 3s is not a multiple of the slide 2s": func(in *dstream.DStream[kv]) {
			dstream.ReduceByKeyAndWindowInverse(in, add, add, nil, 4*sec, 2*sec).Checkpoint(3 * sec)
		},
		"the checkpoint interval 1s is not a multiple of the slide 2s": func(in *dstream.DStream[kv]) {
			dstream.Window(in, 4*sec, 2*sec).Checkpoint(sec)
		},
		"the stream has no state of its own": func(in *dstream.DStream[kv]) {
			dstream.Map(dstream.Window(in, 4*sec, 2*sec), func(p kv) kv { return p }).Checkpoint(2 * sec)
		},
	} {
		kit := milltest.New(t, sec, func(c ssc) error {
			in := dstream.QueueNamed[kv](c, "in", 1)
			set(in)
			dstream.Print(in, 1)
			return nil
		})
		require.ErrorContains(t, kit.Start(), want)
	}
}

// R6: batches of an earlier run are not left out in silence; those that windows read are there, and ticks
// without a batch are left out as ever.
func TestSliceOverRestarts(t *testing.T) {
	var cached, windowed, unread dstream.Stream[int]
	kit := milltest.New(t, sec, func(c ssc) error {
		in := dstream.QueueNamed[int](c, "in", 1)
		windowed = in
		cached = dstream.Map(in, func(i int) int { return i }).Cache()
		unread = dstream.Map(in, func(i int) int { return -i }).Cache()
		dstream.Print(cached, 1, dstream.Name("cached"))
		dstream.Print(dstream.Window(in, 5*sec, sec).Named("w"), 1, dstream.Name("w out"))
		return nil
	}, dstream.WithRemember(100*sec))
	kit.Checkpoint()
	milltest.Input[int](kit, "in").Batches([]int{1}, []int{2}, []int{3}, []int{4}, []int{5})
	slice := func(s dstream.Stream[int]) (n int, err error) {
		got, err := dstream.Slice(s, kit.Now().Add(-9*sec), kit.Now())
		for _, b := range got {
			b.RDD.Release()
		}
		return len(got), err
	}
	kit.Tick(3)
	n, err := slice(cached)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	kit.Restart()
	kit.AdvanceTime(2 * sec) // while it is down
	kit.Tick(1)
	_, err = slice(cached)
	var gone *dstream.ForgottenError
	require.ErrorAs(t, err, &gone)
	require.True(t, gone.Earlier)
	require.ErrorContains(t, err, "the stream remembers 1m40s")
	require.ErrorContains(t, err, "of an earlier run")
	got, err := dstream.Slice(cached, kit.Now(), kit.Now())
	require.NoError(t, err)
	require.Len(t, got, 1)
	got[0].RDD.Release()
	n, err = slice(windowed)
	require.NoError(t, err)
	require.Equal(t, 4, n)

	_, err = slice(unread)
	require.ErrorContains(t, err, "no output depends on it")
}
