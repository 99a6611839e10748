package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// exactJob counts the values of one topic and writes every total to another one,
// exactly once, each with chance in it: a total that came of two attempts shows.
type exactJob struct {
	in, out string
	source  []kafka.SourceOption
	sink    []kafka.SinkOption
	// each, if there is one, is called for every record, by several workers at once.
	each func(kafka.Record) error
}

// exactly runs the job to the end of its input.
func (r *rig) exactly(j exactJob, opts ...dstream.ContextOption) error {
	u := kafka.NewSink("out", append([]kafka.SinkOption{kafka.Brokers(strings.Split(r.addr, ",")...)}, j.sink...)...)
	return r.run(func(ssc *dstream.StreamingContext) error {
		ones := dstream.MapPairErr(r.stream(ssc, j.in, j.source...), func(x kafka.Record) (string, int, error) {
			if j.each != nil {
				if err := j.each(x); err != nil {
					return "", 0, err
				}
			}
			return string(x.Value), 1, nil
		})
		totals := dstream.MapWithState(ones, dstream.Function(
			func(word string, one dstream.Option[int], s *dstream.State[int]) string {
				s.Update(s.OrElse(0) + one.OrElse(0))
				return fmt.Sprintf("%s=%d %d", word, s.Get(), rand.Int64())
			}).Named("totals"))
		dstream.Output(totals, "totals", kafka.To(u, j.out, func(text string) (kafka.Message, error) {
			word, _, _ := strings.Cut(text, "=")
			return kafka.Message{Key: []byte(word), Value: []byte(text)}, nil
		}))
		return nil
	}, opts...)
}

// words writes count records of a few words, and gives how often each is there.
func (r *rig) words(topic string, partitions, words, count int) map[string]int {
	want := map[string]int{}
	var records []*kgo.Record
	for i := range count {
		word := fmt.Sprint("w", i%words)
		records = append(records, value(int32(i%partitions), word))
		want[word]++
	}
	r.produce(r.client(kgo.ProducerBatchCompression(kgo.NoCompression())), topic, records...)
	return want
}

// requireTotals sees that each word has its totals 1, 2, 3 … in this order, each once.
func (r *rig) requireTotals(want map[string]int, lines []string) {
	r.Helper()
	last := map[string]int{}
	for _, line := range lines {
		total, _, _ := strings.Cut(line, " ")
		word, text, _ := strings.Cut(total, "=")
		n, err := strconv.Atoi(text)
		require.NoError(r, err, line)
		require.Equal(r, last[word]+1, n, "%q behind total %d of %q", line, last[word], word)
		last[word] = n
	}
	require.Equal(r, want, last)
}

// console reads a topic's committed records with Kafka's console consumer. It waits
// for one more than there should be.
func (r *rig) console(topic string, count int) (lines []string) {
	cmd := exec.CommandContext(r.ctx, os.Getenv("STATEMILL_KAFKA_TOOL"), "console-consumer", "--bootstrap-server", r.addr, "--topic", topic,
		"--from-beginning", "--isolation-level", "read_committed", "--max-messages", strconv.Itoa(count+1), "--timeout-ms", "8000")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run() // it fails for the one that never comes
	require.NoError(r, r.ctx.Err(), errs.String())
	if out.Len() == 0 {
		require.NoError(r, err, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "w") { // it tells of its time-out there too
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// consoleOrOther is console, or where there is none another client.
func (r *rig) consoleOrOther(topic string, count int) (lines []string) {
	require.NoError(r, r.settle(r.ctx))
	if r.real && os.Getenv("STATEMILL_KAFKA_TOOL") != "" {
		return r.console(topic, count)
	}
	for _, x := range r.otherRead(topic) {
		lines = append(lines, string(x.Value))
	}
	return lines
}

// otherRead reads the committed records of a topic, up to the last stable offsets,
// with a client that shares no code with the library.
func (r *rig) otherRead(topic string) (records []*kgo.Record) {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	left := r.bounds(ctx, topic)
	offsets := map[int32]kgo.Offset{}
	for p := range left {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	cl := r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer cl.Close()
	for len(left) > 0 {
		fetched := cl.PollFetches(ctx)
		require.NoError(r, fetched.Err())
		fetched.EachRecord(func(x *kgo.Record) {
			if !x.Attrs.IsControl() {
				records = append(records, x)
			}
			if x.Offset+1 >= left[x.Partition] {
				delete(left, x.Partition)
			}
		})
	}
	return records
}

// bounds are the last stable offsets of the partitions that have records before them.
func (r *rig) bounds(ctx context.Context, topic string) map[int32]int64 {
	begin, end := r.listOffsets(ctx, topic, -2), r.listOffsets(ctx, topic, -1)
	for p := range end {
		if begin[p] >= end[p] {
			delete(end, p)
		}
	}
	return end
}

// listOffsets asks for the offsets at a time, -2 for the first and -1 for the last
// stable one, until all partitions have leaders that tell.
func (r *rig) listOffsets(ctx context.Context, topic string, at int64) map[int32]int64 {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		offsets, err := r.tryOffsets(ctx, topic, at)
		if err == nil {
			return offsets
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.NoError(r, err)
		}
	}
}

func (r *rig) tryOffsets(ctx context.Context, topic string, at int64) (map[int32]int64, error) {
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	a, err := m.RequestWith(ctx, r.admin)
	if err != nil {
		return nil, err
	}
	q := kmsg.NewPtrListOffsetsRequest()
	q.IsolationLevel = 1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for _, x := range a.Topics[0].Partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = x.Partition, at
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	offsets := map[int32]int64{}
	for _, shard := range r.admin.RequestSharded(ctx, q) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, err
				}
				offsets[p.Partition] = p.Offset
			}
		}
	}
	return offsets, nil
}
