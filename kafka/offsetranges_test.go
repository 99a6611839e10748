package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/rdd"
	"github.com/stretchr/testify/require"
)

// twoTopics has three partitions, one with holes, one empty.
func twoTopics(t *testing.T) *fakeBroker {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(3, "a", "b", "c"), batchtest.Empty(6, 9), batchtest.Values(10, "d"))
	b.log("t", 1)
	b.log("u-1", 0, batchtest.Values(0, "e", "f"))
	return b
}

// toEnd runs a job until all is read.
func toEnd(job dstream.Job) error {
	return dstream.Run(context.Background(), 5*time.Millisecond, job, dstream.WithStopWhenDone(), dstream.WithParallelism(2))
}

// Partition i of the RDD holds the records of range i, in Transform and ForeachRDD.
func TestOffsetRanges(t *testing.T) {
	b := twoTopics(t)
	var mu sync.Mutex
	got := map[OffsetRange]string{}
	look := func(r *rdd.RDD[Record]) error {
		ranges, err := OffsetRanges(r)
		if err != nil {
			return err
		}
		parts, err := rdd.Collect(t.Context(), rdd.Glom(r))
		if err != nil {
			return err
		}
		require.Len(t, parts, len(ranges))
		mu.Lock()
		defer mu.Unlock()
		for i, x := range ranges {
			for _, v := range parts[i] {
				require.Equal(t, x.TopicPartition, TopicPartition{v.Topic, v.Partition})
				require.True(t, v.Offset >= x.From && v.Offset < x.Until)
				got[x] += v.Text()
			}
			if x.Count() > 0 && got[x] == "" {
				got[x] = "-"
			}
		}
		return nil
	}
	require.NoError(t, toEnd(func(ssc *dstream.StreamingContext) error {
		in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t", "u-1"), FromEarliest(), StopAtEnd())
		same := dstream.Transform(in, func(_ time.Time, r *rdd.RDD[Record]) (*rdd.RDD[Record], error) { return r, look(r) })
		dstream.ForeachRDD(same, func(_ context.Context, _ dstream.Batch, r *rdd.RDD[Record]) error { return nil })
		return nil
	}))
	want := map[OffsetRange]string{
		{TopicPartition{"t", 0}, 3, 11}:  "abcd",
		{TopicPartition{"u-1", 0}, 0, 2}: "ef",
	}
	require.Equal(t, want, got)
	clear(got)
	require.NoError(t, toEnd(func(ssc *dstream.StreamingContext) error {
		in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t", "u-1"), FromEarliest(), StopAtEnd())
		dstream.ForeachRDD(in, func(_ context.Context, _ dstream.Batch, r *rdd.RDD[Record]) error { return look(r) })
		return nil
	}))
	require.Equal(t, want, got)
}

// What was made of a source's RDD has no ranges (as in Spark, where the cast fails).
func TestNoOffsetRanges(t *testing.T) {
	type stream = *dstream.DStream[Record]
	for name, step := range map[string]func(stream) stream{
		"map":         func(s stream) stream { return dstream.Map(s, func(r Record) Record { return r }) },
		"filter":      func(s stream) stream { return dstream.Filter(s, func(Record) bool { return true }) },
		"repartition": func(s stream) stream { return dstream.Repartition(s, 2) },
		"union":       func(s stream) stream { return dstream.Union(s, s) },
		"window":      func(s stream) stream { return dstream.Window(s, time.Second, time.Second) },
		"transform": func(s stream) stream {
			return dstream.Transform(s, func(_ time.Time, r *rdd.RDD[Record]) (*rdd.RDD[Record], error) {
				return rdd.FlatMap(r, func(r Record) []Record { return []Record{r} }), nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
				in := DirectStream(ssc, "in", Brokers("localhost:1"), Topics("t"))
				dstream.ForeachRDD(step(in), func(_ context.Context, _ dstream.Batch, r *rdd.RDD[Record]) error {
					_, err = OffsetRanges(r)
					return nil
				}, dstream.Name("out"))
				return nil
			})
			milltest.Input[Record](kit, "in").Batch(Record{}, Record{})
			kit.Tick(1)
			require.NoError(t, kit.Err())
			require.ErrorIs(t, err, dstream.ErrNoRanges)
		})
	}
	_, err := OffsetRanges(nil)
	require.ErrorContains(t, err, "nil RDD")
	_, err = OffsetRanges(rdd.Parallelize([]Record{{}}, 1))
	require.ErrorIs(t, err, dstream.ErrNoRanges)
}

// A job that asks for its ranges runs on a test's records too, and a redone batch has the
// same ones.
func TestOffsetRangesInAKit(t *testing.T) {
	var got []string
	boom := errors.New("boom")
	fail := boom
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		in := DirectStream(ssc, "in", Brokers("localhost:1"), Topics("t"))
		dstream.ForeachRDD(in, func(_ context.Context, b dstream.Batch, r *rdd.RDD[Record]) error {
			ranges, err := OffsetRanges(r)
			if err != nil {
				return err
			}
			got = append(got, fmt.Sprint(b.Epoch, " ", ranges))
			return fail
		}, dstream.Name("out"))
		return nil
	})
	kit.Checkpoint()
	milltest.Input[Record](kit, "in").Partitions(2).Batch(Record{}, Record{}, Record{})
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), boom)
	fail = nil
	kit.Crash()
	kit.Tick(1)
	require.NoError(t, kit.Err())
	require.GreaterOrEqual(t, len(got), 2)
	require.Equal(t, "1 [in-0 [0, 1) in-1 [0, 2)]", got[0])
	require.Equal(t, got[0], got[1])
}

func collectRanges(t *testing.T, r *rdd.RDD[Record]) (out []string, err error) {
	t.Helper()
	parts, err := rdd.Collect(t.Context(), rdd.Glom(r))
	for _, part := range parts {
		text := ""
		for _, v := range part {
			text += fmt.Sprintf("%s@%d=%s ", v.Topic, v.Offset, v.Text())
		}
		out = append(out, text)
	}
	return out, err
}

// Ranges are read as they are given: of several topics, over holes, overlapping, empty.
func TestRDD(t *testing.T) {
	b := twoTopics(t)
	ranges := []OffsetRange{
		{TopicPartition{"u-1", 0}, 1, 2}, {TopicPartition{"t", 0}, 4, 11}, {TopicPartition{"t", 0}, 3, 5},
		{TopicPartition{"t", 1}, 0, 0}, {TopicPartition{"t", 0}, 6, 10},
	}
	r, err := RDD(ranges, Brokers(b.addr()), RetryFor(0))
	require.NoError(t, err)
	ranges[0].From = 0 // the caller's own
	require.Equal(t, 5, r.NumPartitions())
	for range 2 {
		got, err := collectRanges(t, r)
		require.NoError(t, err)
		require.Equal(t, []string{"u-1@1=f ", "t@4=b t@5=c t@10=d ", "t@3=a t@4=b ", "", ""}, got)
	}
	_, err = OffsetRanges(r)
	require.ErrorIs(t, err, dstream.ErrNoRanges)

	seen := int64(0)
	require.NoError(t, toEnd(func(ssc *dstream.StreamingContext) error {
		both := dstream.Union(dstream.QueueStream(ssc, []Record{{}}), dstream.Constant(ssc, r))
		dstream.ForeachRDD(both, func(ctx context.Context, _ dstream.Batch, r *rdd.RDD[Record]) (err error) {
			seen, err = rdd.Count(ctx, r)
			return err
		})
		return nil
	}))
	require.EqualValues(t, 7, seen)
}

// Ranges that are not there.
func TestRDDLost(t *testing.T) {
	b := twoTopics(t)
	for _, tc := range []struct {
		r    OffsetRange
		want string
	}{
		{OffsetRange{TopicPartition{"t", 0}, 1, 5}, "offset 1 is gone"},
		{OffsetRange{TopicPartition{"t", 0}, 10, 14}, "the log ends at offset 11"},
		{OffsetRange{TopicPartition{"t", 4}, 0, 1}, "partition t-4 does not exist"},
		{OffsetRange{TopicPartition{"nothing", 0}, 0, 1}, `"nothing"`},
	} {
		r, err := RDD([]OffsetRange{tc.r}, Brokers(b.addr()), RetryFor(0), RequestTimeout(100*time.Millisecond))
		require.NoError(t, err)
		_, err = rdd.Collect(t.Context(), r)
		require.ErrorContains(t, err, tc.want)
		var read *dstream.ReadError
		require.ErrorAs(t, err, &read)
	}
	r, err := RDD([]OffsetRange{{TopicPartition{"t", 0}, 0, 5}}, Brokers(b.addr()), ContinueOnLoss())
	require.NoError(t, err)
	got, err := collectRanges(t, r)
	require.NoError(t, err)
	require.Equal(t, []string{"t@3=a t@4=b "}, got)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = rdd.Collect(ctx, r)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRDDFaults(t *testing.T) {
	one := []OffsetRange{{TopicPartition{"t", 0}, 0, 1}}
	for _, tc := range []struct {
		ranges []OffsetRange
		opts   []SourceOption
		want   string
	}{
		{one, nil, "no broker is named"},
		{nil, []SourceOption{Brokers("a:1")}, "at least one range"},
		{[]OffsetRange{{TopicPartition{"t", 0}, 2, 1}}, []SourceOption{Brokers("a:1")}, "no range t-0 [2, 1)"},
		{[]OffsetRange{{TopicPartition{"", 0}, 0, 1}}, []SourceOption{Brokers("a:1")}, "no range"},
		{one, []SourceOption{Brokers("a:1"), nil}, "an option is nil"},
		{one, []SourceOption{Brokers("a:1"), Topics("t")}, "leave out the options of topics"},
		{one, []SourceOption{Brokers("a:1"), FromEarliest()}, "leave out the options of topics"},
		{one, []SourceOption{Brokers("a:1"), Group("g")}, "do not apply to an RDD"},
	} {
		_, err := RDD(tc.ranges, tc.opts...)
		require.ErrorContains(t, err, tc.want)
	}
}
