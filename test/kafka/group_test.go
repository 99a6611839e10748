package kafkatest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// opened is a source of a topic, from its beginning, that is closed after the test.
func (r *rig) opened(topic string, last *source.Plan, opts ...kafka.SourceOption) source.Source[kafka.Record] {
	s := kafka.NewSource(append([]kafka.SourceOption{kafka.Brokers(strings.Split(r.addr, ",")...), kafka.FromEarliest(), kafka.Topics(topic)}, opts...)...)
	require.NoError(r, s.Open(r.ctx, last))
	r.Cleanup(func() { s.Close() })
	return s
}

// planned plans and reads a batch.
func (r *rig) planned(s source.Source[kafka.Record], records int64) (p source.Plan, got []string) {
	p, err := s.Plan(r.ctx, source.Limits{Records: records})
	require.NoError(r, err)
	for _, x := range p.Ranges {
		require.NoError(r, s.Read(r.ctx, x, func(_ int64, v kafka.Record) error {
			got = append(got, fmt.Sprintf("%d@%d=%s", v.Partition, v.Offset, v.Text()))
			return nil
		}))
	}
	return p, got
}

// groupOffset is what a group has of partition 0, as another client sees it; -1 for
// nothing.
func (r *rig) groupOffset(group, topic string) int64 {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Group = group
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	a, err := q.RequestWith(r.ctx, r.admin)
	if errors.Is(err, kerr.CoordinatorNotAvailable) { // a broker that has just started
		return -1
	}
	require.NoError(r, err)
	for _, t := range a.Topics {
		return t.Partitions[0].Offset
	}
	for _, g := range a.Groups {
		for _, t := range g.Topics {
			return t.Partitions[0].Offset
		}
	}
	return -1
}

// awaitGroup waits until a group has an offset.
func (r *rig) awaitGroup(group, topic string, want int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for r.groupOffset(group, topic) != want {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.Fatalf("the group has offset %d, not %d", r.groupOffset(group, topic), want)
		}
	}
}

func letters(n int) (out []*kgo.Record) {
	for i := range n {
		out = append(out, value(0, string(rune('a'+i))))
	}
	return out
}

// TestGroupMirrorsCommits: what is committed, no more, and what Close brings. // KD6
func TestGroupMirrorsCommits(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.produce(r.client(), topic, letters(10)...)
		group := topic + "-group"
		s := r.opened(topic, nil, kafka.Group(group), kafka.RetryFor(time.Minute))
		p, _ := r.planned(s, 3)
		require.NoError(r, s.Committed(r.ctx, p))
		r.awaitGroup(group, topic, 3)
		last, _ := r.planned(s, 4) // not committed
		require.NoError(r, s.Close())
		require.EqualValues(r, 3, r.groupOffset(group, topic))

		again := r.opened(topic, &last, kafka.Group(group), kafka.RetryFor(time.Minute))
		require.NoError(r, again.Committed(r.ctx, last))
		p, _ = r.planned(again, 2)
		require.NoError(r, again.Committed(r.ctx, p))
		require.NoError(r, again.Close(), "it brings the last ones")
		require.EqualValues(r, 9, r.groupOffset(group, topic))

		// Somebody who joins the group begins where the job stands.
		cl := r.client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic))
		fetched := cl.PollRecords(r.ctx, 1)
		require.NoError(r, fetched.Err())
		require.EqualValues(r, 9, fetched.Records()[0].Offset)
	})
}

// TestGroupIsOfOneRoot: a job on a new checkpoint is told that another one has written to
// its group.
func TestGroupIsOfOneRoot(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		var told []string
		for _, dir := range []string{r.TempDir(), r.TempDir()} {
			r.produce(r.client(), topic, letters(3)...)
			var mu sync.Mutex
			require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
				collect(r.stream(ssc, topic, kafka.Group(topic), kafka.RetryFor(time.Minute)))
				return nil
			}, dstream.WithCheckpoint(dir), dstream.WithListener(dstream.Listener{SourceNotice: func(_ string, n source.Notice) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, n.Text)
			}})))
		}
		require.Contains(r, strings.Join(told, "\n"), "from a job on another checkpoint, root ")
		require.EqualValues(r, 6, r.groupOffset(topic, topic))
	})
}

// TestGroupNeverGoesBack: not by an older position, and not for a job that begins anew.
func TestGroupNeverGoesBack(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.produce(r.client(), topic, letters(10)...)
		group := topic + "-group"
		var m kafka.Monitor
		for _, c := range []struct{ read, group int64 }{{6, 6}, {3, 6}, {9, 9}} {
			s := r.opened(topic, nil, kafka.Group(group), kafka.Watch(&m), kafka.RetryFor(time.Minute))
			p, _ := r.planned(s, c.read)
			require.NoError(r, s.Committed(r.ctx, p))
			if c.read == c.group {
				r.awaitGroup(group, topic, c.group)
			}
			require.NoError(r, s.Close())
			if c.read < c.group {
				require.Contains(r, m.Report().Notices[0].Text, "the group's stays until the job has passed it")
			}
			require.EqualValues(r, c.group, r.groupOffset(group, topic))
		}
	})
}

// TestGroupWithMembers: it is told, counted, and the job goes on.
func TestGroupWithMembers(t *testing.T) {
	onEach(t, func(r *rig) {
		topic := r.topic(1)
		r.produce(r.client(), topic, letters(2)...)
		member := r.client(kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
		require.NoError(r, member.PollFetches(r.ctx).Err())
		told := make(chan source.Notice, 10)
		s := r.opened(topic, nil, kafka.Group(topic), kafka.OnNotice(func(n source.Notice) { told <- n }))
		p, got := r.planned(s, 0)
		require.Len(r, got, 2)
		require.NoError(r, s.Committed(r.ctx, p))
		require.Contains(r, (<-told).Text, "give the job a group of its own")
		p, _ = r.planned(s, 0)
		require.NoError(r, s.Committed(r.ctx, p))
	})
}

// TestGroupInKafkasTool: what consumer-groups shows of a job that has read all of a
// topic: offsets, ends, no lag. // KD6
func TestGroupInKafkasTool(t *testing.T) {
	r := realRig(t)
	tool := os.Getenv("STATEMILL_KAFKA_TOOL")
	if tool == "" {
		t.Skip("needs Kafka's own programs: STATEMILL_KAFKA_TOOL is not set (make test-kafka sets it)")
	}
	topic := r.topic(2)
	r.produce(r.client(), topic, append(letters(5), value(1, "x"))...)
	require.NoError(r, r.run(func(ssc *dstream.StreamingContext) error {
		collect(r.stream(ssc, topic, kafka.Group(topic), kafka.RetryFor(time.Minute)))
		return nil
	}))
	out, err := exec.CommandContext(r.ctx, tool, "consumer-groups", "--bootstrap-server", r.addr, "--describe", "--group", topic).CombinedOutput()
	require.NoError(r, err, "%s", out)
	var rows []string
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) >= 6 && f[1] == topic {
			rows = append(rows, strings.Join(f[2:6], " "))
		}
	}
	require.ElementsMatch(r, []string{"0 5 5 0", "1 1 1 0"}, rows, "partition, offset, end, lag in\n%s", out)
}
