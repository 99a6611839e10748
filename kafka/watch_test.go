package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// blocked is a source of which the reads of partition 0 wait for the broker.
func blocked(t *testing.T, m *clock.Manual, mon *Monitor, told chan source.Notice) (b *fakeBroker, s *kafkaSource, release func()) {
	b = newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("t", 1, batchtest.Values(0, "b"))
	b.log("idle", 0)
	s = open(t, b, nil, Topics("idle"), at(m), Watch(mon), RequestTimeout(time.Hour), RetryFor(time.Hour), ReadAhead(0),
		OnNotice(func(n source.Notice) { told <- n }))
	gate := make(chan struct{})
	b.mu.Lock()
	b.gate = func(key int16, tp TopicPartition) chan struct{} {
		if key == 1 && tp == (TopicPartition{"t", 0}) {
			return gate
		}
		return nil
	}
	b.mu.Unlock()
	return b, s, func() { close(gate) }
}

func TestStall(t *testing.T) { // report 38, report 28
	m, mon := manual(), &Monitor{}
	require.Error(t, mon.Healthy(), "nothing is watched")
	told := make(chan source.Notice, 10)
	b, s, release := blocked(t, m, mon, told)
	require.NoError(t, mon.Healthy())
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	require.NoError(t, s.Read(t.Context(), p.Ranges[1], func(int64, Record) error { return nil }))
	done := make(chan error)
	go func() { done <- s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil }) }()
	for s.Report().Partitions[0].Waiting == 0 { // until it has asked
		m.Advance(1)
	}
	m.Advance(DefaultStallAfter - time.Second)
	require.NoError(t, mon.Healthy())
	b.log("t", 0, batchtest.Values(0, "a", "and", "more"))
	var n source.Notice
	waited := time.Duration(0)
	for n.Seq == 0 {
		require.NoError(t, m.BlockUntil(t.Context(), 1))
		m.Advance(time.Second)
		if waited += time.Second; len(told) > 0 {
			n = <-told
		}
		require.Less(t, waited, 6*time.Second, "told within 15 s")
	}
	require.Contains(t, n.Text, `topic "t" partition 0 is stalled`)
	err = mon.Healthy()
	require.ErrorContains(t, err, `topic "t" partition 0 is stalled`)
	require.NotContains(t, err.Error(), "partition 1")
	r := mon.Report()
	for r.Partitions[0].Lag < 3 { // the watch asks for the end while no plan does
		require.NoError(t, m.BlockUntil(t.Context(), 1))
		m.Advance(time.Second)
		r = mon.Report()
	}
	require.True(t, r.Partitions[0].Stalled)
	require.Greater(t, r.Partitions[0].Waiting, DefaultStallAfter)
	for _, x := range r.Partitions[1:] {
		require.Zero(t, x.Waiting, "%v", x)
		require.False(t, x.Stalled)
	}
	release()
	require.NoError(t, <-done)
	require.NoError(t, mon.Healthy(), "all clear at once")
	require.NoError(t, s.Committed(t.Context(), p))
	require.NoError(t, m.BlockUntil(t.Context(), 1))
	m.Advance(DefaultStallAfter / 4)
	require.Contains(t, (<-told).Text, "moves again")
	require.EqualValues(t, 1, mon.Report().Partitions[0].Next)
	require.EqualValues(t, 2, mon.Report().Partitions[0].Lag)
	require.NoError(t, s.Close())
	require.ErrorIs(t, mon.Healthy(), source.ErrNotOpen)
}

// TestNoPlanIsAStall: brokers that are away show before the run gives up. // report 28
func TestNoPlanIsAStall(t *testing.T) {
	m, mon := manual(), &Monitor{}
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, at(m), Watch(mon), RetryFor(0))
	b.mu.Lock()
	b.fault = func(int16, int) (int16, string) { return 5, "" }
	b.mu.Unlock()
	_, err := s.Plan(t.Context(), source.Limits{})
	require.Error(t, err)
	require.NoError(t, mon.Healthy(), "not yet")
	m.Advance(DefaultStallAfter + 1)
	require.ErrorContains(t, mon.Healthy(), "no batch could be planned for 10s")
	require.ErrorContains(t, mon.Healthy(), "Leader Not Available")
	b.mu.Lock()
	b.fault = nil
	b.mu.Unlock()
	readAll(t, s, source.Limits{})
	require.NoError(t, mon.Healthy())
}

// TestPositionsOfReports: what is read and not committed counts as lag, and what is left
// out does not. // report 8, report 26
func TestPositionsOfReports(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, batchtest.Values(0, "a", "b"), batchtest.Marker(2, 9, true), batchtest.Empty(3, 4), batchtest.Values(5, "open"))
	l.stable = 5
	s := open(t, b, nil)
	require.EqualValues(t, -1, s.Report().Partitions[0].Next)
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	require.NoError(t, s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil }))
	require.Equal(t, []int64{0, 5, 5}, position(s))
	require.NoError(t, s.Committed(t.Context(), p))
	require.Equal(t, []int64{5, 5, 0}, position(s))
	require.False(t, s.Report().Partitions[0].Progress.IsZero())
}

func position(s *kafkaSource) []int64 {
	x := s.Report().Partitions[0]
	return []int64{x.Next, x.End, x.Lag}
}

// TestMirrorFails: no batch fails by it; it is counted and told once. // KD6
func TestMirrorFails(t *testing.T) {
	b := newFake(t)
	b.old = true // it knows no groups
	b.log("t", 0, batchtest.Values(0, "a", "b"))
	told := make(chan source.Notice, 10)
	s := open(t, b, nil, Group("g"), OnNotice(func(n source.Notice) { told <- n }))
	readAll(t, s, source.Limits{Records: 1})
	n := <-told
	require.Contains(t, n.Text, `group "g"`)
	readAll(t, s, source.Limits{})
	require.NoError(t, s.Close())
	require.Empty(t, told, "the first of a row")
	require.GreaterOrEqual(t, s.Report().Counters["mirror_failed"], int64(2))
}

// TestNoticesAreBounded: a report has the last ones.
func TestNoticesAreBounded(t *testing.T) {
	s := NewSource(Brokers("x:1"), Topics("t")).(*kafkaSource)
	for range 32 + 5 {
		s.notice("again")
	}
	all := s.Report().Notices
	require.Len(t, all, 32)
	require.EqualValues(t, 6, all[0].Seq)
	require.True(t, strings.HasPrefix((&Monitor{}).Report().Warnings[0], "no Kafka source"))
}
