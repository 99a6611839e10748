package kafka

import (
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// of is what the group has of a partition, -1 for nothing.
func (b *fakeBroker) of(tp TopicPartition) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o, ok := b.writes.groups["g"][tp]; ok {
		return o.offset
	}
	return -1
}

// TestMirrorOfADeletedTopic: it disturbs the mirror of no other. // report 22
func TestMirrorOfADeletedTopic(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b", "c", "d"))
	b.log("u", 0, batchtest.Values(0, "a", "b", "c", "d"))
	s := open(t, b, nil, Topics("u"), Group("g"))
	commits(t, s, 2)
	b.mu.Lock()
	b.writes.unknown = map[string]bool{"u": true}
	b.mu.Unlock()
	for range 2 {
		commits(t, s, 2)
		require.Zero(t, s.Report().Counters["mirror_failed"])
	}
	require.EqualValues(t, 3, b.of(TopicPartition{"t", 0}))
	require.EqualValues(t, 1, b.of(TopicPartition{"u", 0}))
	s.mirror.mu.Lock()
	require.NotContains(t, s.mirror.want, TopicPartition{"u", 0})
	s.mirror.mu.Unlock()
	b.mu.Lock()
	b.writes.unknown = nil
	b.mu.Unlock()
	commits(t, s, 2)
	require.EqualValues(t, 4, b.of(TopicPartition{"t", 0}))
	require.EqualValues(t, 4, b.of(TopicPartition{"u", 0}), "it is there again")
}

// TestMirroredOffsetsExpire: what the group has lost is written again, when anything
// moves.
func TestMirroredOffsetsExpire(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("t", 1, batchtest.Values(0, "a", "b", "c", "d"))
	s := open(t, b, nil, Group("g"))
	commits(t, s, 2)
	idle := TopicPartition{"t", 0}
	require.EqualValues(t, 1, b.of(idle))
	b.mu.Lock()
	delete(b.writes.groups["g"], idle)
	b.mu.Unlock()
	commits(t, s, 1)
	require.EqualValues(t, 1, b.of(idle))
	require.EqualValues(t, 2, b.of(TopicPartition{"t", 1}))
}

// TestMirrorIsWrittenAgain: also when nothing moves, long before Kafka forgets it.
func TestMirrorIsWrittenAgain(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	k := clock.NewManual(time.Unix(1000, 0))
	s := open(t, b, nil, Group("g"), sourceOption(func(c *config) { c.clock = k }))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	require.NoError(t, s.Committed(t.Context(), p))
	for want := int64(1); want <= 3; want++ {
		require.Eventually(t, func() bool { return s.Report().Counters["mirrored"] == want }, time.Minute, time.Millisecond)
		require.EqualValues(t, 1, b.of(TopicPartition{"t", 0}))
		k.Advance(mirrorEvery)
	}
}

// TestMirrorOfAnotherTopic: what an earlier run has planned of a topic that was made again
// is not mirrored: the group would be ahead of all that there is. // report 22
func TestMirrorOfAnotherTopic(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		b := newFake(t)
		b.anonymous = anonymous
		b.log("t", 0, batchtest.Values(0, "a", "b"))
		s := open(t, b, nil, Group("g"), ContinueOnLoss())
		_, err := s.Plan(t.Context(), source.Limits{})
		require.NoError(t, err)
		s.mu.Lock()
		id := s.parts[0].id
		now := s.mirrorable(source.Plan{Ranges: []source.Range{{Partition: "t-0", Until: 2, Epoch: id}}})
		old := s.mirrorable(source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 400, Until: 500, Epoch: "another"}}})
		beyond := s.mirrorable(source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 400, Until: 500, Epoch: id}}})
		s.mu.Unlock()
		require.Len(t, now.Ranges, 1)
		require.Empty(t, old.Ranges)
		require.Empty(t, beyond.Ranges)
	}
}
