package kafkatest

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (r *rig) producer(opts ...kafka.SinkOption) *kafka.Producer {
	p := kafka.NewProducer(append([]kafka.SinkOption{kafka.Brokers(strings.Split(r.addr, ",")...)}, opts...)...)
	r.Cleanup(func() { require.NoError(r, p.Close()) })
	return p
}

func numbered(from, to int) (out []kafka.Message) {
	for i := from; i < to; i++ {
		out = append(out, kafka.Message{Key: fmt.Appendf(nil, "key %d", i%20), Value: strconv.AppendInt(nil, int64(i), 10)})
	}
	return out
}

// TestProducer: what was written is there once, each key's messages in their order and
// where the Java client would put them, with headers, times and tombstones.
func TestProducer(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(5)
		p := r.producer(kafka.ProduceBatchBytes(1<<10), kafka.Compress("lz4"))
		for i := range 10 {
			require.NoError(r, p.Write(r.ctx, topic, numbered(100*i, 100*i+100)...))
		}
		at := time.UnixMilli(1_700_000_000_123).UTC()
		special := kafka.Message{Key: []byte("special"), Headers: []kafka.Header{{Key: "h", Value: []byte("v")}, {Key: "n"}}, Time: at}
		require.NoError(r, p.Write(r.ctx, topic, special))
		last, seen := map[string]int{}, 0
		java := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
		for _, x := range r.read(topic) {
			require.Equal(r, java.Partition(&kgo.Record{Key: x.Key}, 5), int(x.Partition))
			if x.KeyText() == "special" {
				require.True(r, x.Tombstone())
				require.Equal(r, special.Headers, x.Headers)
				require.Equal(r, at, x.Time)
				continue
			}
			n, err := strconv.Atoi(x.Text())
			require.NoError(r, err)
			if was, ok := last[x.KeyText()]; ok {
				require.Greater(r, n, was)
			}
			last[x.KeyText()] = n
			seen++
		}
		require.Equal(r, 1000, seen)
	})
}

// TestProducerLosesAnswers: a request or its answer is lost at any place; what is sent
// again is there once.
func TestProducerLosesAnswers(t *testing.T) {
	onEach(t, func(r *rig) {
		step := 1
		if r.real {
			step = 5
		}
		for at := 1; ; at += step {
			topic := r.topic(2)
			in := &vfs.Faults{}
			in.Fail(vfs.Rule{K: at, After: at%2 == 0})
			p := r.producer(kafka.Dialer(&kafkago.Dialer{DialFunc: injectedDial(in)}), kafka.ProduceBatchBytes(1<<10))
			for i := range 6 {
				require.NoError(r, p.Write(r.ctx, topic, numbered(25*i, 25*i+25)...), "call %d", at)
			}
			var got []int
			for _, x := range r.read(topic) {
				n, err := strconv.Atoi(x.Text())
				require.NoError(r, err)
				got = append(got, n)
			}
			sort.Ints(got)
			require.Len(r, got, 150, "call %d", at)
			for i, n := range got {
				require.Equal(r, i, n, "call %d", at)
			}
			if in.Hits() == 0 {
				require.Greater(r, at, 10)
				return
			}
		}
	})
}

// A broker that has forgotten the producer, or missed a batch: the producer goes on as
// another one.
func TestProducerIsForgotten(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber, kerr.NotLeaderForPartition} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		r := newRig(t, c.ListenAddrs()[0], false)
		p := r.producer()
		require.NoError(t, p.Write(r.ctx, "out", value0("a")))
		c.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
			answer := q.ResponseKind().(*kmsg.ProduceResponse)
			x := kmsg.NewProduceResponseTopic()
			x.Topic, x.TopicID = q.(*kmsg.ProduceRequest).Topics[0].Topic, q.(*kmsg.ProduceRequest).Topics[0].TopicID
			y := kmsg.NewProduceResponseTopicPartition()
			y.ErrorCode = code.Code
			x.Partitions = append(x.Partitions, y)
			answer.Topics = append(answer.Topics, x)
			return answer, nil, true // once
		})
		require.NoError(t, p.Write(r.ctx, "out", value0("b")), "%v", code)
		require.NoError(t, p.Write(r.ctx, "out", value0("c")), "%v", code)
		require.Equal(t, []string{"0@0=a", "0@1=b", "0@2=c"}, texts(r.read("out")), "%v", code)
	}
}

func value0(text string) kafka.Message { return kafka.Message{Value: []byte(text)} }

func TestProducerSaysWhatIsWrong(t *testing.T) {
	onEach(t, func(r *rig) {
		err := kafka.NewProducer(kafka.Compress("zip"), nil).Write(r.ctx, "t", value0("x"))
		require.ErrorContains(r, err, "zip")
		require.ErrorContains(r, err, "no broker is named")
		require.ErrorContains(r, err, "an option is nil")
		p := r.producer(kafka.RetryFor(time.Second))
		err = p.Write(r.ctx, "no-such-topic", value0("x"))
		require.ErrorIs(r, err, kafka.ErrNoTopic)
		topic := r.topic(1, "max.message.bytes=2000")
		if r.real { // the embedded broker takes all
			err = p.Write(r.ctx, topic, value0(strings.Repeat("x", 5000)))
			require.ErrorContains(r, err, "max.message.bytes")
		}
		require.NoError(r, p.Write(r.ctx, topic, value0("small")), "and the producer goes on")
		err = p.Write(r.ctx, topic, kafka.Message{Time: time.Unix(-5, 0)})
		require.ErrorContains(r, err, "before 1970")
	})
}

// TestAtLeastOnce: a whole job; an output that fails is run again, and all is there at
// least once.
func TestAtLeastOnce(t *testing.T) {
	onEach(t, func(r *rig) {
		in, out := r.topic(3), r.topic(4)
		var records []*kgo.Record
		for i := range 300 {
			records = append(records, value(int32(i%3), strconv.Itoa(i)))
		}
		r.produce(r.client(), in, records...)
		p := r.producer(kafka.ProduceBatchBytes(1 << 10))
		stumble := sync.OnceValue(func() error { return errors.New("stumbled") })
		failed := false
		var mu sync.Mutex
		require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
			kafka.AtLeastOnce(r.stream(ssc, in), p, out, func(x kafka.Record) (kafka.Message, error) {
				mu.Lock()
				defer mu.Unlock()
				if x.Text() == "250" && !failed {
					failed = true
					return kafka.Message{}, stumble()
				}
				return kafka.Message{Key: append([]byte{}, x.Value...), Value: append([]byte("got "), x.Value...)}, nil
			}, dstream.Name("out"))
			return nil
		}, dstream.WithTaskRetries(2)))
		seen := map[string]bool{}
		for _, x := range r.read(out) {
			seen[x.Text()] = true
		}
		require.Len(r, seen, 300)
		require.True(r, failed)
		err := r.run(func(ssc *dstream.StreamingContext) error {
			kafka.AtLeastOnce[kafka.Record](r.stream(ssc, in), nil, out, nil)
			return nil
		})
		require.ErrorContains(r, err, "AtLeastOnce has no producer")
	})
}
