package kafka

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// byName reaches a fake under another name than its own.
func (b *fakeBroker) byName(name string) (ClientOption, ClientOption) {
	return Brokers(name), Dialer(&kafkago.Dialer{DialFunc: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, b.addr())
	}})
}

func echo(r Record) (Message, error) { return Message{Value: r.Value}, nil }

// TestTwoSinksOnOneCluster: one transactional id and one transaction for a cluster; a
// second sink is a fault that names both and says what to write. // design 10
func TestTwoSinksOnOneCluster(t *testing.T) {
	ssc := dstream.New(time.Second, dstream.WithCheckpointStore(vfs.NewObjects()))
	in := DirectStream(ssc, "in", Brokers("x"), Topics("t"))
	dstream.Output(in, "one", To(NewSink("a", Brokers("one:9092", "Two.example")), "one", echo))
	dstream.Output(in, "two", To(NewSink("b", Brokers("two.example.:9092,three")), "two", echo))
	dstream.Output(in, "else", To(NewSink("c", Brokers("elsewhere")), "one", echo))
	err := ssc.Validate()
	require.ErrorIs(t, err, dstream.ErrInvalid)
	for _, says := range []string{`kafka sink "b" and kafka sink "a" write to one cluster (both name broker two.example.:9092)`, "half of an epoch", "kafka.To(sink, ", "(the other is that of "} {
		require.Equal(t, 1, strings.Count(err.Error(), says), "%s in %v", says, err)
	}
	require.NotContains(t, err.Error(), `"c"`)
}

// TestTwoSinksFoundAtTheStart: under names that tell nothing it is the cluster that says
// that it is one, before anything is written. // design 10
func TestTwoSinksFoundAtTheStart(t *testing.T) {
	b, far := newFake(t), newFake(t)
	b.cluster, far.cluster = "c-1", "c-2"
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("out", 0)
	far.log("out", 0)
	run := func(second *Sink) error {
		return dstream.Run(t.Context(), time.Millisecond, func(ssc *dstream.StreamingContext) error {
			in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t"), FromEarliest(), StopAtEnd())
			dstream.Output(in, "one", To(NewSink("a", Brokers(b.addr())), "out", echo))
			dstream.Output(in, "two", To(second, "out", echo))
			return nil
		}, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(vfs.NewObjects()))
	}
	addr, dialer := b.byName("alias:1")
	err := run(NewSink("b", addr, dialer))
	require.ErrorContains(t, err, `kafka sink "b" and kafka sink "a" write to one cluster (its id is c-1)`)
	b.has(t, "out", 0)
	b.mu.Lock()
	require.Empty(t, b.writes.groups)
	b.mu.Unlock()
	require.NoError(t, run(NewSink("b", Brokers(far.addr()))), "two clusters may be")
	b.has(t, "out", 0, "=a")
	far.has(t, "out", 0, "=a")
}

// TestTwoSourcesInOneGroup: what they share is a fault, with both named; what they do not
// share stands side by side in the group.
func TestTwoSourcesInOneGroup(t *testing.T) {
	some := func(opts ...SourceOption) []SourceOption { return opts }
	elsewhere := sourceOption(func(c *config) { c.brokers = []string{"y:1"} })
	a1, a2 := TopicPartition{"a", 1}, TopicPartition{"a", 2}
	for name, c := range map[string]struct {
		one, two []SourceOption
		says     string
	}{
		"topic":                  {some(Topics("a", "b")), some(Topics("c", "b")), `both read topic "b"`},
		"partition":              {some(Partitions(a1)), some(Topics("a")), "both read a-1"},
		"partitions":             {some(Topics("a")), some(Partitions(a1)), "both read a-1"},
		"topic of a pattern":     {some(TopicPattern("a.*")), some(Topics("ab")), `both read topic "ab"`},
		"pattern":                {some(TopicPattern("a.*")), some(TopicPattern("a.*")), "both read topics that match ^(?:a.*)$"},
		"other partitions":       {some(Partitions(a1)), some(Partitions(a2)), ""},
		"other topics":           {some(Topics("a")), some(Topics("b")), ""},
		"other pattern":          {some(TopicPattern("a.*")), some(TopicPattern(".*b")), ""},
		"other group":            {some(Topics("a")), some(Topics("a"), Group("h")), ""},
		"other cluster, perhaps": {some(Topics("a")), some(Topics("a"), elsewhere), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ssc := dstream.New(time.Second)
			dstream.Print(DirectStream(ssc, "one", append(some(Brokers("x:1"), Group("g"), StopAtEnd()), c.one...)...), 1)
			dstream.Print(DirectStream(ssc, "two", append(some(Brokers("x:1"), Group("g"), StopAtEnd()), c.two...)...), 1)
			err := ssc.Validate()
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			for _, says := range []string{`have one Group, "g"`, c.says, "(the other is that of ", "Give each source a group of its own"} {
				require.ErrorContains(t, err, says)
			}
		})
	}
}

// TestTwoPatternsInOneGroup: whether two patterns meet is known when the topics are.
func TestTwoPatternsInOneGroup(t *testing.T) {
	b := newFake(t)
	b.log("a1", 0, batchtest.Values(0, "x"))
	b.log("b1", 0, batchtest.Values(0, "y", "z"))
	run := func() error {
		return dstream.Run(t.Context(), time.Millisecond, func(ssc *dstream.StreamingContext) error {
			for name, pattern := range map[string]string{"one": "a.*|ab", "two": "b.*|ab"} {
				in := DirectStream(ssc, name, Brokers(b.addr()), TopicPattern(pattern), FromEarliest(), StopAtEnd(), Group("g"))
				dstream.Foreach(in, func(context.Context, dstream.Batch, Record) error { return nil })
			}
			return nil
		}, dstream.WithStopWhenDone())
	}
	require.NoError(t, run())
	b.mu.Lock()
	have := map[TopicPartition]int64{}
	for tp, o := range b.writes.groups["g"] {
		have[tp] = o.offset
	}
	b.mu.Unlock()
	require.Equal(t, map[TopicPartition]int64{{"a1", 0}: 1, {"b1", 0}: 2}, have, "side by side")
	b.log("ab", 0, batchtest.Values(0, "both"))
	err := run()
	for _, says := range []string{`have one Group, "g"`, "both read ab-0", `source "one"`, `source "two"`} {
		require.ErrorContains(t, err, says)
	}
}
