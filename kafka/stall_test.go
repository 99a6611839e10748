package kafka

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// halfOpen is a connection of which, once it is dead, nothing arrives on the other side,
// and nobody is told.
type halfOpen struct {
	net.Conn
	dead  *atomic.Bool
	asked chan bool // something was lost
}

func (c halfOpen) Write(b []byte) (int, error) {
	if c.dead.Load() {
		select {
		case c.asked <- true:
		default:
		}
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// two are brokers of one cluster: t is led by the first, u by the second, the connections
// to which can be made half-open.
func two(t *testing.T) (first, second *fakeBroker, dead *atomic.Bool, asked chan bool, through SourceOption) {
	first, second, dead, asked = newFake(t), newFake(t), new(atomic.Bool), make(chan bool, 1)
	first.log("t", 0, batchtest.Values(0, "a"))
	second.log("u", 0, batchtest.Values(0, "x"))
	first.mu.Lock()
	first.peers, first.ids["u"] = []*fakeBroker{second}, 1
	first.mu.Unlock()
	return first, second, dead, asked, Dialer(&kafkago.Dialer{DialFunc: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil && addr == second.addr() {
			c = halfOpen{c, dead, asked}
		}
		return c, err
	}})
}

// TestSilentLeaderOfSome: of two brokers one falls silent between two batches, so that no
// read begins. Its partition is named within 15 s, with it; the other one, of which the
// end is known all the time, does not wait. // report 38
func TestSilentLeaderOfSome(t *testing.T) {
	first, second, dead, asked, through := two(t)
	m, mon, told := manual(), &Monitor{}, make(chan source.Notice, 10)
	s := open(t, first, nil, Topics("u"), at(m), Watch(mon), through, RequestTimeout(time.Hour), RetryFor(time.Hour),
		OnNotice(func(n source.Notice) { told <- n }))
	_, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@0=a", "0@0=x"}, got)
	require.NoError(t, mon.Healthy())

	dead.Store(true)
	first.log("t", 0, batchtest.Values(0, "a", "b"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	planned := make(chan error)
	go func() { _, err := s.Plan(ctx, source.Limits{}); planned <- err }()
	<-asked
	m.Advance(1)
	for s.Report().Partitions[0].Waiting != 0 { // until the first one has answered
		runtime.Gosched()
	}
	var n source.Notice
	waited := time.Duration(0)
	for n.Seq == 0 {
		require.NoError(t, m.BlockUntil(t.Context(), 1))
		m.Advance(time.Second)
		if waited += time.Second; len(told) > 0 {
			n = <-told
		}
		require.Less(t, waited, 15*time.Second)
	}
	require.Contains(t, n.Text, `topic "u" partition 0 is stalled: broker `+second.addr()+" has not answered for 1")
	for {
		p := s.Report().Partitions
		require.Zero(t, p[0].Waiting)
		require.False(t, p[0].Stalled)
		require.True(t, p[1].Stalled)
		require.GreaterOrEqual(t, p[1].Waiting, DefaultStallAfter)
		if p[0].End == 2 { // the watch has looked: it does not wait for the silent one
			break
		}
		require.NoError(t, m.BlockUntil(t.Context(), 1))
		m.Advance(time.Second)
	}
	err := mon.Healthy()
	require.ErrorContains(t, err, `topic "u" partition 0 is stalled: broker `+second.addr())
	require.ErrorContains(t, err, "no batch could be planned")
	require.NotContains(t, err.Error(), `"t" partition`)

	dead.Store(false)
	cancel()
	require.ErrorIs(t, <-planned, context.Canceled)
	_, got = readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@1=b"}, got)
	require.NoError(t, mon.Healthy())
	for n = range told {
		if n.Text == `topic "u" partition 0: reading moves again` {
			break
		}
		require.NotContains(t, n.Text, `"t" partition`)
		require.NoError(t, m.BlockUntil(t.Context(), 1))
		m.Advance(time.Second)
	}
}

// TestBrokerThatRefuses: the partitions of the others have their answer from each try,
// however soon one of them fails. // report 38
func TestBrokerThatRefuses(t *testing.T) {
	first, second, _, _, through := two(t)
	m, mon := manual(), &Monitor{}
	s := open(t, first, nil, Topics("u"), at(m), Watch(mon), through, RetryFor(0))
	readAll(t, s, source.Limits{})
	second.close()
	for range 4 {
		_, err := s.Plan(t.Context(), source.Limits{})
		require.Error(t, err)
		m.Advance(DefaultStallAfter / 4)
		require.Zero(t, s.Report().Partitions[0].Waiting)
	}
	require.ErrorContains(t, mon.Healthy(), `topic "u" partition 0 is stalled: broker `+second.addr())
}

// TestStallsAreToldTogether: a broker with many partitions is one notice.
func TestStallsAreToldTogether(t *testing.T) {
	b := newFake(t)
	for i := range int32(20) {
		b.log("t", i, batchtest.Values(0, "a"))
	}
	s := open(t, b, nil, at(manual()))
	for range 20 {
		s.waits(s.parts[0])
	}
	s.asks(s.parts)
	now := s.cfg.clock.Now().Add(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.stalls(s.parts, now)
	require.Len(t, all, 1)
	require.Contains(t, all[0], `topic "t" partition 0, t-1, t-2`)
	require.Contains(t, all[0], "t-7 and 12 more are stalled: broker "+b.addr()+" has not answered for 1m0s")
	require.Len(t, s.stalls(s.parts[:1], now), 1)
	require.Empty(t, s.stalls(nil, now))
}
