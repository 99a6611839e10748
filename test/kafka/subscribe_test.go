package kafkatest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// three makes three topics of 16 records in two partitions.
func three(r *rig) (topics []string) {
	for range 3 {
		topic := r.topic(2)
		var records []*kgo.Record
		for i := range int32(16) {
			records = append(records, value(i/11, fmt.Sprint(i))) // 11 and 5
		}
		r.produce(r.client(), topic, records...)
		topics = append(topics, topic)
	}
	return topics
}

// TestSubscribe: several topics, one from offsets; every range has as many records as
// offsets. // KD1
func TestSubscribe(t *testing.T) {
	onEach(t, func(r *rig) {
		topics := three(r)
		var out *outputs[kafka.Record]
		require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
			out = collect(r.stream(ssc, topics[0], kafka.Topics(topics[1:]...), kafka.FromOffsets(map[kafka.TopicPartition]int64{{Topic: topics[1]}: 2})))
			return nil
		}, dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) {
			assert.Len(r, p.Sources[0].Ranges, 6)
			for _, x := range p.Sources[0].Ranges {
				assert.Equal(r, x.Until-x.From, x.InputRows)
			}
		}})))
		require.Len(r, out.all, 46)
	})
}

// TestSubscribePattern: with offsets of two partitions; a topic that appears later is
// read from its beginning, in the same run and in the next one. // KD2, report 23
func TestSubscribePattern(t *testing.T) {
	onEach(t, func(r *rig) {
		topics := three(r)
		pattern := r.Name() // topics have the test's name
		pattern = topicName(pattern) + `-\d+`
		offsets := kafka.FromOffsets(map[kafka.TopicPartition]int64{{Topic: topics[0]}: 3, {Topic: topics[2]}: 4})
		open := func(last *source.Plan, opts ...kafka.SourceOption) source.Source[kafka.Record] {
			s := kafka.NewSource(append(opts, kafka.Brokers(r.addr), kafka.TopicPattern(pattern), kafka.RefreshEvery(0))...)
			require.NoError(r, s.Open(r.ctx, last))
			r.Cleanup(func() { s.Close() })
			return s
		}
		s := open(nil, kafka.FromEarliest(), offsets)
		last, got := r.planned(s, 0)
		require.Len(r, got, 41)
		late := r.topic(1)
		r.produce(r.client(), late, value(0, "late"))
		for _, s := range []source.Source[kafka.Record]{s, open(&last)} {
			var got []string
			for len(got) == 0 { // brokers learn of topics one after the other
				_, got = r.planned(s, 0)
				require.NoError(r, r.ctx.Err())
			}
			require.Equal(r, []string{"0@0=late"}, got)
		}
	})
}

// TestAssign: one partition of a topic, from an offset. // KD4
func TestAssign(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(2)
		var records []*kgo.Record
		for i := range 16 {
			records = append(records, value(1, fmt.Sprint(i)), value(0, "other"))
		}
		r.produce(r.client(), topic, records...)
		p := kafka.TopicPartition{Topic: topic, Partition: 1}
		s := kafka.NewSource(kafka.Brokers(r.addr), kafka.Partitions(p), kafka.FromOffsets(map[kafka.TopicPartition]int64{p: 11}))
		require.NoError(r, s.Open(r.ctx, nil))
		defer s.Close()
		plan, got := r.planned(s, 0)
		require.Len(r, plan.Ranges, 1)
		require.Equal(r, []string{"1@11=11", "1@12=12", "1@13=13", "1@14=14", "1@15=15"}, got)
	})
}

// TestStartAtTime: the first record of that time or later, of each partition.
func TestStartAtTime(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(2)
		day := time.Now().Add(-time.Hour).Truncate(time.Second)
		for i := range 10 {
			x := value(0, fmt.Sprint(i))
			x.Timestamp = day.Add(time.Duration(i) * time.Second)
			r.produce(r.client(), topic, x)
		}
		old := value(1, "old")
		old.Timestamp = day.Add(-time.Hour)
		r.produce(r.client(), topic, old)
		s := kafka.NewSource(kafka.Brokers(r.addr), kafka.Topics(topic), kafka.FromTime(day.Add(6500*time.Millisecond)))
		require.NoError(r, s.Open(r.ctx, nil))
		defer s.Close()
		p, got := r.planned(s, 0)
		require.Equal(r, []string{"0@7=7", "0@8=8", "0@9=9"}, got)
		require.EqualValues(r, 1, p.Ranges[1].From, "no record is as late: from the end")
	})
}

// TestRecovery: the second run goes on with the ranges that the first has left. // KD5
func TestRecovery(t *testing.T) {
	onEach(t, func(r *rig) {
		topic, dir := r.topic(2), r.TempDir()
		type span struct{ from, until int64 }
		var mu sync.Mutex
		ranges := map[string][]span{}
		var out *outputs[int]
		for run := range 2 {
			var records []*kgo.Record
			for i := range 10 {
				records = append(records, value(int32(i%2), fmt.Sprint(run*10+i+1)))
			}
			r.produce(r.client(), topic, records...)
			require.NoError(r, r.sums(topic, &out, dstream.WithCheckpoint(dir), dstream.WithMaxRecordsPerBatch(3),
				dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) {
					mu.Lock()
					defer mu.Unlock()
					for _, x := range p.Sources[0].Ranges {
						ranges[x.Partition] = append(ranges[x.Partition], span{x.From, x.Until})
					}
				}})))
			require.Equal(r, []int{55, 210}[run], out.all[len(out.all)-1])
			require.Len(r, out.all, 10, "each record once")
		}
		for name, list := range ranges {
			next := int64(0)
			for _, x := range list {
				require.Equal(r, next, x.from, name)
				next = x.until
			}
			require.EqualValues(r, 10, next, name)
		}
	})
}

// TestRates: of each partition, and of the whole plan. // KD7, KD8
func TestRates(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(2)
		var records []*kgo.Record
		for i := range int32(200) {
			records = append(records, value(i%2, "x"))
		}
		r.produce(r.client(), topic, records...)
		s := r.opened(topic, nil)
		take := func(l source.Limits) (n []int64) {
			p, err := s.Plan(r.ctx, l)
			require.NoError(r, err)
			for _, x := range p.Ranges {
				n = append(n, x.Until-x.From)
			}
			return n
		}
		require.Equal(r, []int64{10, 10}, take(source.Limits{PerPartition: 10}), "100/s for 100 ms")
		require.Equal(r, []int64{10, 10}, take(source.Limits{PerPartition: 10, Records: 100}), "the partition's limit holds under a rate of 1000/s")
		for epoch, most := range []int64{50, 25, 10} {
			n := take(source.Limits{Records: most, Epoch: uint64(epoch)})
			require.Equal(r, most, n[0]+n[1])
		}
		take(source.Limits{})
		require.Equal(r, []int64{0, 0}, take(source.Limits{PerPartition: 10}), "no lag")
	})
}

// TestPartitionsAreAdded: while the job runs. // report 23
func TestPartitionsAreAdded(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(2)
		s := r.opened(topic, nil, kafka.RefreshEvery(0))
		r.planned(s, 0)
		q := kmsg.NewPtrCreatePartitionsRequest()
		q.TimeoutMillis = 30_000
		q.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: 4}}
		a, err := q.RequestWith(r.ctx, r.admin)
		require.NoError(r, err)
		require.NoError(r, kerr.ErrorForCode(a.Topics[0].ErrorCode))
		var records []*kgo.Record
		for i := range 10 {
			records = append(records, value(3, fmt.Sprint(i)))
		}
		r.produce(r.client(), topic, records...)
		var got []string
		var p source.Plan
		for len(got) < 10 {
			var more []string
			p, more = r.planned(s, 0)
			got = append(got, more...)
			require.NoError(r, r.ctx.Err())
		}
		require.Equal(r, "3@0=0", got[0])
		require.Len(r, got, 10)
		require.Len(r, p.Ranges, 4)
	})
}

// recreate deletes a topic and makes it again, when the broker has forgotten it.
func (r *rig) recreate(topic string, records int) {
	r.deleteTopic(topic)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.create(topic, 1)
		if err == nil {
			break
		}
		require.ErrorIs(r, err, kerr.TopicAlreadyExists)
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.Fatal("the topic is not deleted in time")
		}
	}
	var list []*kgo.Record
	for i := range records {
		list = append(list, value(0, fmt.Sprint("new ", i)))
	}
	r.produce(r.client(), topic, list...)
}

func (r *rig) deleteTopic(topic string) {
	q := kmsg.NewPtrDeleteTopicsRequest()
	q.TimeoutMillis = 30_000
	q.TopicNames = []string{topic}
	q.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &topic}}
	a, err := q.RequestWith(r.ctx, r.admin)
	require.NoError(r, err)
	require.NoError(r, kerr.ErrorForCode(a.Topics[0].ErrorCode))
}

// TestRecreated: with less and with more records than were read, under the job and while
// it is down. // report 22
func TestRecreated(t *testing.T) {
	onEach(t, func(r *rig) {
		for _, count := range []int{10, 60} {
			topic := r.topic(1)
			var records []*kgo.Record
			for range 50 {
				records = append(records, value(0, "old"))
			}
			r.produce(r.client(), topic, records...)
			s := r.opened(topic, nil)
			goes := r.opened(topic, nil, kafka.ContinueOnLoss())
			last, _ := r.planned(s, 0)
			r.planned(goes, 0)
			r.recreate(topic, count)
			var changed *source.ChangedError
			_, err := s.Plan(r.ctx, source.Limits{})
			require.ErrorAs(r, err, &changed)
			require.ErrorContains(r, err, "partition 0 up to offset 50")
			down := kafka.NewSource(kafka.Brokers(r.addr), kafka.Topics(topic))
			require.ErrorAs(r, down.Open(r.ctx, &last), &changed)
			_, got := r.planned(goes, 0)
			require.Len(r, got, count)
			require.Equal(r, "0@0=new 0", got[0])
		}
	})
}

// TestExpired: a job that was down for longer than retention, with and without the
// choice to go on. // report 20
func TestExpired(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.produce(r.client(kgo.ProducerBatchCompression(kgo.NoCompression())), topic, letters(20)...)
		s := r.opened(topic, nil)
		last, _ := r.planned(s, 5)
		r.expire(topic, 12)
		stops := r.opened(topic, &last)
		_, err := stops.Plan(r.ctx, source.Limits{})
		var gone *kafka.OffsetRangeError
		require.ErrorAs(r, err, &gone)
		require.Equal(r, kafka.OffsetRangeError{Topic: topic, Wanted: 5, Earliest: 12, Latest: 20}, *gone)
		var m kafka.Monitor
		goes := r.opened(topic, &last, kafka.ContinueOnLoss(), kafka.Watch(&m))
		_, got := r.planned(goes, 0)
		require.Len(r, got, 8)
		require.Equal(r, "0@12=m", got[0])
		require.EqualValues(r, 7, m.Report().Counters["lost_records"])
		require.Contains(r, m.Report().Notices[0].Text, "7 records are lost")
	})
}
