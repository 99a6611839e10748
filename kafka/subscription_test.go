package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// fresh makes a source without the options of made, at the end of its topics.
func fresh(t *testing.T, b *fakeBroker, last *source.Plan, opts ...SourceOption) *kafkaSource {
	t.Helper()
	s := NewSource(append([]SourceOption{Brokers(b.addr()), RetryFor(300 * time.Millisecond)}, opts...)...).(*kafkaSource)
	require.NoError(t, s.Open(t.Context(), last))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// at sets the clock of health and of looking around.
func at(m *clock.Manual) SourceOption { return sourceOption(func(c *config) { c.clock = m }) }

func manual() *clock.Manual { return clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) }

func names(p source.Plan) (out []string) {
	for _, r := range p.Ranges {
		out = append(out, r.Partition)
	}
	return out
}

// says tells whether a notice with these words came.
func says(t *testing.T, s *kafkaSource, words ...string) {
	t.Helper()
	for _, n := range s.Report().Notices {
		all := true
		for _, w := range words {
			all = all && strings.Contains(n.Text, w)
		}
		if all {
			return
		}
	}
	require.Fail(t, "no such notice", "%q in %v", words, s.Report().Notices)
}

func TestPattern(t *testing.T) { // KD2
	for _, old := range []bool{false, true} {
		b := newFake(t)
		b.old = old
		b.log("pat2", 0, batchtest.Values(0, "c", "d"))
		b.log("pat1", 0, batchtest.Values(0, "a", "b"))
		b.log("pat10", 0, batchtest.Values(0, "no"))
		b.log("xpat1", 0, batchtest.Values(0, "no"))
		b.log("__pat", 0, batchtest.Values(0, "no"))
		s := fresh(t, b, nil, TopicPattern(`pat\d|.*__.*`), FromEarliest(), RefreshEvery(0),
			FromOffsets(map[TopicPartition]int64{{"pat1", 0}: 1}))
		p, got := readAll(t, s, source.Limits{})
		require.Equal(t, []string{"pat1-0", "pat2-0"}, names(p))
		require.Equal(t, []string{"0@1=b", "0@0=c", "0@1=d"}, got)
		b.log("pat15", 0, batchtest.Values(0, "no"))
		b.log("pat0", 0, batchtest.Values(0, "new"))
		p, got = readAll(t, s, source.Limits{})
		require.Equal(t, []string{"pat0-0", "pat1-0", "pat2-0"}, names(p))
		require.Equal(t, []string{"0@0=new"}, got)
		says(t, s, "new partitions", "pat0-0")
	}
}

// TestPatternOfNothing: a pattern may match nothing yet.
func TestPatternOfNothing(t *testing.T) {
	b := newFake(t)
	s := fresh(t, b, nil, TopicPattern("t.*"), RefreshEvery(0))
	p, _ := readAll(t, s, source.Limits{})
	require.Empty(t, p.Ranges)
	b.log("tx", 0, batchtest.Values(0, "a"))
	_, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@0=a"}, got, "from its first offset, whatever the start")
}

func TestAssignment(t *testing.T) { // KD4
	b := newFake(t)
	for n := range int32(3) {
		b.log("t", n, batchtest.Values(0, "a", "b", "c"))
	}
	s := fresh(t, b, nil, Partitions(TopicPartition{"t", 2}, TopicPartition{"t", 0}), FromEarliest(), RefreshEvery(0),
		FromOffsets(map[TopicPartition]int64{{"t", 2}: 2}))
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"t-0", "t-2"}, names(p))
	require.Equal(t, []string{"0@0=a", "0@1=b", "0@2=c", "2@2=c"}, got)
	b.log("t", 3, batchtest.Values(0, "not mine"))
	p, _ = readAll(t, s, source.Limits{})
	require.Len(t, p.Ranges, 2)

	err := NewSource(Brokers(b.addr()), Partitions(TopicPartition{"t", 9})).Open(t.Context(), nil)
	require.ErrorContains(t, err, "partition t-9 does not exist")
	late := fresh(t, b, nil, Partitions(TopicPartition{"t", 4}), WaitForTopics(), RefreshEvery(0))
	p, _ = readAll(t, late, source.Limits{})
	require.Empty(t, p.Ranges)
	b.log("t", 4, batchtest.Values(0, "a"))
	_, got = readAll(t, late, source.Limits{})
	require.Equal(t, []string{"4@0=a"}, got)
}

// TestNewPartitions: they are found within the refresh time and read from their first
// offset, though the job began at the end; so are those that came while it was down. // report 23
func TestNewPartitions(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "old"))
	b.log("t", 1)
	b.log("u", 0)
	m := manual()
	s := fresh(t, b, nil, Topics("t", "u"), at(m))
	last, got := readAll(t, s, source.Limits{})
	require.Empty(t, got)
	b.log("t", 2)
	b.log("t", 3, batchtest.Values(0, "a", "b"))
	m.Advance(DefaultRefreshEvery - 1)
	p, _ := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"t-0", "t-1", "u-0"}, names(p))
	m.Advance(1)
	p, got = readAll(t, s, source.Limits{})
	require.Equal(t, []string{"t-0", "t-1", "t-2", "t-3", "u-0"}, names(p))
	require.Equal(t, []string{"3@0=a", "3@1=b"}, got)

	again := fresh(t, b, &last, Topics("t", "u"))
	_, got = readAll(t, again, source.Limits{})
	require.Equal(t, []string{"3@0=a", "3@1=b"}, got)

	b.log("v", 0, batchtest.Values(0, "old"))
	added := fresh(t, b, &last, Topics("t", "u", "v"))
	_, got = readAll(t, added, source.Limits{})
	require.Equal(t, []string{"3@0=a", "3@1=b"}, got, "a topic that was added to the options starts by them")
	waiting := fresh(t, b, &last, Topics("t", "u", "v"), WaitForTopics())
	_, got = readAll(t, waiting, source.Limits{})
	require.Equal(t, []string{"3@0=a", "3@1=b", "0@0=old"}, got, "unless it may have appeared meanwhile")
}

func TestWaitForTopics(t *testing.T) { // report 23
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "old"))
	require.ErrorIs(t, NewSource(Brokers(b.addr()), Topics("t", "later"), RetryFor(0)).Open(t.Context(), nil), ErrNoTopic)
	s := fresh(t, b, nil, Topics("later", "t"), WaitForTopics(), RefreshEvery(0))
	says(t, s, `topic "later" does not exist`)
	_, got := readAll(t, s, source.Limits{})
	require.Empty(t, got)
	b.log("later", 0, batchtest.Values(0, "a"))
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"later-0", "t-0"}, names(p))
	require.Equal(t, []string{"0@0=a"}, got)
}

// TestLookingAroundFails: like any plan that fails, and it is tried again.
func TestLookingAroundFails(t *testing.T) {
	b := newFake(t)
	b.log("t", 0)
	s := fresh(t, b, nil, Topics("t"), RefreshEvery(0))
	asked := 0
	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if asked++; asked < 3 && key == 3 {
			return 5, ""
		}
		return 0, ""
	}
	b.mu.Unlock()
	readAll(t, s, source.Limits{})
	b.close()
	_, err := s.Plan(t.Context(), source.Limits{})
	require.ErrorContains(t, err, "look for new partitions of topics t")
}

func TestFromTime(t *testing.T) {
	b := newFake(t)
	timed := func(base, ms int64, values ...string) batchtest.Batch {
		x := batchtest.Values(base, values...)
		x.Time, x.MaxTime = ms, ms
		return x
	}
	b.log("t", 0, timed(5, 1000, "a", "b"), timed(7, 2000, "c"), timed(8, 3000, "d"))
	b.log("t", 1, timed(0, 100, "old"))
	for at, want := range map[time.Time][]string{
		time.UnixMilli(2000):                   {"0@7=c", "0@8=d"},
		time.UnixMilli(2000).Add(1):            {"0@8=d"},
		time.UnixMilli(9999):                   nil,
		time.UnixMilli(0).Add(-time.Hour):      {"0@5=a", "0@6=b", "0@7=c", "0@8=d", "1@0=old"},
		time.UnixMilli(100).Add(time.Hour * 0): {"0@5=a", "0@6=b", "0@7=c", "0@8=d", "1@0=old"},
	} {
		_, got := readAll(t, fresh(t, b, nil, Topics("t"), FromTime(at)), source.Limits{})
		require.Equal(t, want, got, "%v", at)
	}
}

func TestSubscriptionFaults(t *testing.T) {
	for want, opts := range map[string][]SourceOption{
		"exclude each other":                    {Topics("a"), TopicPattern("b")},
		"exclude each other: give one":          {Topics("a"), Partitions(TopicPartition{"b", 1})},
		"TopicPattern: error parsing regexp":    {TopicPattern("(")},
		"TopicPattern is given twice":           {TopicPattern("a"), TopicPattern("b")},
		"b-1 is named twice":                    {Partitions(TopicPartition{"b", 1}, TopicPartition{"b", 1})},
		"no partition b--1":                     {Partitions(TopicPartition{"b", -1})},
		"RefreshEvery is -1ns":                  {Topics("a"), RefreshEvery(-1)},
		"beyond what Kafka can ask for":         {Topics("a"), FromTime(time.Unix(1<<62, 0))},
		"given 2 times":                         {Topics("a"), FromTime(time.Unix(1, 0)), FromLatest()},
		"partition b-2 is of a topic":           {Partitions(TopicPartition{"b", 1}), FromOffsets(map[TopicPartition]int64{{"b", 2}: 1})},
		"ReadAhead is -1":                       {Topics("a"), ReadAhead(-1)},
		"StallAfter is 1ns":                     {Topics("a"), StallAfter(1)},
		"Group: the name \"\"":                  {Topics("a"), Group("")},
		"OnNotice: the function is nil":         {Topics("a"), OnNotice(nil)},
		"Watch: the monitor is nil":             {Topics("a"), Watch(nil)},
		"no topic is named: Topics(\"name\"), ": {},
	} {
		err := NewSource(append(opts, Brokers("x:1"))...).Open(t.Context(), nil)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, "kafka topics that match ^(?:a)$", NewSource(TopicPattern("a")).(*kafkaSource).String())
	require.Equal(t, "kafka partitions [a-1]", NewSource(Partitions(TopicPartition{"a", 1})).(*kafkaSource).String())
}

// TestDarkPartition: a partition that is new and has no leader yet holds up nobody.
func TestDarkPartition(t *testing.T) {
	b := newFake(t)
	b.log("t", 0)
	s := fresh(t, b, nil, Topics("t"))
	p := newPart(TopicPartition{"t", 1}, "")
	s.add(found{parts: []*part{p}, dark: []*part{p}})
	require.Len(t, s.parts, 1)
	s.add(found{parts: []*part{p}})
	require.Len(t, s.parts, 2)
}

func TestLeadersAreAskedAtOnce(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := fresh(t, b, nil, Topics("t"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.ask(ctx, wire.Latest, s.parts, []int{0}, nil), context.Canceled)
}
