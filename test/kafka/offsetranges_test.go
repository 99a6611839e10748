package kafkatest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/rdd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestOffsetRanges: partition i of a batch's RDD holds the records of range i, the ranges
// of one batch begin where those of the one before end, and reading them later by
// themselves gives the same records.
func TestOffsetRanges(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(3)
		var records []*kgo.Record
		for i := range 60 {
			records = append(records, value(int32(i%3), fmt.Sprint(i)))
		}
		r.produce(r.client(), topic, records...)
		next := map[kafka.TopicPartition]int64{}
		var all []kafka.OffsetRange
		var seen [][]kafka.Record
		err := dstream.Run(r.ctx, 5*time.Millisecond, func(ssc *dstream.StreamingContext) error {
			in := r.stream(ssc, topic)
			dstream.ForeachRDD(in, func(ctx context.Context, _ dstream.Batch, rd *rdd.RDD[kafka.Record]) error {
				ranges, err := kafka.OffsetRanges(rd)
				if err != nil {
					return err
				}
				parts, err := rdd.Collect(ctx, rdd.Glom(rd))
				for i, x := range ranges {
					if x.From != next[x.TopicPartition] {
						return fmt.Errorf("%v does not begin at %d", x, next[x.TopicPartition])
					}
					next[x.TopicPartition] = x.Until
					all, seen = append(all, x), append(seen, parts[i])
				}
				return err
			})
			return nil
		}, dstream.WithStopWhenDone(), dstream.WithMaxRecordsPerBatch(25))
		require.NoError(r, err)
		require.Greater(r, len(all), 6)
		for p := range int32(3) {
			require.EqualValues(r, 20, next[kafka.TopicPartition{Topic: topic, Partition: p}])
		}
		again, err := kafka.RDD(all, kafka.Brokers(strings.Split(r.addr, ",")...))
		require.NoError(r, err)
		got, err := rdd.Collect(r.ctx, rdd.Glom(again))
		require.NoError(r, err)
		require.Len(r, got, len(seen))
		for i := range got {
			require.Equal(r, texts(seen[i]), texts(got[i]))
			require.Len(r, got[i], int(all[i].Count()))
		}
	})
}
