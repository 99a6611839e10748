package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
)

// report 37: a cancel in the middle of a batch finishes and commits that batch with its
// output, and the next run goes on behind it: every total is there once, and none
// was missing in between.
func TestStopInMidBatch(t *testing.T) {
	onEach(t, func(r *rig) {
		const count, batch, stopAt = 200, 20, 130 // in the seventh batch
		in, out, dir := r.topic(2), r.topic(1), r.TempDir()
		want := r.words(in, 2, 10, count)
		ctx, cancel := context.WithCancel(r.ctx)
		defer cancel()
		all := r.ctx
		var seen atomic.Int64
		var epochs []uint64
		run := func() error {
			return r.exactly(exactJob{in: in, out: out, each: func(kafka.Record) error {
				if seen.Add(1) == stopAt {
					cancel()
				}
				return nil
			}}, dstream.WithCheckpoint(dir), dstream.WithMaxRecordsPerBatch(batch), dstream.WithStopTimeout(patience),
				dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { epochs = append(epochs, p.Batch.Epoch) }}))
		}
		r.ctx = ctx
		require.NoError(r, run())
		r.ctx = all
		require.Equal(r, []uint64{1, 2, 3, 4, 5, 6, 7}, epochs)
		require.EqualValues(r, 7*batch, seen.Load(), "no batch began behind the cancel")
		require.NoError(r, r.settle(r.ctx))
		require.Len(r, r.otherRead(out), 7*batch)
		require.NoError(r, run())
		require.EqualValues(r, count, seen.Load(), "nothing is read again")
		var lines []string
		require.NoError(r, r.settle(r.ctx))
		for _, x := range r.otherRead(out) {
			lines = append(lines, string(x.Value))
		}
		r.requireTotals(want, lines)
	})
}

// report 8: records of which nothing comes out count as read, whether a filter leaves
// them out or a function rejects them: the position and the group's offset are behind
// them, the lag is 0, and the next run reads nothing again.
func TestSkippedRecordsMoveThePosition(t *testing.T) {
	onEach(t, func(r *rig) {
		r.requirePosition(0, func(in dstream.Stream[kafka.Record], met func()) *dstream.DStream[kafka.Record] {
			return dstream.Filter(in, func(kafka.Record) bool { met(); return false })
		})
		r.requirePosition(5, func(in dstream.Stream[kafka.Record], met func()) *dstream.DStream[kafka.Record] {
			return dstream.MapErr(in, func(x kafka.Record) (kafka.Record, error) {
				met()
				return x, errors.New("it has no time")
			})
		})
	})
}

// requirePosition reads five records, all of which a step lets go no further.
func (r *rig) requirePosition(skipped int64, step func(in dstream.Stream[kafka.Record], met func()) *dstream.DStream[kafka.Record]) {
	topic, dir := r.topic(1), r.TempDir()
	r.produce(r.client(), topic, letters(5)...)
	all := int64(0)
	var read atomic.Int64
	var m kafka.Monitor
	run := func() int64 {
		before := read.Load()
		require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
			none := step(r.stream(ssc, topic, kafka.Group(topic), kafka.Watch(&m), kafka.RetryFor(time.Minute)), func() { read.Add(1) })
			out := dstream.MapWithState(dstream.KeyBy(none, kafka.Record.KeyText), dstream.Function(
				func(key string, _ dstream.Option[kafka.Record], _ *dstream.State[int]) string { return fmt.Sprint(key) }).Named("none"))
			collect(out)
			return nil
		}, dstream.WithCheckpoint(dir), dstream.WithRecordPolicy(dstream.Skip), dstream.WithListener(dstream.Listener{
			BatchCompleted: func(p dstream.Progress) { all += p.SkippedRecords },
		})))
		return read.Load() - before
	}
	require.GreaterOrEqual(r, run(), int64(5), "a first attempt may stop at the first one")
	require.Equal(r, skipped, all)
	r.awaitGroup(topic, topic, 5)
	for _, p := range m.Report().Partitions {
		require.Zero(r, p.Lag)
	}
	require.Zero(r, run(), "the next run reads nothing again")
	require.Equal(r, skipped, all)
}
