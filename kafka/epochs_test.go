package kafka

import (
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// led makes a partition of a topic without an id that was written under several leader
// epochs; ends are those of the logs of each but the last.
func led(t *testing.T, epoch int32, ends ...int64) (*fakeBroker, *fakeLog) {
	b := newFake(t)
	b.anonymous = true
	l := b.log("t", 0, batchtest.Values(0, "a", "b", "c", "d"))
	l.epoch, l.ends = epoch, ends
	return b, l
}

// planned is the plan of an earlier run.
func planned(until int64, mark string) *source.Plan {
	return &source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 0, Until: until, Mark: mark}}}
}

func read(t *testing.T, s *kafkaSource, r source.Range) error {
	return s.Read(t.Context(), r, func(int64, Record) error { return nil })
}

// TestLeaderEpochGoesIntoThePlan: as the broker tells it; one that tells none is
// believed.
func TestLeaderEpochGoesIntoThePlan(t *testing.T) {
	b, l := led(t, 7)
	s := open(t, b, nil)
	p, _ := readAll(t, s, source.Limits{Records: 1})
	require.Equal(t, "7", p.Ranges[0].Mark)
	require.Empty(t, p.Ranges[0].Epoch)
	b.mu.Lock()
	l.epoch, l.ends = 8, []int64{0, 0, 0, 0, 0, 0, 0, 3}
	b.mu.Unlock()
	p, got := readAll(t, s, source.Limits{Records: 1})
	require.Equal(t, []string{"0@1=b"}, got)
	require.Equal(t, "8", p.Ranges[0].Mark, "a leader that took all over")

	b, _ = led(t, 7)
	b.old = true
	p, _ = readAll(t, open(t, b, planned(1, "9")), source.Limits{})
	require.Empty(t, p.Ranges[0].Mark)
}

// TestTopicWithoutIDMadeAgain: it has grown beyond the position, and has no id; the
// leader epochs of a new topic begin again. // report 22
func TestTopicWithoutIDMadeAgain(t *testing.T) {
	says := []string{`topic "t"`, "made again", "partition 0", "up to offset 2", "leader epoch 5", "new checkpoint", "ContinueOnLoss"}
	for _, first := range []string{"plan", "read"} {
		b, _ := led(t, 0)
		last := planned(2, "5")
		s := open(t, b, last, RetryFor(10*time.Millisecond))
		var err error
		if first == "plan" {
			_, err = s.Plan(t.Context(), source.Limits{})
		} else {
			err = read(t, s, last.Ranges[0])
		}
		require.ErrorAs(t, err, new(*source.ChangedError))
		for _, text := range says {
			require.ErrorContains(t, err, text)
		}
		require.False(t, passing(err))
	}

	b, _ := led(t, 0)
	last := planned(2, "5")
	s := open(t, b, last, RetryFor(10*time.Millisecond), ContinueOnLoss())
	require.NoError(t, read(t, s, last.Ranges[0]), "nothing is left of it")
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@0=a", "0@1=b", "0@2=c", "0@3=d"}, got)
	require.Equal(t, "0", p.Ranges[0].Mark)
	require.EqualValues(t, 1, s.Report().Counters["lost_topics"])
}

// TestLogLosesItsTail: an unclean leader election takes records away that were read,
// and the log grows beyond the position again. No choice makes that good.
func TestLogLosesItsTail(t *testing.T) {
	check := func(err error) {
		t.Helper()
		var lost *TruncatedError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, []any{"t", int32(0), int64(3), int32(1), int64(2)}, []any{lost.Topic, lost.Partition, lost.Read, lost.Epoch, lost.End})
		for _, text := range []string{`topic "t" partition 0`, "up to offset 3", "leader epoch 1", "ends at offset 2", "offsets 2 to 2 were lost", "new checkpoint", "FromOffsets", "older version"} {
			require.ErrorContains(t, err, text)
		}
		require.False(t, passing(err))
	}
	for _, id := range []bool{false, true} {
		for _, opts := range [][]SourceOption{nil, {ContinueOnLoss()}} {
			b, l := led(t, 1, 0)
			b.anonymous = !id
			s := open(t, b, nil, opts...)
			p, err := s.Plan(t.Context(), source.Limits{Records: 3})
			require.NoError(t, err)
			b.mu.Lock()
			l.epoch, l.ends = 2, []int64{0, 2}
			b.mu.Unlock()
			_, err = s.Plan(t.Context(), source.Limits{})
			check(err)
			require.ErrorContains(t, err, "goes to 4 now")

			s = open(t, b, &p, opts...) // a new run
			check(read(t, s, p.Ranges[0]))
			_, err = s.Plan(t.Context(), source.Limits{})
			check(err)
		}
	}
}

// TestLogLosesItsTailInMidBatch: what was written after the plan, below its end, is
// found by the leader epoch of its batch.
func TestLogLosesItsTailInMidBatch(t *testing.T) {
	b, l := led(t, 1, 0)
	s := open(t, b, nil)
	p, err := s.Plan(t.Context(), source.Limits{Records: 3})
	require.NoError(t, err)
	again := batchtest.Values(2, "x", "y")
	again.Leader = 2
	b.mu.Lock()
	l.epoch, l.ends = 2, []int64{0, 2}
	l.batches = []batchtest.Batch{batchtest.Values(0, "a", "b"), again}
	b.mu.Unlock()
	require.ErrorAs(t, read(t, s, p.Ranges[0]), new(*TruncatedError))

	b.mu.Lock()
	l.ends = []int64{0, 3} // the broker says that it is as it was
	b.mu.Unlock()
	require.NoError(t, read(t, s, p.Ranges[0]))
}

// TestReplacedLeaderDoesNotKnowYet: one that tells an older epoch for a moment is asked
// again; one that stays so, of a topic with the same id, is an error of its own.
func TestReplacedLeaderDoesNotKnowYet(t *testing.T) {
	b, l := led(t, 4)
	asked := 0
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 23 {
			if asked++; asked == 3 {
				l.epoch, l.ends = 6, []int64{4, 4, 4, 4, 4, 4}
			}
		}
		return 0, ""
	}
	_, got := readAll(t, open(t, b, planned(2, "5"), RetryFor(time.Minute)), source.Limits{})
	require.Equal(t, []string{"0@2=c", "0@3=d"}, got)
	require.Equal(t, 3, asked)

	b, _ = led(t, 4)
	b.anonymous = false
	_, err := open(t, b, planned(2, "5"), RetryFor(time.Millisecond)).Plan(t.Context(), source.Limits{})
	require.ErrorAs(t, err, new(*source.ChangedError))
	require.ErrorContains(t, err, "though the topic has the same id")
}

// TestLeaderThatHasWrittenNothing: leaders change, nobody writes, and the brokers know
// only epochs in which something was written. Their own is as late, so their history is
// the one that was read, unless the log is shorter.
func TestLeaderThatHasWrittenNothing(t *testing.T) {
	for _, id := range []bool{false, true} {
		b, l := led(t, 5, 1, 4)
		b.anonymous, l.unwritten = !id, true
		s := open(t, b, nil, RetryFor(time.Millisecond))
		p, err := s.Plan(t.Context(), source.Limits{Records: 3})
		require.NoError(t, err)
		require.Equal(t, "5", p.Ranges[0].Mark)
		b.mu.Lock()
		l.epoch = 6
		b.mu.Unlock()
		more, got := readAll(t, s, source.Limits{})
		require.Equal(t, []string{"0@3=d"}, got, "the same run")
		require.Equal(t, "6", more.Ranges[0].Mark)
		s = open(t, b, &p, RetryFor(time.Millisecond)) // a new run
		require.NoError(t, read(t, s, p.Ranges[0]))
		_, got = readAll(t, s, source.Limits{})
		require.Equal(t, []string{"0@3=d"}, got)

		b.mu.Lock()
		l.epoch = 4 // not as late
		b.mu.Unlock()
		err = read(t, open(t, b, &p, RetryFor(time.Millisecond)), p.Ranges[0])
		require.ErrorAs(t, err, new(*source.ChangedError))
		require.ErrorContains(t, err, "knows no epoch that late")
	}
}

// TestLeaderEpochsAreAskedAgain: what fails for a moment, and what fails for good.
func TestLeaderEpochsAreAskedAgain(t *testing.T) {
	b, _ := led(t, 5)
	left := 2
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 23 && left > 0 {
			left--
			return 6, ""
		}
		return 0, ""
	}
	_, got := readAll(t, open(t, b, planned(3, "5")), source.Limits{})
	require.Equal(t, []string{"0@3=d"}, got)
	require.Zero(t, left)

	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 23 {
			return 29, ""
		}
		return 0, ""
	}
	b.mu.Unlock()
	_, err := open(t, b, planned(3, "5")).Plan(t.Context(), source.Limits{})
	require.ErrorContains(t, err, "leader epochs of topics t")
	require.ErrorContains(t, err, "t-0 at broker "+b.addr())
}

func TestMarks(t *testing.T) {
	require.Equal(t, "", markOf(-1))
	require.Equal(t, "3", markOf(3))
	for mark, want := range map[string]int32{"": -1, "0": 0, "3": 3, "-1": -1, "x": -1, "99999999999": -1} {
		require.Equal(t, want, epochOf(mark), "%q", mark)
	}
}
