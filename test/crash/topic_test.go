package crash

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (r *rig) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(r.addr, ",")...))...)
	require.NoError(r, err)
	return cl
}

func (r *rig) makeTopic(partitions int32) string {
	cl := r.client()
	defer cl.Close()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = 30_000
	x := kmsg.NewCreateTopicsRequestTopic()
	x.Topic, x.NumPartitions, x.ReplicationFactor = fmt.Sprintf("crash-%d", time.Now().UnixNano()), partitions, 1
	q.Topics = append(q.Topics, x)
	answer, err := q.RequestWith(r.Context(), cl)
	require.NoError(r, err)
	require.NoError(r, kerr.ErrorForCode(answer.Topics[0].ErrorCode))
	return x.Topic
}

// writer writes lines to the topic until it is stopped.
type writer struct {
	records int64 // valid after stop
	end     context.CancelFunc
	done    sync.WaitGroup
}

func (r *rig) startWriter() *writer {
	ctx, end := context.WithCancel(r.Context())
	w := &writer{end: end}
	random := rand.New(rand.NewPCG(r.random.Uint64(), 1))
	cl := r.client(kgo.DefaultProduceTopic(r.topic))
	r.Cleanup(w.stop)
	w.done.Go(func() {
		defer cl.Close()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var records []*kgo.Record
			for range 300 {
				records = append(records, kgo.StringRecord(line(random)))
			}
			// It is not cancelled in mid-request: what is written must be known.
			if !assert.NoError(r, cl.ProduceSync(context.WithoutCancel(ctx), records...).FirstErr()) {
				return
			}
			w.records += int64(len(records))
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// stop ends the writing; every record is in the topic then.
func (w *writer) stop() {
	w.end()
	w.done.Wait()
}

// line is a few words, some of them much more frequent than others.
func line(random *rand.Rand) string {
	words := make([]string, random.IntN(6))
	for i := range words {
		words[i] = fmt.Sprintf("w%d", int(math.Exp(random.Float64()*7.6)))
	}
	return strings.Join(words, " ")
}

type topicCount struct {
	words   map[string]int64
	records int64
}

// readTopic counts the topic with a client that shares no code with the library.
func (r *rig) readTopic() topicCount {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	cl := r.client(kgo.ConsumeTopics(r.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	left := r.end(ctx, cl)
	count := topicCount{words: map[string]int64{}}
	for left > count.records {
		fetched := cl.PollFetches(ctx)
		require.NoError(r, fetched.Err())
		fetched.EachRecord(func(x *kgo.Record) {
			count.records++
			for _, w := range strings.Fields(string(x.Value)) {
				count.words[w]++
			}
		})
	}
	return count
}

// end asks for the number of records of the topic.
func (r *rig) end(ctx context.Context, cl *kgo.Client) (n int64) {
	q := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = r.topic
	for i := range int32(4) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = i, -1
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	for _, shard := range cl.RequestSharded(ctx, q) {
		require.NoError(r, shard.Err)
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				require.NoError(r, kerr.ErrorForCode(p.ErrorCode))
				n += p.Offset
			}
		}
	}
	return n
}
