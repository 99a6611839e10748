package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// trims lets retention remove n batches of a log under each of the next fetches.
func (b *fakeBroker) trims(l *fakeLog, n, fetches int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 1 && fetches > 0 {
			fetches--
			l.batches = l.batches[n:]
			l.start = l.batches[0].Base
		}
		return 0, ""
	}
}

// TestRetentionMovesUnderThePlan: between what a plan asks and its samples. A job that goes
// on over losses does so in its first plan, too, and more than once. Where nothing was read
// yet nothing is lost, and a start at the oldest record is at what is the oldest by then. // report 20
func TestRetentionMovesUnderThePlan(t *testing.T) {
	last := &source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 0, Until: 50}}}
	for _, times := range []int{1, 3} {
		for _, x := range []struct {
			name string
			last *source.Plan
			opts []SourceOption
			lost int64 // -1: it is an error
		}{
			{"first run", nil, nil, 0},
			{"first run, goes on", nil, []SourceOption{ContinueOnLoss()}, 0},
			{"restart, goes on", last, []SourceOption{ContinueOnLoss()}, int64(200*times - 50)},
			{"restart", last, nil, -1},
			{"named start", nil, []SourceOption{ContinueOnLoss(), FromOffsets(map[TopicPartition]int64{{"t", 0}: 50})}, -1},
		} {
			t.Run(x.name, func(t *testing.T) {
				b := newFake(t)
				l := b.log("t", 0, many(0, 300, 10, 1000)...)
				s := open(t, b, x.last, append(x.opts, ReadAhead(0))...)
				b.trims(l, 20, times)
				p, err := s.Plan(t.Context(), source.Limits{})
				if x.lost < 0 {
					require.ErrorAs(t, err, new(*OffsetRangeError))
					return
				}
				require.NoError(t, err)
				require.EqualValues(t, 200*times, p.Ranges[0].From)
				require.Equal(t, x.lost, s.Report().Counters["lost_records"])
				require.NoError(t, read(t, s, p.Ranges[0]))
			})
		}
	}
}

// TestRetentionMovesOnAndOn: a plan that is overtaken each time it is tried ends.
func TestRetentionMovesOnAndOn(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, many(0, 300, 10, 1000)...)
	s := open(t, b, nil, ContinueOnLoss(), ReadAhead(0))
	b.trims(l, 1, 250)
	_, err := s.Plan(t.Context(), source.Limits{})
	require.ErrorAs(t, err, new(*OffsetRangeError))
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Less(t, b.fetches, 100)
}

// TestIdleAfterALoss: a partition that was waiting when it was found that its records are
// gone waits no more: the broker has answered. An idle topic is healthy. // report 38
func TestIdleAfterALoss(t *testing.T) {
	for _, when := range []string{"read", "plan"} {
		b := newFake(t)
		l := b.log("t", 0, many(0, 3, 10, 10)...)
		m, mon := manual(), &Monitor{}
		s := open(t, b, nil, at(m), Watch(mon), ContinueOnLoss(), ReadAhead(0))
		gone := func() {
			l.batches, l.start = nil, 30
		}
		var p source.Plan
		var err error
		if when == "plan" {
			b.mu.Lock()
			b.fault = func(key int16, _ int) (int16, string) {
				if key == 1 {
					gone()
				}
				return 0, ""
			}
			b.mu.Unlock()
			p, err = s.Plan(t.Context(), source.Limits{Bytes: 2000})
			require.NoError(t, err)
			require.EqualValues(t, 30, p.Ranges[0].From)
		} else {
			p, err = s.Plan(t.Context(), source.Limits{})
			require.NoError(t, err)
			b.mu.Lock()
			gone()
			b.mu.Unlock()
			m.Advance(time.Second)
			require.NoError(t, read(t, s, p.Ranges[0]))
			require.EqualValues(t, 30, s.Report().Counters["lost_records"])
			require.Equal(t, m.Now(), s.Report().Partitions[0].Progress, "it is done with them")
		}
		require.NoError(t, s.Committed(t.Context(), p))
		passes(t, s, m, 2*DefaultStallAfter)
		require.NoError(t, mon.Healthy())
		r := s.Report()
		require.Empty(t, r.Warnings)
		require.False(t, r.Partitions[0].Stalled)
	}
}

// TestIdleAfterATopicThatWasAway: a read that has passed over what went with its topic does
// not wait for it when it is back.
func TestIdleAfterATopicThatWasAway(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b"))
	m := manual()
	s := open(t, b, nil, at(m), ContinueOnLoss(), ReadAhead(0), RetryFor(50*time.Millisecond))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	b.mu.Lock()
	log := b.logs[TopicPartition{"t", 0}]
	delete(b.logs, TopicPartition{"t", 0})
	b.mu.Unlock()
	require.NoError(t, s.Read(context.Background(), p.Ranges[0], nil))
	b.mu.Lock()
	b.logs[TopicPartition{"t", 0}] = log
	b.mu.Unlock()
	readAll(t, s, source.Limits{})
	m.Advance(2 * DefaultStallAfter)
	require.False(t, s.Report().Partitions[0].Stalled)
}
