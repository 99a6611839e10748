package kafkatest

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// TestOnePartitionIsBlocked: the fetches of one partition get no answer while its log
// grows. It alone waits, longer and longer, and its lag rises; a warning and the health
// name it, while the batch still runs; then all is clear. // report 38
func TestOnePartitionIsBlocked(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(3)
		cl := r.client()
		for p := range int32(3) {
			r.produce(cl, topic, value(p, "first"))
		}
		b := &blockade{topic: topic, partition: 1, open: make(chan struct{})}
		open := sync.OnceFunc(func() { close(b.open) })
		defer open()
		told, done := make(chan string, 100), make(chan dstream.Progress, 10_000)
		ssc := dstream.New(20*time.Millisecond, dstream.WithListener(dstream.Listener{
			SourceNotice:   func(name string, n source.Notice) { told <- name + ": " + n.Text },
			BatchCompleted: func(p dstream.Progress) { done <- p },
		}))
		dstream.Foreach(kafka.DirectStream(ssc, "in", kafka.Brokers(strings.Split(r.addr, ",")...), kafka.Topics(topic), kafka.FromEarliest(),
			kafka.StallAfter(200*time.Millisecond), kafka.ReadAhead(0), kafka.RequestTimeout(patience), kafka.RetryFor(patience),
			kafka.Dialer(onRequests(b.ask))), func(context.Context, dstream.Batch, kafka.Record) error { return nil })
		require.NoError(r, ssc.Start())
		select {
		case text := <-told:
			require.Contains(r, text, `partition 1 is stalled`)
		case <-r.ctx.Done():
			r.Fatal("nobody is told of the stall")
		}
		require.Empty(r, done, "while the batch runs")
		for range 4 {
			r.produce(cl, topic, value(1, "more"))
		}
		blocked := func() source.PartitionReport {
			parts := ssc.Health().Sources[0].Partitions
			require.Len(r, parts, 3)
			for _, i := range []int{0, 2} {
				require.Zero(r, parts[i].Waiting, parts[i].Partition)
				require.False(r, parts[i].Stalled, parts[i].Partition)
			}
			return parts[1]
		}
		before := blocked()
		require.True(r, before.Stalled)
		r.eventually("the lag of a blocked partition", func() bool {
			now := blocked()
			return now.Lag == 5 && now.End == 5 && now.Waiting > before.Waiting && now.Progress.Equal(before.Progress)
		})
		err := ssc.Healthy()
		require.ErrorIs(r, err, dstream.ErrStalled)
		require.ErrorContains(r, err, "partition 1 is stalled")
		require.NotContains(r, err.Error(), "partition 0")
		require.NotContains(r, err.Error(), "partition 2")

		open()
		require.EqualValues(r, 3, (<-done).InputRows)
		require.EqualValues(r, 4, (<-done).InputRows, "all is read one batch later")
		require.NoError(r, ssc.Healthy())
		for _, x := range ssc.Health().Sources[0].Partitions {
			require.Zero(r, x.Lag, x.Partition)
		}
		require.Contains(r, <-told, "partition 1: reading moves again")
		require.NoError(r, ssc.Stop(r.ctx))
	})
}

// eventually waits for a condition.
func (r *rig) eventually(what string, done func() bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.Fatalf("%s does not come", what)
		}
	}
}

// blockade holds the fetches of one partition until it is opened.
type blockade struct {
	topic     string
	partition uint32
	open      chan struct{}
}

// ask waits if it must: it is told of requests.
func (b *blockade) ask(number uint16, bytes []byte) {
	if number == fetchRequest && b.asks(bytes) {
		<-b.open
	}
}

// asks says whether a fetch is for the partition: its number stands behind the topic's
// name and the number of partitions.
func (b *blockade) asks(p []byte) bool {
	_, rest, found := bytes.Cut(p, []byte(b.topic))
	return found && len(rest) >= 8 && binary.BigEndian.Uint32(rest[4:]) == b.partition
}
