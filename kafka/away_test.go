package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

var errRefused = errors.New("connection refused")

// outage is a broker that goes away for a while: its connections end, and new ones are
// refused.
type outage struct {
	*fakeBroker
	pipes *pipes
	mu    sync.Mutex
	until time.Time
}

// refuse takes no more connections for so long.
func (o *outage) refuse(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = clock.System().Now().Add(d)
}

func (o *outage) down() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return clock.System().Now().Before(o.until)
}

// hangUp ends all connections.
func (o *outage) hangUp() {
	o.fakeBroker.mu.Lock()
	defer o.fakeBroker.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
	clear(o.conns)
}

func (o *outage) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if o.down() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errRefused}
	}
	return o.pipes.dial(ctx, network, addr)
}

// TestBrokerRestartsByTheClock: the only broker goes away while a batch is fetched, and
// while one is committed, with nothing but defaults. Back after 20 s, each record is
// counted and written once and nothing was started again; away for good, the run ends
// with the cause. Both show as a stall before. // report 28, report 38
func TestBrokerRestartsByTheClock(t *testing.T) {
	const values, size = 400, 1000
	for _, c := range []struct {
		name string
		away time.Duration
		key  int16 // of the request that meets it
	}{
		{"20 s while it is fetched", 20 * time.Second, 1},
		{"20 s while it is committed", 20 * time.Second, 26},
		{"for good", time.Hour, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, p := silentBroker(t)
				o := &outage{fakeBroker: b, pipes: p}
				for part := range int32(2) {
					var logs []batchtest.Batch
					for i := range values / 20 { // batches of 10
						var list []string
						for n := range 10 {
							list = append(list, fmt.Sprintf("%d.%d.%s", part, i*10+n, strings.Repeat("v", size)))
						}
						logs = append(logs, batchtest.Values(int64(i*10), list...))
					}
					b.log("t", part, logs...)
				}
				met := 0
				b.mu.Lock()
				b.fault = func(key int16, _ int) (int16, string) {
					if o.down() { // nothing slips through before the connections end
						return 0, "close"
					}
					if key != c.key {
						return 0, ""
					}
					if met++; met != 3 {
						return 0, ""
					}
					o.refuse(c.away)
					go o.hangUp() // when this is answered
					return 0, "close"
				}
				b.mu.Unlock()

				var told []string
				var unhealthy error
				var rows int64
				var ssc *dstream.StreamingContext
				ssc = dstream.New(100*time.Millisecond, dstream.WithStopWhenDone(), dstream.WithMaxRecordsPerBatch(100),
					dstream.WithCheckpointStore(vfs.NewObjects()), dstream.WithListener(dstream.Listener{
						SourceNotice: func(_ string, n source.Notice) {
							if told = append(told, n.Text); unhealthy == nil {
								unhealthy = ssc.Healthy()
							}
						},
						BatchCompleted: func(p dstream.Progress) { rows += p.InputRows },
					}))
				dialer := Dialer(&kafkago.Dialer{DialFunc: o.dial})
				in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t"), FromEarliest(), StopAtEnd(), ReadAhead(0), FetchMaxBytes(20*size), dialer)
				counts := dstream.MapWithState(dstream.MapPair(in, func(r Record) (string, int) { return r.Text()[:1], 1 }),
					dstream.Function(func(key string, one dstream.Option[int], s *dstream.State[int]) string {
						s.Update(s.OrElse(0) + one.OrElse(0))
						return fmt.Sprintf("%s=%03d", key, s.Get())
					}).Named("counts"))
				dstream.Output(counts, "out", To(NewSink("out", Brokers(b.addr()), dialer), "out", func(text string) (Message, error) {
					return Message{Value: []byte(text)}, nil
				}))
				began := clock.System().Now()
				require.NoError(t, ssc.Start())
				err := ssc.Wait()
				took := clock.System().Now().Sub(began)

				if c.key == 1 { // commits are no fetches: the source has nothing to say of them
					require.NotEmpty(t, told, "%v: %v, request %d", took, err, met)
					require.Contains(t, told[0], "stalled")
					require.ErrorIs(t, unhealthy, dstream.ErrStalled)
				}
				if c.away > time.Minute {
					require.ErrorIs(t, err, errRefused)
					require.ErrorContains(t, err, `topic "t"`)
					require.Less(t, took, time.Minute)
					return
				}
				require.NoError(t, err)
				require.GreaterOrEqual(t, took, c.away)
				require.Less(t, took, c.away+15*time.Second)
				require.EqualValues(t, values, rows)
				var want []string
				for _, key := range []string{"0", "1"} {
					for n := range values / 2 {
						want = append(want, fmt.Sprintf("=%s=%03d", key, n+1))
					}
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				got := slices.Clone(b.writes.written[TopicPartition{"out", 0}])
				slices.Sort(got)
				require.Equal(t, want, got)
			})
		})
	}
}
