package kafkatest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transact writes the records in one transaction and ends it.
func (r *rig) transact(topic, id string, commit bool, records ...*kgo.Record) {
	cl := r.client(kgo.TransactionalID(id))
	require.NoError(r, cl.BeginTransaction())
	r.produce(cl, topic, records...)
	require.NoError(r, cl.EndTransaction(r.ctx, kgo.TransactionEndTry(commit)))
}

// report 21: the last position before the end is a transaction marker.
func TestEndIsAMarker(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.transact(topic, topic, true, value(0, "data"))
		require.Equal(r, []string{"0@0=data"}, texts(r.read(topic)), "and the run has ended")
		require.Equal(r, []string{"0@0=data"}, texts(r.read(topic, kafka.ReadUncommitted())))
	})
}

// report 24: a position in the middle of a record batch, which the broker sends from
// its beginning: nothing below the position comes out.
func TestNothingBelowThePosition(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		cl := r.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()))
		var records []*kgo.Record
		for i := range 100 {
			records = append(records, value(0, fmt.Sprint(i)))
		}
		r.produce(cl, topic, records...)
		got := texts(r.read(topic, kafka.FromOffsets(map[kafka.TopicPartition]int64{{Topic: topic}: 60})))
		require.Len(r, got, 40)
		require.Equal(r, "0@60=60", got[0])
		require.Equal(r, "0@99=99", got[39])
	})
}

// report 26: aborted records and markers do not come out, and open transactions are
// waited for.
func TestTransactions(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.transact(topic, topic+"-a", false, value(0, "a"))
		r.transact(topic, topic+"-b", true, value(0, "b"))
		open := r.client(kgo.TransactionalID(topic + "-c"))
		require.NoError(r, open.BeginTransaction())
		r.produce(open, topic, value(0, "c"))
		r.produce(r.client(), topic, value(0, "behind"))

		require.Equal(r, []string{"0@2=b"}, texts(r.read(topic)))
		require.Equal(r, []string{"0@0=a", "0@2=b", "0@4=c", "0@5=behind"}, texts(r.read(topic, kafka.ReadUncommitted())))
		require.NoError(r, open.EndTransaction(r.ctx, kgo.TryCommit))
		require.Equal(r, []string{"0@2=b", "0@4=c", "0@5=behind"}, texts(r.read(topic)))
	})
}

// report 29: a record of three times the fetch limit between two small ones.
func TestLargeRecord(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1, "max.message.bytes=4194304")
		cl := r.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
		big := strings.Repeat("x", 3<<20)
		for _, v := range []string{"small", big, "small too"} {
			r.produce(cl, topic, value(0, v))
		}
		require.Equal(r, []string{"0@0=small", "0@1=" + big, "0@2=small too"}, texts(r.read(topic, kafka.FetchMaxBytes(1<<20))))
	})
}

// report 29: a record that inflates beyond the budget is an error that names it.
func TestInflation(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1, "max.message.bytes=4194304")
		r.produce(r.client(), topic, value(0, "small"))
		cl := r.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()))
		r.produce(cl, topic, value(0, strings.Repeat("x", 3<<20)))
		err := r.run(func(ssc *dstream.StreamingContext) error {
			collect(r.stream(ssc, topic, kafka.MaxBatchBytes(1<<20)))
			return nil
		})
		var e *kafka.RecordError
		require.ErrorAs(r, err, &e)
		require.ErrorIs(r, err, kafka.ErrTooLarge)
		require.EqualValues(r, 1, e.Offset)
		require.Equal(r, topic, e.Topic)
	})
}

// sums adds up the numbers of a topic.
func (r *rig) sums(topic string, out **outputs[int], opts ...dstream.ContextOption) error {
	return r.sumsOf(topic, out, nil, opts...)
}

func (r *rig) sumsOf(topic string, out **outputs[int], source []kafka.SourceOption, opts ...dstream.ContextOption) error {
	return r.run(func(ssc *dstream.StreamingContext) error {
		numbers := dstream.MapPairErr(r.stream(ssc, topic, source...), func(x kafka.Record) (string, int, error) {
			n, err := strconv.Atoi(x.Text())
			return "sum", n, err
		})
		*out = collect(dstream.MapWithState(numbers, dstream.Function(
			func(_ string, n dstream.Option[int], state *dstream.State[int]) int {
				state.Update(state.OrElse(0) + n.OrElse(0))
				return state.OrElse(0)
			}).Named("sums")))
		return nil
	}, opts...)
}

// report 30: one bad record fails the run with its place, or is skipped and counted.
func TestBadRecord(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.produce(r.client(), topic, value(0, "1"), value(0, "garbage"), value(0, "3"))
		var out *outputs[int]
		for range 2 { // the next run fails at the same place
			err := r.sums(topic, &out)
			require.ErrorIs(r, err, strconv.ErrSyntax)
			for _, says := range []string{topic + "-0", "offset 1", "garbage"} {
				require.ErrorContains(r, err, says)
			}
			require.Empty(r, out.all, "nothing of the batch came out")
		}
		skipped := int64(0)
		require.NoError(r, r.sums(topic, &out, dstream.WithRecordPolicy(dstream.Skip), dstream.WithListener(dstream.Listener{
			BatchCompleted: func(p dstream.Progress) { skipped += p.SkippedRecords },
		})))
		require.Equal(r, []int{1, 4}, out.all)
		require.EqualValues(r, 1, skipped)
	})
}

// report 32: a tombstone is not an empty value.
func TestTombstones(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		a := func(v []byte) *kgo.Record { return &kgo.Record{Key: []byte("a"), Value: v} }
		r.produce(r.client(), topic, a([]byte("x")), a(nil), a([]byte{}), &kgo.Record{Value: []byte("no key")},
			&kgo.Record{Value: []byte("h"), Headers: []kgo.RecordHeader{{Key: "k", Value: []byte("v")}, {Key: "k", Value: []byte("w")}}})
		got := r.read(topic)
		require.Len(r, got, 5)
		require.Equal(r, []bool{false, true, false, false, false},
			[]bool{got[0].Tombstone(), got[1].Tombstone(), got[2].Tombstone(), got[3].Tombstone(), got[4].Tombstone()})
		require.Equal(r, []byte("a"), got[1].Key)
		require.NotNil(r, got[2].Value)
		require.Nil(r, got[3].Key)
		require.Equal(r, []kafka.Header{{Key: "k", Value: []byte("v")}, {Key: "k", Value: []byte("w")}}, got[4].Headers)
		require.Nil(r, got[0].Headers)
		require.False(r, got[0].Time.IsZero())

		var seen *outputs[string]
		require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
			byKey := dstream.KeyBy(r.stream(ssc, topic), func(x kafka.Record) string { return strings.Clone(x.KeyText()) })
			seen = collect(dstream.MapWithState(byKey, dstream.Function(
				func(key string, x dstream.Option[kafka.Record], _ *dstream.State[int]) string {
					v, ok := x.Get()
					return fmt.Sprintf("%s %t %t %q", key, ok, v.Tombstone(), v.Text())
				}).Named("seen").NumPartitions(1)))
			return nil
		}))
		require.Equal(r, []string{`a true false "x"`, `a true true ""`, `a true false ""`, ` true false "no key"`, ` true false "h"`}, seen.all)
	})
}

// report 36: a limit holds from the first batch on, is shared by lag, and starves
// nobody.
func TestLimits(t *testing.T) {
	onEach(t, func(r *rig) {
		const partitions = 200
		topic := r.topic(partitions)
		var records []*kgo.Record
		for i := range 5000 {
			records = append(records, value(0, fmt.Sprint(i)))
		}
		for i := int32(1); i < partitions; i++ {
			records = append(records, value(i, "x"))
		}
		r.produce(r.client(), topic, records...)
		for _, limit := range []int64{100, 1} {
			batch, met := 0, map[string]int{}
			ctx, cancel := context.WithCancel(r.ctx)
			defer cancel()
			require.NoError(r, dstream.Run(ctx, 20*time.Millisecond, func(ssc *dstream.StreamingContext) error {
				collect(r.stream(ssc, topic))
				return nil
			}, dstream.WithMaxRecordsPerBatch(limit), dstream.WithListener(dstream.Listener{
				BatchCompleted: func(p dstream.Progress) {
					if batch++; batch > 12 {
						return
					}
					rows := int64(0)
					for _, x := range p.Sources[0].Ranges {
						rows += x.InputRows
						if x.InputRows > 0 && met[x.Partition] == 0 {
							met[x.Partition] = batch
						}
					}
					assert.Len(r, p.Sources[0].Ranges, partitions)
					assert.LessOrEqual(r, rows, limit)
					if batch == 12 {
						cancel()
					}
				},
			})))
			require.GreaterOrEqual(r, batch, 12)
			if limit == 100 {
				require.Len(r, met, partitions)
				for name, at := range met {
					require.LessOrEqual(r, at, 10, name)
				}
			} else {
				require.Len(r, met, 12, "one record each batch, from 12 partitions")
			}
		}
	})
}
