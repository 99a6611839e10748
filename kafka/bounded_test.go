package kafka

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// pipes is a network in memory, whose deadlines are those of the bubble's clock.
type pipes struct {
	conns chan net.Conn
	end   chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), end: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.end) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9092} }

// dial connects to whoever accepts.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.end:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) dialer() ClientOption { return Dialer(&kafkago.Dialer{DialFunc: p.dial}) }

// silentBroker is a broker that answers all but one request.
func silentBroker(t *testing.T) (*fakeBroker, *pipes) {
	p := newPipes()
	b := newFakeOn(t, p)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("out", 0)
	return b, p
}

// deaf makes the broker silent about a key from now on.
func (b *fakeBroker) deaf(key int16) { b.faults(key, 0, "silent", 1<<30) }

// took runs f and gives the bubble's time that it needed.
func took(f func()) time.Duration {
	began := clock.System().Now()
	f()
	return clock.System().Now().Sub(began)
}

// bound is the most that a call may take: the first try ends after RequestTimeout, others
// begin within RetryFor from then on.
const bound = DefaultRetryFor + 2*DefaultRequestTimeout

// TestEveryRequestIsBounded: a broker that takes a connection and never answers one kind
// of request, each of them, costs the time of the options and not more; the error names
// the broker and the request. // report 27
func TestEveryRequestIsBounded(t *testing.T) {
	type act func(ctx context.Context, t *testing.T, b *fakeBroker, p *pipes, deaf func()) error
	opened := func(f func(ctx context.Context, s source.Source[Record], plan source.Plan) error, opts ...SourceOption) act {
		return func(ctx context.Context, t *testing.T, b *fakeBroker, p *pipes, deaf func()) error {
			s := NewSource(append(opts, Brokers(b.addr()), Topics("t"), FromEarliest(), RefreshEvery(0), p.dialer())...)
			defer s.Close()
			require.NoError(t, s.Open(ctx, nil))
			plan, err := s.Plan(ctx, source.Limits{})
			require.NoError(t, err)
			deaf()
			return f(ctx, s, plan)
		}
	}
	open := func(ctx context.Context, t *testing.T, b *fakeBroker, p *pipes, deaf func()) error {
		deaf()
		s := NewSource(Brokers(b.addr()), Topics("t"), p.dialer())
		defer s.Close()
		return s.Open(ctx, nil)
	}
	sinks := func(ctx context.Context, t *testing.T, b *fakeBroker, p *pipes, deaf func()) error {
		s := NewSink("s", Brokers(b.addr()), p.dialer())
		s.Topic("out")
		defer s.Close()
		deaf()
		if err := s.Fence(ctx, sink.Fence{Root: "r"}); err != nil {
			return err
		}
		if _, _, err := s.Memory(ctx); err != nil {
			return err
		}
		tx, err := s.Begin(ctx, 1)
		require.NoError(t, err)
		require.NoError(t, tx.Write(ctx, sink.Part{Target: "out"}, rowsOf(t, valued("a")...)))
		return tx.Commit(ctx, memory(1))
	}
	produce := func(ctx context.Context, t *testing.T, b *fakeBroker, p *pipes, deaf func()) error {
		w := NewProducer(Brokers(b.addr()), p.dialer())
		defer w.Close()
		deaf()
		return w.Write(ctx, "out", Message{Value: []byte("a")})
	}
	plan := func(ctx context.Context, s source.Source[Record], _ source.Plan) error {
		_, err := s.Plan(ctx, source.Limits{})
		return err
	}
	read := func(ctx context.Context, s source.Source[Record], p source.Plan) error {
		return s.Read(ctx, p.Ranges[0], func(int64, Record) error { return nil })
	}
	for _, c := range []struct {
		name string
		key  int16
		says string
		do   act
	}{
		{"open: ApiVersions", 18, "ApiVersions", open},
		{"open: Metadata", 3, "Metadata", open},
		{"plan: Metadata", 3, "Metadata", opened(plan)},
		{"plan: ListOffsets", 2, "ListOffsets", opened(plan)},
		{"read: Fetch", 1, "Fetch", opened(read, ReadAhead(0))},
		{"sink: ApiVersions", 18, "ApiVersions", sinks},
		{"sink: Metadata", 3, "Metadata", sinks},
		{"sink: FindCoordinator", 10, "FindCoordinator", sinks},
		{"sink: InitProducerId", 22, "InitProducerId", sinks},
		{"sink: OffsetFetch", 9, "OffsetFetch", sinks},
		{"sink: AddPartitionsToTxn", 24, "AddPartitionsToTxn", sinks},
		{"sink: Produce", 0, "Produce", sinks},
		{"sink: AddOffsetsToTxn", 25, "AddOffsetsToTxn", sinks},
		{"sink: TxnOffsetCommit", 28, "TxnOffsetCommit", sinks},
		{"sink: EndTxn", 26, "EndTxn", sinks},
		{"producer: Metadata", 3, "Metadata", produce},
		{"producer: InitProducerId", 22, "InitProducerId", produce},
		{"producer: Produce", 0, "Produce", produce},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, p := silentBroker(t)
				var began time.Time
				ctx, cancel := context.WithTimeout(t.Context(), 2*bound) // which no call needs
				defer cancel()
				err := c.do(ctx, t, b, p, func() { b.deaf(c.key); began = clock.System().Now() })
				require.Error(t, err)
				require.LessOrEqual(t, clock.System().Now().Sub(began), bound)
				require.GreaterOrEqual(t, clock.System().Now().Sub(began), DefaultRequestTimeout)
				require.ErrorContains(t, err, "broker "+b.addr()+": "+c.says+": no answer within")
			})
		})
	}
}

// TestEpochsAreBounded: the question for leader epochs, too, before a plan and before a
// read.
func TestEpochsAreBounded(t *testing.T) {
	for _, first := range []string{"plan", "read"} {
		synctest.Test(t, func(t *testing.T) {
			b, p := silentBroker(t)
			last := planned(1, "0")
			s := NewSource(Brokers(b.addr()), Topics("t"), p.dialer())
			defer s.Close()
			require.NoError(t, s.Open(t.Context(), last))
			b.deaf(23)
			var err error
			spent := took(func() {
				if first == "read" {
					err = s.Read(t.Context(), last.Ranges[0], func(int64, Record) error { return nil })
					return
				}
				_, err = s.Plan(t.Context(), source.Limits{})
			})
			require.ErrorContains(t, err, "broker "+b.addr()+": OffsetForLeaderEpoch: no answer within")
			require.LessOrEqual(t, spent, bound)
		})
	}
}

// TestMirrorAndCloseAreBounded: a coordinator that is silent is told, and holds up no
// end.
func TestMirrorAndCloseAreBounded(t *testing.T) {
	for key, says := range map[int16]string{8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator"} {
		synctest.Test(t, func(t *testing.T) {
			b, p := silentBroker(t)
			told := make(chan source.Notice, 10)
			s := NewSource(Brokers(b.addr()), Topics("t"), FromEarliest(), p.dialer(), Group("g"), OnNotice(func(n source.Notice) { told <- n }))
			require.NoError(t, s.Open(t.Context(), nil))
			b.deaf(key)
			plan, err := s.Plan(t.Context(), source.Limits{})
			require.NoError(t, err)
			require.NoError(t, s.Committed(t.Context(), plan))
			require.Contains(t, (<-told).Text, "broker "+b.addr()+": "+says+": no answer within")
			require.NoError(t, s.Committed(t.Context(), plan))
			synctest.Wait() // it asks again
			require.LessOrEqual(t, took(func() { require.NoError(t, s.Close()) }), lastMirror)
		})
	}
}

// TestReadAheadAndCloseAreBounded: what is fetched ahead of a silent broker holds up no
// end.
func TestReadAheadAndCloseAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p := silentBroker(t)
		b.log("t", 0, many(0, 4, 10, 1000)...)
		s := NewSource(Brokers(b.addr()), Topics("t"), FromEarliest(), p.dialer()).(*kafkaSource)
		require.NoError(t, s.Open(t.Context(), nil))
		plan, err := s.Plan(t.Context(), source.Limits{Records: 10})
		require.NoError(t, err)
		fetches := 0
		b.mu.Lock()
		b.fault = func(key int16, _ int) (int16, string) {
			if key == 1 {
				if fetches++; fetches > 1 {
					return 0, "silent"
				}
			}
			return 0, ""
		}
		b.mu.Unlock()
		require.NoError(t, s.Read(t.Context(), plan.Ranges[0], func(int64, Record) error { return nil }))
		synctest.Wait() // it is under way
		require.Zero(t, took(func() { require.NoError(t, s.Close()) }))
	})
}

// TestHandshakesAreBounded: those of TCP, of TLS and of SASL. // report 27
func TestHandshakesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []SourceOption
		listen bool
	}{
		"TCP":  {nil, false},
		"TLS":  {[]SourceOption{TLS(&tls.Config{})}, true},
		"SASL": {[]SourceOption{SASLPlain("u", "p")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				defer p.Close()
				var wait sync.WaitGroup
				if c.listen {
					wait.Go(func() {
						for {
							conn, err := p.Accept()
							if err != nil {
								return
							}
							wait.Go(func() { io.Copy(io.Discard, conn); conn.Close() })
						}
					})
				}
				addr := "silent:9092"
				s := NewSource(append(c.opts, Brokers(addr), Topics("t"), p.dialer())...)
				spent := took(func() {
					err := s.Open(t.Context(), nil)
					require.ErrorContains(t, err, addr)
					require.ErrorContains(t, err, "no answer within")
				})
				require.LessOrEqual(t, spent, bound)
				require.NoError(t, s.Close())
				p.Close()
				wait.Wait()
			})
		})
	}
}

// TestCancelEndsEveryWait: at once, whatever the limits.
func TestCancelEndsEveryWait(t *testing.T) { // report 27
	for _, key := range []int16{1, 2, 3} {
		t.Run(fmt.Sprint("key ", key), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, p := silentBroker(t)
				s := NewSource(Brokers(b.addr()), Topics("t"), FromEarliest(), p.dialer(), RequestTimeout(time.Hour), RetryFor(time.Hour), RefreshEvery(0))
				require.NoError(t, s.Open(t.Context(), nil))
				plan, err := s.Plan(t.Context(), source.Limits{})
				require.NoError(t, err)
				b.deaf(key)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.Equal(t, time.Second, took(func() {
					if key == 1 {
						err = s.Read(ctx, plan.Ranges[0], func(int64, Record) error { return nil })
					} else {
						_, err = s.Plan(ctx, source.Limits{})
					}
				}))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NoError(t, s.Close())
			})
		})
	}
}
