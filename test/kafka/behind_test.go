package kafkatest

import (
	"fmt"
	"testing"

	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestPositionBehindAnOpenTransaction: who has read everything up to behind the last stable
// offset, or is to start there, waits when it reads committed records alone, and goes on when
// the transaction is over; so does a range that was planned before. // report 26
func TestPositionBehindAnOpenTransaction(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		p := kafka.TopicPartition{Topic: topic}
		cl := r.client()
		for i := range 10 {
			r.produce(cl, topic, value(0, fmt.Sprint(i)))
		}
		open := r.client(kgo.TransactionalID(topic))
		require.NoError(r, open.BeginTransaction())
		r.produce(open, topic, value(0, "open"))
		for i := range 20 {
			r.produce(cl, topic, value(0, fmt.Sprint("behind ", i)))
		}
		last, got := r.planned(r.opened(topic, nil, kafka.ReadUncommitted()), 0)
		require.Len(r, got, 31)
		before := last
		before.Ranges = []source.Range{last.Ranges[0]}
		before.Ranges[0].From = 5
		restarted := r.opened(topic, &before)
		named := r.opened(topic, nil, kafka.FromOffsets(map[kafka.TopicPartition]int64{p: 20}))
		for range 2 {
			for s, at := range map[source.Source[kafka.Record]]int64{restarted: 31, named: 20} {
				plan, _ := r.planned(s, 0)
				require.Equal(r, []int64{at, at}, []int64{plan.Ranges[0].From, plan.Ranges[0].Until})
			}
		}
		data, err := kafka.RDD([]kafka.OffsetRange{{TopicPartition: p, From: 5, Until: 20}}, kafka.Brokers(r.addr), kafka.RetryFor(1))
		require.NoError(r, err)
		_, err = rdd.Collect(r.ctx, data)
		require.ErrorContains(r, err, "committed records end at offset 10 (the last stable offset)")

		n, done := 0, make(chan error)
		go func() {
			done <- restarted.Read(r.ctx, before.Ranges[0], func(int64, kafka.Record) error {
				n++
				return nil
			})
		}()
		require.NoError(r, open.EndTransaction(r.ctx, kgo.TryCommit))
		require.NoError(r, <-done)
		require.Equal(r, 26, n)
		require.Len(r, r.until(named, 11), 11)
		r.produce(cl, topic, value(0, "more"))
		require.Equal(r, []string{"0@32=more"}, r.until(restarted, 1))
	})
}

// until plans and reads until so many records came.
func (r *rig) until(s source.Source[kafka.Record], n int) (got []string) {
	for len(got) < n {
		_, more := r.planned(s, 0)
		got = append(got, more...)
		require.NoError(r, r.ctx.Err())
	}
	return got
}
