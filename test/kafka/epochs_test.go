package kafkatest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestTopicMadeAgainOnOldBrokers: brokers of Kafka 2.7 tell no topic ids. A topic that
// was made again, and has grown beyond the position, is found out by its leader epochs;
// leaders that merely moved are not. // report 22
func TestTopicMadeAgainOnOldBrokers(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(1, "t"), kfake.MaxVersions(kversion.V2_7_0()))
	require.NoError(t, err)
	defer c.Close()
	addrs := c.ListenAddrs()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond))
	require.NoError(t, err)
	defer cl.Close()
	write := func(n int) {
		t.Helper()
		for i := range n {
			require.NoError(t, cl.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(i))).FirstErr())
		}
	}
	open := func(last *source.Plan, opts ...kafka.SourceOption) source.Source[kafka.Record] {
		t.Helper()
		s := kafka.NewSource(append(opts, kafka.Brokers(addrs...), kafka.Topics("t"), kafka.FromEarliest(), kafka.RetryFor(300*time.Millisecond))...)
		require.NoError(t, s.Open(t.Context(), last))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	read := func(s source.Source[kafka.Record], r source.Range) (n int, err error) {
		err = s.Read(t.Context(), r, func(int64, kafka.Record) error { n++; return nil })
		return n, err
	}
	batch := func(s source.Source[kafka.Record]) source.Plan {
		t.Helper()
		p, err := s.Plan(t.Context(), source.Limits{})
		require.NoError(t, err)
		n, err := read(s, p.Ranges[0])
		require.NoError(t, err)
		require.EqualValues(t, p.Ranges[0].Until-p.Ranges[0].From, n)
		return p
	}

	write(5)
	s := open(nil)
	p := batch(s)
	require.Empty(t, p.Ranges[0].Epoch, "no topic id")
	marks := map[string]bool{p.Ranges[0].Mark: true}
	for node := range int32(2) { // each move is a new epoch
		require.NoError(t, c.MoveTopicPartition("t", 0, node))
		write(3)
		p = batch(s)
		marks[p.Ranges[0].Mark] = true
	}
	require.Len(t, marks, 3)
	s = open(&p)
	n, err := read(s, p.Ranges[0])
	require.NoError(t, err, "the last plan again")
	require.Equal(t, 3, n)
	require.EqualValues(t, 11, batch(s).Ranges[0].Until)

	require.NoError(t, c.DeleteTopic("t"))
	require.NoError(t, c.CreateTopic("t", 1, nil))
	fresh, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.DefaultProduceTopic("t"))
	require.NoError(t, err)
	defer fresh.Close()
	cl = fresh
	write(20)
	_, err = s.Plan(t.Context(), source.Limits{})
	require.ErrorAs(t, err, new(*source.ChangedError))
	require.ErrorContains(t, err, "made again")
	require.ErrorContains(t, err, "up to offset 11")
	n, err = read(open(&p), p.Ranges[0])
	require.ErrorAs(t, err, new(*source.ChangedError))
	require.Zero(t, n)

	s = open(&p, kafka.ContinueOnLoss())
	n, err = read(s, p.Ranges[0])
	require.NoError(t, err)
	require.Zero(t, n)
	require.EqualValues(t, 20, batch(s).Ranges[0].Until)
}

// TestLeaderMovesWithoutAWrite: leaders change again and again, of a log to which nobody
// writes, between the plans of a run and between runs. It is the same log, whether the
// brokers know epochs in which nothing was written, as real ones do, or not. // report 22
func TestLeaderMovesWithoutAWrite(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		c, err := kfake.NewCluster(kfake.NumBrokers(3))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		r := newRig(t, strings.Join(c.ListenAddrs(), ","), false)
		r.leaderMoves(func(topic string, node int32) { require.NoError(t, c.MoveTopicPartition(topic, 0, node-1)) })
	})
	t.Run("real", func(t *testing.T) {
		n := realNodes(t, 3)
		require.NoError(t, n.whole())
		n.leaderMoves(n.move)
	})
}

// leaderMoves reads a log whose leader move changes to the brokers 1, 2 and 3.
func (r *rig) leaderMoves(move func(topic string, node int32)) {
	topic := r.topic(1)
	cl := r.client(kgo.MetadataMinAge(10 * time.Millisecond))
	write := func(n int) {
		for i := range n {
			r.produce(cl, topic, value(0, fmt.Sprint(i)))
		}
	}
	open := func(last *source.Plan) source.Source[kafka.Record] {
		s := kafka.NewSource(kafka.Brokers(strings.Split(r.addr, ",")...), kafka.Topics(topic), kafka.FromEarliest())
		require.NoError(r, s.Open(r.ctx, last))
		r.Cleanup(func() { require.NoError(r, s.Close()) })
		return s
	}
	read := func(s source.Source[kafka.Record], x source.Range) (n int64) {
		require.NoError(r, s.Read(r.ctx, x, func(int64, kafka.Record) error { n++; return nil }))
		return n
	}
	write(4)
	s := open(nil)
	marks := map[string]bool{}
	for i := range 8 {
		p, err := s.Plan(r.ctx, source.Limits{Records: 2})
		require.NoError(r, err, "plan %d", i)
		x := p.Ranges[0]
		require.Equal(r, x.Until-x.From, read(s, x))
		marks[x.Mark] = true
		move(topic, int32(i%3+1))
		require.Equal(r, x.Until-x.From, read(s, x), "the plan again, in the same run")
		if i%2 == 1 {
			s = open(&p)
			require.Equal(r, x.Until-x.From, read(s, x), "the plan again, in a new run")
		}
		if i == 4 {
			write(2)
		}
	}
	p, err := s.Plan(r.ctx, source.Limits{})
	require.NoError(r, err)
	require.EqualValues(r, 6, p.Ranges[0].Until)
	require.GreaterOrEqual(r, len(marks), 6, "leader epochs: %v", marks)
}
