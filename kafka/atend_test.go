package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// toItsEnd opens a source that ends.
func toItsEnd(t *testing.T, b *fakeBroker, opts ...SourceOption) ending {
	s := NewSource(append([]SourceOption{Brokers(b.addr()), FromEarliest(), StopAtEnd(), RefreshEvery(0), RetryFor(50 * time.Millisecond)}, opts...)...).(ending)
	require.NoError(t, s.Open(t.Context(), nil))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestEndOfNothing: a source that is to end does so where nothing matches its pattern, which
// is told, and where its only topic was deleted; what is waited for by choice is.
func TestEndOfNothing(t *testing.T) {
	b := newFake(t)
	s := toItsEnd(t, b, TopicPattern("t"))
	require.False(t, s.Done(), "before the first plan")
	says(t, s.kafkaSource, "no topic matches")
	readAll(t, s.kafkaSource, source.Limits{})
	require.True(t, s.Done())

	b.log("t", 0, batchtest.Values(0, "a", "b", "c"))
	s = toItsEnd(t, b, Topics("t"), ContinueOnLoss())
	readAll(t, s.kafkaSource, source.Limits{Records: 2})
	require.False(t, s.Done())
	b.remove("t")
	p, _ := readAll(t, s.kafkaSource, source.Limits{})
	require.Equal(t, []string{"t-0"}, names(p))
	require.True(t, s.Done())

	s = toItsEnd(t, b, Topics("t"), WaitForTopics())
	readAll(t, s.kafkaSource, source.Limits{})
	require.False(t, s.Done())
	b.log("t", 0, batchtest.Values(0, "a"))
	_, got := readAll(t, s.kafkaSource, source.Limits{})
	require.Len(t, got, 1)
	require.True(t, s.Done())
}

// TestJobOfNothingEnds: so does its job.
func TestJobOfNothingEnds(t *testing.T) {
	b := newFake(t)
	require.NoError(t, toEnd(func(ssc *dstream.StreamingContext) error {
		in := DirectStream(ssc, "in", Brokers(b.addr()), TopicPattern("none"), StopAtEnd())
		dstream.Foreach(in, func(context.Context, dstream.Batch, Record) error { return nil })
		return nil
	}))
}
