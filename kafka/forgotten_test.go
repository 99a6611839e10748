package kafka

import (
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// TestTopicOfTheMemoryIsDeleted: with a topic, Kafka forgets the offsets under it, and
// with them what the sink remembers. The refusal names topic and group, and the way out.
func TestTopicOfTheMemoryIsDeleted(t *testing.T) { // design P6
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("out", 0)
	b.log("second", 0)
	root := vfs.NewObjects()
	run := func() error {
		return dstream.Run(t.Context(), time.Millisecond, func(ssc *dstream.StreamingContext) error {
			in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t"), FromEarliest(), StopAtEnd())
			out := NewSink("s", Brokers(b.addr()))
			for _, topic := range []string{"second", "out"} {
				dstream.Output[Record](in, topic, To(out, topic, func(r Record) (Message, error) { return Message{Value: r.Value}, nil }))
			}
			return nil
		}, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(root))
	}
	require.NoError(t, run())
	b.has(t, "out", 0, "=a")
	group := ""
	b.mu.Lock()
	for name, offsets := range b.writes.groups {
		group = name
		for tp := range offsets {
			if tp.Topic == "out" {
				delete(offsets, tp)
			}
		}
	}
	b.mu.Unlock()
	err := run()
	for _, says := range []string{`sink "s" remembers epoch 0`, `group "` + group + `"`, `topic "out"`, "deleted", "offsets.retention.minutes", "fork the root"} {
		require.ErrorContains(t, err, says)
	}
}
