package kafkatest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience bounds each test.
const patience = 90 * time.Second

// rig is one test on one broker.
type rig struct {
	*testing.T
	ctx   context.Context
	addr  string
	real  bool
	admin *kgo.Client
	// replicas is how many of each partition new topics have.
	replicas int16
}

// onEach runs a test on the embedded broker and on the real one, if there is one.
func onEach(t *testing.T, test func(r *rig)) {
	t.Run("embedded", func(t *testing.T) { test(embeddedRig(t)) })
	t.Run("real", func(t *testing.T) { test(realRig(t)) })
}

func embeddedRig(t *testing.T) *rig {
	b, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return newRig(t, b.Addr(), false)
}

func realRig(t *testing.T) *rig {
	addr := os.Getenv("STATEMILL_KAFKA")
	if addr == "" {
		t.Skip("needs a real broker: STATEMILL_KAFKA is not set (make test-kafka starts one)")
	}
	return newRig(t, addr, true)
}

func newRig(t *testing.T, addr string, real bool) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &rig{T: t, ctx: ctx, addr: addr, real: real, replicas: 1}
	r.admin = r.client()
	return r
}

// client is franz-go's: an independent writer of records. A busy broker needs a while to
// know a topic that was just made.
func (r *rig) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(r.addr, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4 << 20), kgo.UnknownTopicRetries(100)}, opts...)...)
	require.NoError(r, err)
	r.Cleanup(cl.Close)
	return cl
}

// topicName makes a name for topics of a test's.
func topicName(test string) string {
	return strings.NewReplacer("/", "-", " ", "_", ",", "").Replace(test)
}

// topic makes a topic with a name of its own; configs are "key=value".
func (r *rig) topic(partitions int, configs ...string) string {
	name := fmt.Sprintf("%s-%d", topicName(r.Name()), time.Now().UnixNano())
	require.NoError(r, r.create(name, partitions, configs...))
	return name
}

// create makes a topic.
func (r *rig) create(name string, partitions int, configs ...string) error {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = 30_000
	x := kmsg.NewCreateTopicsRequestTopic()
	x.Topic, x.NumPartitions, x.ReplicationFactor = name, int32(partitions), r.replicas
	for _, c := range configs {
		key, value, _ := strings.Cut(c, "=")
		k := kmsg.NewCreateTopicsRequestTopicConfig()
		k.Name, k.Value = key, &value
		x.Configs = append(x.Configs, k)
	}
	q.Topics = append(q.Topics, x)
	answer, err := q.RequestWith(r.ctx, r.admin)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

// expire removes what lies before an offset of partition 0, as retention does.
func (r *rig) expire(topic string, before int64) { r.expireIn(topic, 0, before) }

// expireIn tries until the partition's leader has done it.
func (r *rig) expireIn(topic string, partition int32, before int64) {
	q := kmsg.NewPtrDeleteRecordsRequest()
	q.TimeoutMillis = 30_000
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = partition, before
	q.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{p}}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := q.RequestWith(r.ctx, r.admin)
		if err == nil {
			err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
		}
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			require.NoError(r, err)
		}
	}
}

// produce writes the records, each in its Partition, and waits for them.
func (r *rig) produce(cl *kgo.Client, topic string, records ...*kgo.Record) {
	for _, x := range records {
		x.Topic = topic
	}
	require.NoError(r, cl.ProduceSync(r.ctx, records...).FirstErr())
}

func value(partition int32, v string) *kgo.Record {
	return &kgo.Record{Partition: partition, Value: []byte(v)}
}

// outputs collects what a job gives.
type outputs[T any] struct {
	mu  sync.Mutex
	all []T
}

func collect[T any](in dstream.Stream[T]) *outputs[T] {
	o := new(outputs[T])
	dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, v T) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all = append(o.all, v)
		return nil
	})
	return o
}

// stream reads topics from their beginning to their end as it is now.
func (r *rig) stream(ssc *dstream.StreamingContext, topic string, opts ...kafka.SourceOption) *dstream.DStream[kafka.Record] {
	return kafka.DirectStream(ssc, "in", append([]kafka.SourceOption{
		kafka.Brokers(strings.Split(r.addr, ",")...), kafka.Topics(topic), kafka.FromEarliest(), kafka.StopAtEnd()}, opts...)...)
}

// run runs a job to the end of its input.
func (r *rig) run(job dstream.Job, opts ...dstream.ContextOption) error {
	return dstream.Run(r.ctx, 20*time.Millisecond, job, append(opts, dstream.WithStopWhenDone())...)
}

// read gives the records of a topic.
func (r *rig) read(topic string, opts ...kafka.SourceOption) []kafka.Record {
	var out *outputs[kafka.Record]
	require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
		out = collect(r.stream(ssc, topic, opts...))
		return nil
	}))
	return out.all
}

func texts(records []kafka.Record) (out []string) {
	for _, x := range records {
		out = append(out, fmt.Sprintf("%d@%d=%s", x.Partition, x.Offset, x.Text()))
	}
	return out
}
