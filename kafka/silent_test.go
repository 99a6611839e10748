package kafka

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// TestSilentBrokerIsPassedBy: a broker of the options that takes connections and
// never answers costs its time once, not at each batch. // report 28
func TestSilentBrokerIsPassedBy(t *testing.T) {
	t.Parallel() // it waits for real timeouts
	var asked atomic.Int32
	hole := server(t, func(c net.Conn) { asked.Add(1); io.Copy(io.Discard, c) })
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b", "c"))
	first := sourceOption(func(c *config) { c.brokers = []string{hole, b.addr()} })
	s := open(t, b, nil, first, RequestTimeout(time.Second), RetryFor(5*time.Second))
	for range 3 {
		readAll(t, s, source.Limits{Records: 1})
	}
	require.EqualValues(t, 1, asked.Load())
}

// TestSilentBrokersLeaveTimeForOthers: a start outlasts two of three brokers.
func TestSilentBrokersLeaveTimeForOthers(t *testing.T) {
	t.Parallel() // it waits for real timeouts
	hole := func() string { return server(t, func(c net.Conn) { io.Copy(io.Discard, c) }) }
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := NewSource(Brokers(hole(), hole(), b.addr()), Topics("t"), FromEarliest(), RequestTimeout(4*time.Second), RetryFor(0))
	require.NoError(t, s.Open(t.Context(), nil))
	require.NoError(t, s.Close())
}

// TestSlowLineIsNotSilence: brokers that all need more than their share of the time
// get all of it.
func TestSlowLineIsNotSilence(t *testing.T) {
	t.Parallel() // it waits for real timeouts
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-clock.System().NewTimer(leastPatience + 200*time.Millisecond).C():
			return (&net.Dialer{}).DialContext(ctx, network, b.addr())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s := NewSource(Brokers("127.0.0.1:1", "127.0.0.1:2"), Topics("t"), RequestTimeout(3*time.Second), RetryFor(10*time.Second),
		Dialer(&kafkago.Dialer{DialFunc: dial}))
	require.NoError(t, s.Open(t.Context(), nil))
	require.NoError(t, s.Close())
}

// TestDeadConnectionsGoTogether: when a broker is silent, its other idle connections
// are not tried one after the other, each for a timeout.
func TestDeadConnectionsGoTogether(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, RequestTimeout(300*time.Millisecond))
	var conns []*wire.Conn
	for range 3 {
		c, _, err := s.cluster.take(t.Context(), b.addr())
		require.NoError(t, err)
		conns = append(conns, c)
	}
	for _, c := range conns {
		s.cluster.put(c)
	}
	b.mu.Lock()
	b.fault = func(int16, int) (int16, string) { return 0, "silent" }
	b.mu.Unlock()
	_, err := s.cluster.metadata(t.Context())
	require.True(t, silent(err))
	require.Empty(t, s.cluster.idle[b.addr()])
}

// TestTopicUnknownForAMoment: brokers that have just started know no topic. One that
// stays unknown was deleted: that is told, and does not use up the whole limit.
func TestTopicUnknownForAMoment(t *testing.T) {
	synctest.Test(t, topicUnknownForAMoment)
}

func topicUnknownForAMoment(t *testing.T) {
	b, pipe := silentBroker(t)
	b.log("t", 0, batchtest.Values(0, "a", "b"))
	s := open(t, b, nil, RetryFor(time.Minute), pipe.dialer())
	readAll(t, s, source.Limits{Records: 1})
	left := 3
	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if left--; key == 3 && left >= 0 {
			return 3, ""
		}
		return 0, ""
	}
	b.mu.Unlock()
	p, got := readAll(t, s, source.Limits{Records: 1})
	require.Equal(t, []string{"0@1=b"}, got)

	b.mu.Lock()
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 3 || key == 1 {
			return 3, ""
		}
		return 0, ""
	}
	b.mu.Unlock()
	_, err := s.Plan(t.Context(), source.Limits{})
	require.ErrorIs(t, err, ErrNoTopic)
	err = s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	require.ErrorIs(t, err, ErrNoTopic)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Permanent())
}

// TestAbortedRecordsArePassedOverInLargeBatches: they have no size to learn from.
func TestAbortedRecordsArePassedOverInLargeBatches(t *testing.T) { // report 26
	b := newFake(t)
	batches := many(0, 1000, 20, 10)
	for i := range batches {
		batches[i].Txn, batches[i].Producer = true, 7
	}
	l := b.log("t", 0, append(batches, batchtest.Marker(20000, 7, false), batchtest.Values(20001, "x"))...)
	l.aborted = [][2]int64{{7, 0}}
	s := open(t, b, nil)
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@20001=x"}, got)
	require.EqualValues(t, 20002, p.Ranges[0].Until)
}

// TestKeptDecodersKeepNoRecords: what waits for the next Read holds no buffer of the
// one before.
func TestKeptDecodersKeepNoRecords(t *testing.T) { // report 29
	b := newFake(t)
	x := many(0, 1, 1, 6<<20)
	x[0].Codec = batchtest.Zstd
	b.log("t", 0, x...)
	s := open(t, b, nil)
	readAll(t, s, source.Limits{})
	d := s.decoders.Get()
	require.Zero(t, d.batch.Held())
}

// TestThrottledReadsWait: a quota slows a job down; it is no failure, however long it
// takes in all. An answer with nothing and no quota is one.
func TestThrottledReadsWait(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	s := open(t, b, nil, RetryFor(10*time.Millisecond))
	b.mu.Lock()
	b.throttle, b.throttled = 5, 20
	b.mu.Unlock()
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@0=a"}, got)
	read := func(ctx context.Context) error {
		return s.Read(ctx, p.Ranges[0], func(int64, Record) error { return nil })
	}
	b.mu.Lock()
	b.throttle, b.throttled = 0, 1000
	b.mu.Unlock()
	require.ErrorContains(t, read(t.Context()), "the answer has no data of the partition")

	b.mu.Lock()
	b.throttle, b.throttled = 1, 1000
	b.mu.Unlock()
	require.ErrorContains(t, read(t.Context()), "throttled for 1ms", "not for ever")

	b.mu.Lock()
	b.throttle, b.throttled = 3600_000, 1
	asked := make(chan bool, 1)
	b.fault = func(key int16, _ int) (int16, string) {
		if key == 1 {
			asked <- true
		}
		return 0, ""
	}
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	require.ErrorIs(t, read(ctx), context.Canceled)
}

// TestNewLeaderLearnsItsEnd: a leader that was just elected may tell an end from
// before the position for longer than a moment; the topic's id says that it is the
// same topic.
func TestNewLeaderLearnsItsEnd(t *testing.T) { // report 28
	t.Parallel() // it waits
	b := newFake(t)
	l := b.log("t", 0, batchtest.Values(0, "a", "b", "c"))
	s := open(t, b, nil, RetryFor(time.Minute))
	readAll(t, s, source.Limits{Records: 2})
	began, asked := clock.System().Now(), 0
	b.mu.Lock()
	l.end, l.stable = 1, 1
	b.fault = func(key int16, _ int) (int16, string) {
		if asked++; clock.System().Now().Sub(began) > settleFor*3/2 {
			l.end, l.stable = 3, 3
		}
		return 0, ""
	}
	b.mu.Unlock()
	_, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@2=c"}, got)
	require.Greater(t, asked, 3)
}
