package kafka

import (
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLossIsCountedOnce: however often a range is read, as with a policy for records or
// another try, and when more of it has gone meanwhile. // report 20
func TestLossIsCountedOnce(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, many(0, 4, 10, 10)...)
	s := open(t, b, nil, ReadAhead(0), ContinueOnLoss())
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	for _, start := range []int64{10, 20} {
		b.mu.Lock()
		l.batches, l.start = l.batches[1:], start
		b.mu.Unlock()
		for range 3 {
			require.NoError(t, read(t, s, p.Ranges[0]))
			require.EqualValues(t, start, s.Report().Counters["lost_records"])
		}
	}
	require.Len(t, s.Report().Notices, 2)
	b.remove("t")
	require.NoError(t, read(t, s, p.Ranges[0]), "the rest went with the topic")
	require.EqualValues(t, 40, s.Report().Counters["lost_records"])
}

// TestLostOffsetsAddUp: whatever ranges are told as lost, in whatever order, each of their
// offsets counts once.
func TestLostOffsetsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPart(TopicPartition{"t", 0}, "")
		seen, sum := map[int64]bool{}, int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			from := rapid.Int64Range(0, 40).Draw(t, "from")
			to := from + rapid.Int64Range(0, 20).Draw(t, "more")
			for o := from; o < to; o++ {
				seen[o] = true
			}
			sum += p.lostAnew(from, to)
			require.EqualValues(t, len(seen), sum)
		}
	})
}
