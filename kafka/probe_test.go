package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/source"
)

// P1, CE17: a probe says what opening would fail with, and leaves the source as it was.
func TestProbe(t *testing.T) {
	b := newFake(t)
	b.log("t", 0)
	open := func(topics ...string) (*kafkaSource, source.Prober) {
		s := NewSource(Brokers(b.addr()), Topics(topics...), RetryFor(0))
		return s.(*kafkaSource), s.(source.Prober)
	}
	s, p := open("t", "never")
	probe := p.Probe(t.Context(), nil)
	require.ErrorContains(t, probe, `topic "never": the topic does not exist`)
	require.EqualError(t, s.Open(t.Context(), nil), probe.Error())

	s, p = open("t")
	require.NoError(t, p.Probe(t.Context(), nil))
	gone := &source.Plan{Ranges: []source.Range{{Partition: "t-7", From: 0, Until: 5}}}
	probe = p.Probe(t.Context(), gone)
	require.ErrorContains(t, probe, "t")
	require.EqualError(t, s.Open(t.Context(), gone), probe.Error())
	require.Empty(t, s.Report().Partitions)

	require.NoError(t, s.Open(t.Context(), nil))
	_, err := s.Plan(t.Context(), source.Limits{Epoch: 1})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
