package kafkatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// reports 21 and 25: what a real broker's compaction leaves, records deleted at the
// end of the cleaned part too, is read to the end with each record once.
func TestCompactedTopic(t *testing.T) {
	r := realRig(t)
	topic := r.topic(1, "cleanup.policy=compact", "segment.ms=100", "min.cleanable.dirty.ratio=0.001",
		"delete.retention.ms=0", "max.compaction.lag.ms=100", "min.compaction.lag.ms=0")
	latest := map[string]string{}
	put := func(cl *kgo.Client, key string, v *string) {
		x := &kgo.Record{Key: []byte(key)}
		if delete(latest, key); v != nil {
			x.Value, latest[key] = []byte(*v), *v
		}
		r.produce(cl, topic, x)
	}
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		cl := r.client(kgo.ProducerBatchCompression(codec))
		for round := range 3 {
			for k := range 10 {
				v := fmt.Sprint(round)
				put(cl, fmt.Sprint("key", k), &v)
			}
			put(cl, fmt.Sprint("key", round), nil)
		}
	}
	r.transact(topic, topic, true, &kgo.Record{Key: []byte("txn"), Value: []byte("1")})
	latest["txn"] = "1"
	cl := r.client()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		// New segments roll only when something is written.
		v := fmt.Sprint(n)
		put(cl, "roller", &v)
		got := r.read(topic)
		last, state := int64(-1), map[string]string{}
		for _, x := range got {
			require.Greater(r, x.Offset, last)
			last = x.Offset
			require.NotEmpty(r, x.Key, "no call with an empty key and value")
			if x.Tombstone() {
				delete(state, string(x.Key))
			} else {
				state[string(x.Key)] = x.Text()
			}
		}
		require.Equal(r, latest, state)
		if len(got) < 25 { // of more than 70: the cleaner was here
			require.NotEmpty(r, r.read(topic, kafka.FromOffsets(map[kafka.TopicPartition]int64{{Topic: topic}: 5})), "a start in a hole")
			return
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.Fatalf("the broker has not compacted in time: %d records left", len(got))
		}
	}
}
