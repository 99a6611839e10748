package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// expired is a log of which retention has left [75033, 80000), and a plan before it.
func expired(b *fakeBroker) (*fakeLog, *source.Plan) {
	l := b.log("t", 0, batchtest.Values(75033, "first"), batchtest.Empty(75034, 79998), batchtest.Values(79999, "last"))
	return l, &source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 50000, Until: 50456}}}
}

// TestExpiredOffsetStops: before any record, with the numbers and the choices. // report 20
func TestExpiredOffsetStops(t *testing.T) {
	b := newFake(t)
	_, last := expired(b)
	s := open(t, b, last)
	_, err := s.Plan(t.Context(), source.Limits{})
	var gone *OffsetRangeError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, OffsetRangeError{"t", 0, 50456, 75033, 80000}, *gone)
	for _, says := range []string{`topic "t" partition 0`, "50456", "75033..80000", "24577", "ContinueOnLoss", "new checkpoint"} {
		require.ErrorContains(t, err, says)
	}
}

func TestContinueOnLoss(t *testing.T) { // report 20
	b := newFake(t)
	_, last := expired(b)
	var told []source.Notice
	s := open(t, b, last, ContinueOnLoss(), OnNotice(func(n source.Notice) { told = append(told, n) }))
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@75033=first", "0@79999=last"}, got)
	require.EqualValues(t, 75033, p.Ranges[0].From)
	require.EqualValues(t, 24577, s.Report().Counters["lost_records"])
	says(t, s, `topic "t" partition 0`, "50456", "75032", "24577 records are lost")
	require.Equal(t, s.Report().Notices, told)
	_, got = readAll(t, s, source.Limits{})
	require.Empty(t, got)
	require.EqualValues(t, 24577, s.Report().Counters["lost_records"], "counted once")

	// The epoch that was planned before, and is redone, reads what is left of its range.
	again := open(t, b, last, ContinueOnLoss())
	require.NoError(t, again.Read(t.Context(), last.Ranges[0], nil))
	require.EqualValues(t, 456, again.Report().Counters["lost_records"])

	_, err := open(t, b, nil, ContinueOnLoss(), FromOffsets(map[TopicPartition]int64{{"t", 0}: 7})).Plan(t.Context(), source.Limits{})
	require.ErrorAs(t, err, new(*OffsetRangeError), "where to start was said in words")
}

// TestLossInMidRun: retention overtakes a running job, between two plans and between a
// plan and its reads.
func TestLossInMidRun(t *testing.T) { // report 20
	for _, on := range []bool{false, true} {
		b := newFake(t)
		l := b.log("t", 0, many(0, 100, 10, 1000)...)
		opts := []SourceOption{MaxBatchBytes(200 << 10), ReadAhead(0)}
		if on {
			opts = append(opts, ContinueOnLoss())
		}
		s := open(t, b, nil, opts...)
		readAll(t, s, source.Limits{Records: 100})
		p, err := s.Plan(t.Context(), source.Limits{Records: 100})
		require.NoError(t, err)
		cut := func(start int64) {
			b.mu.Lock()
			defer b.mu.Unlock()
			l.batches = l.batches[(start-l.start)/10:]
			l.start = start
		}
		cut(150)
		var got []int64
		read := func() error {
			return s.Read(t.Context(), p.Ranges[0], func(o int64, _ Record) error { got = append(got, o); return nil })
		}
		if !on {
			require.ErrorAs(t, read(), new(*OffsetRangeError))
			continue
		}
		require.NoError(t, read())
		require.Len(t, got, 50)
		require.EqualValues(t, 150, got[0])
		require.EqualValues(t, 50, s.Report().Counters["lost_records"])
		cut(400)
		_, rest := readAll(t, s, source.Limits{})
		require.Less(t, len(rest), 300, "the bytes are bounded still")
		require.True(t, strings.HasPrefix(rest[0], "0@400="), "it begins at what is left")
		require.EqualValues(t, 250, s.Report().Counters["lost_records"])
	}
}

// TestTopicMadeAgainGoesOn: a topic that was made again while the job was down, or under
// it, is read from its first offset, if that is wanted. // report 22
func TestTopicMadeAgainGoesOn(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, many(0, 5, 100, 10)...)
	b.log("t", 1, many(0, 5, 100, 10)...)
	s := open(t, b, nil, ContinueOnLoss(), atEnd())
	last, _ := readAll(t, s, source.Limits{})
	require.EqualValues(t, 500, last.Ranges[0].Until)
	b.remove("t")
	b.log("t", 0, append(many(0, 6, 100, 10), batchtest.Values(600, "new"))...)
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"t-0"}, names(p))
	require.Len(t, got, 601, "not only from offset 500 on")
	require.NotEqual(t, last.Ranges[0].Epoch, p.Ranges[0].Epoch)
	require.EqualValues(t, 1, s.Report().Counters["lost_topics"])
	says(t, s, `topic "t" was deleted and made again`, "partition 0 up to offset 500")
	says(t, s, "new partitions", "t-0")

	again := open(t, b, &last, ContinueOnLoss())
	for _, r := range last.Ranges { // a redo of what is gone reads nothing
		r.From = r.Until - 10
		require.NoError(t, again.Read(t.Context(), r, nil))
	}
	require.EqualValues(t, 20, again.Report().Counters["lost_records"])
	_, got = readAll(t, again, source.Limits{})
	require.Len(t, got, 601)
	require.EqualValues(t, 1, again.Report().Counters["lost_topics"])

	err := made(b).Open(t.Context(), &last)
	require.ErrorAs(t, err, new(*source.ChangedError))
	for _, says := range []string{"made again", "partition 0 up to offset 500, partition 1 up to offset 500", "ContinueOnLoss", "new checkpoint"} {
		require.ErrorContains(t, err, says)
	}
}

// atEnd is FromLatest after FromEarliest, for made; the job has read all there is.
func atEnd() SourceOption { return sourceOption(func(c *config) { c.at = -1 }) }

// TestDeletedTopic: told with what was read of it; by choice the job goes on, and reads
// the topic if it comes again.
func TestDeletedTopic(t *testing.T) { // report 22
	t.Parallel() // it waits for tries
	for _, pattern := range []bool{false, true} {
		b := newFake(t)
		which := Topics("a", "b")
		if pattern {
			which = TopicPattern("[ab]")
		}
		b.log("a", 0, batchtest.Values(0, "x", "y"))
		b.log("b", 0, batchtest.Values(0, "z"))
		stops := fresh(t, b, nil, which, FromEarliest(), RefreshEvery(time.Hour))
		last, _ := readAll(t, stops, source.Limits{})
		s := fresh(t, b, &last, which, ContinueOnLoss(), RefreshEvery(0))
		readAll(t, s, source.Limits{})
		b.remove("a")
		_, err := stops.Plan(t.Context(), source.Limits{})
		tells := func(err error) {
			t.Helper()
			var gone *TopicGoneError
			require.ErrorAs(t, err, &gone)
			require.Equal(t, TopicGoneError{"a", map[int32]int64{0: 2}, gone.Err}, *gone)
			require.ErrorIs(t, err, ErrNoTopic)
			for _, says := range []string{`topic "a"`, "partition 0 up to offset 2", "ContinueOnLoss", "new checkpoint"} {
				require.ErrorContains(t, err, says)
			}
		}
		tells(err)
		tells(NewSource(Brokers(b.addr()), which, RetryFor(0)).Open(t.Context(), &last))

		// A restart goes on without it, too, and says so.
		again := fresh(t, b, &last, which, ContinueOnLoss(), RefreshEvery(0))
		p, got := readAll(t, again, source.Limits{})
		require.Equal(t, []string{"a-0", "b-0"}, names(p), "its position is kept, see TestAbsentTopicIsRemembered")
		require.Empty(t, got)
		require.EqualValues(t, 1, again.Report().Counters["lost_topics"])
		says(t, again, `topic "a" is not there any more`, "deleted", "partition 0 up to offset 2")
		redone := last.Ranges[0]
		redone.From = 0
		require.NoError(t, again.Read(t.Context(), redone, nil), "an epoch that was not committed")
		require.EqualValues(t, 2, again.Report().Counters["lost_records"])
		if !pattern { // but a name that never was is a mistake
			err = NewSource(Brokers(b.addr()), Topics("b", "never"), ContinueOnLoss(), RetryFor(0)).Open(t.Context(), &last)
			require.ErrorIs(t, err, ErrNoTopic)
			require.ErrorContains(t, err, `topic "never": the topic does not exist: create it, or mend the name`)
			require.ErrorIs(t, NewSource(Brokers(b.addr()), which, ContinueOnLoss(), RetryFor(0)).Open(t.Context(), nil), ErrNoTopic)
		}

		p, got = readAll(t, s, source.Limits{})
		require.Equal(t, []string{"a-0", "b-0"}, names(p))
		require.Empty(t, got)
		b.log("a", 0, batchtest.Values(0, "again"))
		_, got = readAll(t, again, source.Limits{})
		require.Equal(t, []string{"0@0=again"}, got)
		p, got = readAll(t, s, source.Limits{})
		require.Equal(t, []string{"a-0", "b-0"}, names(p))
		require.Equal(t, []string{"0@0=again"}, got)
	}
}

// TestTopicIsReadNoMore: what was planned of a topic that the options do not name any
// more can be read again, for the epoch may be redone.
func TestTopicIsReadNoMore(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("u", 0, batchtest.Values(0, "b"))
	both := fresh(t, b, nil, Topics("t", "u"), FromEarliest())
	last, err := both.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	s := fresh(t, b, &last, Topics("t"))
	var got []string
	for _, r := range last.Ranges {
		require.NoError(t, s.Read(t.Context(), r, func(_ int64, v Record) error { got = append(got, v.Text()); return nil }))
	}
	require.Equal(t, []string{"a", "b"}, got)
	p, _ := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"t-0"}, names(p))
}

// TestShorterLogIsAnError: what was read and is gone from the end means that offsets name
// other records now; nobody may go on over it.
func TestShorterLogIsAnError(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, batchtest.Values(0, "a", "b", "c"))
	s := open(t, b, nil, ContinueOnLoss(), RetryFor(50*time.Millisecond))
	readAll(t, s, source.Limits{})
	b.mu.Lock()
	l.end, l.stable = 2, 2
	b.mu.Unlock()
	_, err := s.Plan(t.Context(), source.Limits{})
	require.ErrorContains(t, err, "offset 3 is beyond the end 2")
}

func TestPartitionNames(t *testing.T) {
	require.Equal(t, TopicPartition{"a-b-3", 7}, partitionOf("a-b-3-7"))
	require.Equal(t, TopicPartition{"x", -1}, partitionOf("x"))
	require.Equal(t, TopicPartition{"x-y", -1}, partitionOf("x-y"))
	var many []source.Range
	for i := range int32(10) {
		many = append(many, source.Range{Partition: TopicPartition{"t", i}.String(), Until: 5})
	}
	require.Contains(t, ends("t", many), "and 2 more")
}
