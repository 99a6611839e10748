package kafka

import (
	"testing"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// mirrored is a source with a group; told are its notices.
func mirrored(t *testing.T, last *source.Plan) (*fakeBroker, *kafkaSource, chan source.Notice) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b", "c", "d"))
	told := make(chan source.Notice, 100)
	return b, open(t, b, last, Group("g"), OnNotice(func(n source.Notice) { told <- n })), told
}

func (b *fakeBroker) group(t *testing.T, want int64) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, want, b.writes.groups["g"][TopicPartition{"t", 0}].offset)
}

// commits plans and commits n records, and waits until the mirror has seen that.
func commits(t *testing.T, s *kafkaSource, n int64) {
	t.Helper()
	p, err := s.Plan(t.Context(), source.Limits{Records: n})
	require.NoError(t, err)
	s.mirror.mu.Lock()
	for _, r := range p.Ranges {
		s.mirror.want[partitionOf(r.Partition)] = spot{r.Until, r.Epoch}
	}
	s.mirror.mu.Unlock()
	s.mirror.told(s.mirror.bring(t.Context())) // as its goroutine does, which nobody wakes
}

// TestMirrorBrings: positions, as they are committed; an answer that is lost changes
// nothing. // KD6
func TestMirrorBrings(t *testing.T) {
	b, s, told := mirrored(t, nil)
	commits(t, s, 1)
	b.group(t, 1)
	b.faults(8, 0, "close", 1)
	commits(t, s, 1)
	b.group(t, 2)
	b.faults(8, 16, "", 2) // moved
	commits(t, s, 1)
	b.group(t, 3)
	require.EqualValues(t, 3, s.Report().Counters["mirrored"])
	require.Empty(t, told)
}

// TestMirrorWithMembers: a group that somebody reads by is told, once.
func TestMirrorWithMembers(t *testing.T) {
	b, s, told := mirrored(t, nil)
	b.mu.Lock()
	b.writes.members = true
	b.mu.Unlock()
	commits(t, s, 1)
	commits(t, s, 1)
	require.Len(t, told, 1)
	require.Contains(t, (<-told).Text, "the group has members: give the job a group of its own")
	b.mu.Lock()
	b.writes.members = false
	b.mu.Unlock()
	commits(t, s, 1)
	require.Contains(t, (<-told).Text, `mirrored to group "g" again`)
	b.group(t, 3)
}

// TestMirrorIsAhead: what the group had before stays until the job has passed it.
func TestMirrorIsAhead(t *testing.T) {
	b, s, told := mirrored(t, nil)
	b.mu.Lock()
	b.writes.put("g", map[TopicPartition]groupOffset{{"t", 0}: {2, ""}})
	b.mu.Unlock()
	commits(t, s, 1)
	require.Contains(t, (<-told).Text, "has offset 2 of t-0, the job is at 1")
	b.group(t, 2)
	commits(t, s, 2)
	b.group(t, 3)
}

// TestTwoJobsMirrorToOneGroup: each is told of the other, once, and neither moves the
// other's offset back.
func TestTwoJobsMirrorToOneGroup(t *testing.T) {
	b, s, told := mirrored(t, nil)
	commits(t, s, 1)
	other := open(t, b, nil, Group("g"))
	commits(t, other, 3)
	b.group(t, 3)
	commits(t, s, 1)
	b.group(t, 3)
	require.Len(t, told, 1)
	require.Contains(t, (<-told).Text, `somebody else writes to group "g": the offset of t-0 was 1 and is 3`)
	commits(t, s, 2)
	b.group(t, 4)
	require.Empty(t, told)
}

// TestMirrorNamesItsRoot: offsets say of which checkpoint's job they are. One of another
// root is told of it, once; one of the same root, or of none, is not.
func TestMirrorNamesItsRoot(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b", "c", "d"))
	told := make(chan source.Notice, 100)
	of := func(root string) *kafkaSource {
		s := NewSource(Brokers(b.addr()), Topics("t"), FromEarliest(), Group("g"), OnNotice(func(n source.Notice) { told <- n })).(*kafkaSource)
		if root != "" {
			s.SetRoot(root)
		}
		require.NoError(t, s.Open(t.Context(), nil))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	one := of("root1")
	commits(t, one, 1)
	b.mu.Lock()
	require.Equal(t, groupOffset{1, "statemill root root1"}, b.writes.groups["g"][TopicPartition{"t", 0}])
	b.mu.Unlock()
	commits(t, of("root1"), 2)
	commits(t, of(""), 2)
	require.Empty(t, told)
	commits(t, one, 1) // the group was at 2, of the same root
	require.Contains(t, (<-told).Text, "somebody else writes")

	two := of("root2")
	b.mu.Lock()
	b.writes.put("g", map[TopicPartition]groupOffset{{"t", 0}: {3, "statemill root root1"}})
	b.mu.Unlock()
	commits(t, two, 4)
	require.Len(t, told, 1)
	text := (<-told).Text
	for _, want := range []string{`group "g"`, "offset 3 of t-0", "root root1", "this one is root root2", "a group of its own"} {
		require.Contains(t, text, want)
	}
	b.group(t, 4)
	b.mu.Lock()
	b.writes.put("g", map[TopicPartition]groupOffset{{"t", 0}: {4, "statemill root root1"}})
	b.mu.Unlock()
	commits(t, two, 0)
	require.Empty(t, told, "once")
}

// TestMirrorGivesUp: what fails is told, whichever request it is.
func TestMirrorGivesUp(t *testing.T) {
	for key, says := range map[int16]string{8: "commit offsets", 9: "read offsets", 10: "read offsets"} {
		b, s, told := mirrored(t, nil)
		b.faults(key, 29, "", 1000)
		commits(t, s, 1)
		text := (<-told).Text
		require.Contains(t, text, says)
		require.Contains(t, text, wire.Error(29).Error())
		require.EqualValues(t, 1, s.Report().Counters["mirror_failed"])
	}
}
