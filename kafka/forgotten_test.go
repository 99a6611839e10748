package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// remembering is a job from topic "t" to some topics, which remembers in a broker.
type remembering struct {
	b    *fakeBroker
	root vfs.Store
}

func newRemembering(t *testing.T) *remembering {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	for _, topic := range []string{"out", "second", "third"} {
		b.log(topic, 0)
	}
	return &remembering{b, vfs.NewObjects()}
}

func (j *remembering) run(ctx context.Context, topics ...string) error {
	return dstream.Run(ctx, time.Millisecond, func(ssc *dstream.StreamingContext) error {
		in := DirectStream(ssc, "in", Brokers(j.b.addr()), Topics("t"), FromEarliest(), StopAtEnd())
		out := NewSink("s", Brokers(j.b.addr()), RetryFor(50*time.Millisecond))
		for _, topic := range topics {
			dstream.Output[Record](in, topic, To(out, topic, echo))
		}
		return nil
	}, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(j.root), dstream.WithIORetry(0))
}

// deleted is a topic that was deleted and made again: Kafka forgets the offsets under it.
func (j *remembering) deleted(topic string) (group string) {
	j.b.mu.Lock()
	defer j.b.mu.Unlock()
	for name, offsets := range j.b.writes.groups {
		group = name
		delete(offsets, TopicPartition{topic, 0})
	}
	delete(j.b.writes.written, TopicPartition{topic, 0})
	return group
}

// TestTopicsOfTheMemoryAreDeleted: with a topic, Kafka forgets the offsets under it, and
// with all of them what the sink remembers. The refusal names topics and group, and the way
// out. // design P6
func TestTopicsOfTheMemoryAreDeleted(t *testing.T) {
	j := newRemembering(t)
	require.NoError(t, j.run(t.Context(), "second", "out"))
	j.b.has(t, "out", 0, "=a")
	j.deleted("second")
	group := j.deleted("out")
	err := j.run(t.Context(), "second", "out")
	for _, says := range []string{`sink "s" remembers epoch 0`, `group "` + group + `"`, `each of topics out, second`, "all of them are deleted", "offsets.retention.minutes", "fork the root"} {
		require.ErrorContains(t, err, says)
	}
	j = newRemembering(t)
	require.NoError(t, j.run(t.Context(), "out"))
	j.deleted("out")
	require.ErrorContains(t, j.run(t.Context(), "out"), `under topic "out"; Kafka forgets it when that topic is deleted`)
}

// TestOneTopicOfTheMemory: as long as the sink has a topic that it had before, deleted ones
// and those that the program leaves out or adds take no memory away: no epoch is written
// again and none is left out. // design P6
func TestOneTopicOfTheMemory(t *testing.T) {
	j := newRemembering(t)
	ctx := t.Context()
	require.NoError(t, j.run(ctx, "second", "out"))
	j.deleted("out") // the first by name
	j.b.log("t", 0, batchtest.Values(0, "a"), batchtest.Values(1, "b"))
	require.NoError(t, j.run(ctx, "second", "out"))
	j.b.has(t, "second", 0, "=a", "=b")
	j.b.has(t, "out", 0, "=b")

	j.b.log("t", 0, batchtest.Values(0, "a"), batchtest.Values(1, "b"), batchtest.Values(2, "c"))
	require.NoError(t, j.run(ctx, "third"), "neither of those that remember")
	j.b.has(t, "third", 0, "=c")
	j.deleted("second")
	j.deleted("out")
	j.b.log("t", 0, batchtest.Values(0, "a"), batchtest.Values(1, "b"), batchtest.Values(2, "c"), batchtest.Values(3, "d"))
	require.NoError(t, j.run(ctx, "out", "third"))
	j.b.has(t, "third", 0, "=c", "=d")
	j.b.has(t, "out", 0, "=d")

	// What is left under a topic that was left out is old, and is refused as such.
	j = newRemembering(t)
	require.NoError(t, j.run(ctx, "out"))
	j.b.log("t", 0, batchtest.Values(0, "a"), batchtest.Values(1, "b"))
	require.NoError(t, j.run(ctx, "second"))
	j.deleted("second")
	err := j.run(ctx, "second")
	require.ErrorContains(t, err, `sink "s" remembers epoch`)
	require.ErrorContains(t, err, `it forgot what came later (it is an offset of group `)
	j.b.has(t, "second", 0)
}

// TestMissingTopicOfTheMemory: a topic that is deleted under the job is named, though no
// row goes to it; made again, the job goes on and writes each epoch once.
func TestMissingTopicOfTheMemory(t *testing.T) {
	b, s := sinkOf(t)
	b.log("second", 0)
	s.Topic("second")
	fence(t, s, "root")
	tx := begun(t, s, 1, "a")
	b.faults(28, 3, "", 1000)
	err := tx.Commit(t.Context(), memory(1))
	require.ErrorContains(t, err, "write the memory: topic ")
	require.False(t, s.isLost())
	b.faults(0, 0, "", 0)
	require.NoError(t, tx.Commit(t.Context(), memory(1)))
	b.has(t, "out", 0, "=a")
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Len(t, b.writes.groups["statemill.root.s"], 2, "under each")
}
