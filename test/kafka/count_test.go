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

func wordCount(lines dstream.Stream[kafka.Record]) *dstream.MapWithStateDStream[string, int, dstream.Pair[string, int]] {
	words := dstream.FlatMap(lines, func(r kafka.Record) []string { return strings.Fields(r.Text()) })
	ones := dstream.MapPair(words, func(w string) (string, int) { return w, 1 })
	return dstream.MapWithState(ones, dstream.Function(
		func(word string, one dstream.Option[int], state *dstream.State[int]) dstream.Pair[string, int] {
			sum := one.OrElse(0) + state.OrElse(0)
			state.Update(sum)
			return dstream.KV(word, sum)
		}).Named("counts").NumPartitions(3))
}

// TestWordCount: several topics and partitions, every codec, batches that end in
// the middle of record batches. // J2, J3
func TestWordCount(t *testing.T) {
	onEach(t, func(r *rig) {
		topics := []string{r.topic(3), r.topic(1)}
		want := map[string]int{}
		for name, codec := range map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
			"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()} {
			cl := r.client(kgo.ProducerBatchCompression(codec))
			var records []*kgo.Record
			for i := range 300 {
				line := fmt.Sprintf("the %s line %d the end", name, i%17)
				for _, w := range strings.Fields(line) {
					want[w]++
				}
				records = append(records, value(int32(i%3), line))
			}
			r.produce(cl, topics[0], records[:200]...)
			for _, x := range records[200:] {
				x.Partition = 0
			}
			r.produce(cl, topics[1], records[200:]...)
		}
		var out *outputs[dstream.Pair[string, int]]
		require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
			out = collect(wordCount(r.stream(ssc, topics[0], kafka.Topics(topics[1]))))
			return nil
		}, dstream.WithMaxRecordsPerBatch(137)))
		got := map[string]int{}
		for _, p := range out.all {
			require.Equal(r, got[p.Key]+1, p.Value, "counts of %q come in order", p.Key)
			got[p.Key] = p.Value
		}
		require.Equal(r, want, got)
	})
}

func TestStarts(t *testing.T) { // J2
	onEach(t, func(r *rig) {
		topic := r.topic(2)
		r.produce(r.client(), topic, value(0, "a"), value(0, "b"), value(0, "c"), value(1, "d"))
		p := func(n int32) kafka.TopicPartition { return kafka.TopicPartition{Topic: topic, Partition: n} }
		require.ElementsMatch(r, []string{"0@0=a", "0@1=b", "0@2=c", "1@0=d"}, texts(r.read(topic)))
		require.ElementsMatch(r, []string{"0@2=c", "1@0=d"}, texts(r.read(topic, kafka.FromOffsets(map[kafka.TopicPartition]int64{p(0): 2}))))
	})
}

// TestLatest: what is there at the first plan is not read, what comes later is. // KD3
func TestLatest(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		cl := r.client()
		r.produce(cl, topic, value(0, "before"))
		ssc := dstream.NewStreamingContext(20 * time.Millisecond)
		got, planned := make(chan string, 10), make(chan struct{}, 1000)
		lines := kafka.DirectStream(ssc, "in", kafka.Brokers(strings.Split(r.addr, ",")...), kafka.Topics(topic))
		dstream.ForeachRDD(lines, func(ctx context.Context, _ dstream.Batch, x *rdd.RDD[kafka.Record]) error {
			all, err := rdd.Collect(ctx, x)
			for _, v := range all {
				got <- v.Text()
			}
			planned <- struct{}{}
			return err
		})
		require.NoError(r, ssc.Start())
		<-planned
		r.produce(cl, topic, value(0, "after"))
		select {
		case v := <-got:
			require.Equal(r, "after", v)
		case <-r.ctx.Done():
			r.Fatal("nothing came")
		}
		require.NoError(r, ssc.Stop(r.ctx))
	})
}
