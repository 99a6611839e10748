package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

// through lets a client reach the broker through the proxy, which stands for all of
// them: there must be one.
func (r *rig) through(p *proxy) kafka.ClientOption {
	return kafka.Dialer(&kafkago.Dialer{DialFunc: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.at())
	}})
}

// behind puts a proxy before the rig's broker, and numbers into a topic.
func (r *rig) behind(count int) (p *proxy, topic string, sum int) {
	if strings.Contains(r.addr, ",") {
		r.Skip("the proxy stands before one broker: KAFKA_NODES=1")
	}
	p = newProxy(r.T, r.addr)
	topic = r.topic(4)
	var records []*kgo.Record
	for i := range count {
		records = append(records, value(int32(i%4), fmt.Sprint(i)))
		sum += i
	}
	r.produce(r.client(kgo.ProducerBatchCompression(kgo.NoCompression())), topic, records...)
	return p, topic, sum
}

// faultsBetween are those of TestFaultsBetween and TestSinkFaultsBetween.
var faultsBetween = map[string]fault{"cut": cut, "half": half, "delay": delay, "silence": silence, "garbage": garbage}

// TestFaultsBetween: whatever happens to answers on their way, each record is counted
// once, and the process goes on. Damaged answers may end a run; the next one goes on. // report 28
func TestFaultsBetween(t *testing.T) {
	for name, what := range faultsBetween {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for timeouts
			onEach(t, func(r *rig) {
				const count = 8000
				p, topic, sum := r.behind(count)
				p.set(often(what))
				dir, rows, last := r.TempDir(), int64(0), 0
				r.outlives(p, what, func() error {
					var out *outputs[int]
					err := r.sumsThrough(p, topic, &out, nil, dstream.WithCheckpoint(dir), dstream.WithListener(dstream.Listener{
						BatchCompleted: func(p dstream.Progress) { rows += p.InputRows }}))
					if n := len(out.all); n > 0 {
						last = out.all[n-1]
					}
					return err
				})
				require.EqualValues(r, count, rows)
				require.Equal(r, sum, last)
			})
		})
	}
}

// outlives runs a job until it comes to its end. Only damage may end it before.
func (r *rig) outlives(p *proxy, what fault, run func() error) {
	lives := 1
	for ; ; lives++ {
		err := run()
		if err == nil {
			break
		}
		require.NoError(r, r.ctx.Err(), "%v", err)
		require.Equal(r, garbage, what, "%v", err)
		require.NotContains(r, err.Error(), "panic")
	}
	require.Positive(r, p.hits(what), "the fault has never happened")
	r.Log(lives, "runs,", p.hits(what), "faults")
}

// often lets a fault happen to some answers, the twelfth among them, but for the first
// ones.
func often(what fault) func(n int) fault {
	every := 7
	if what == silence { // each costs a timeout
		every = 20
	}
	random := rand.New(rand.NewSource(1))
	return func(n int) fault {
		if n == 12 || n > 3 && random.Intn(every) == 0 {
			return what
		}
		return pass
	}
}

// patient is how long a broker may be silent here: a real one may be slow.
func (r *rig) patient() time.Duration {
	if r.real {
		return time.Second
	}
	return 200 * time.Millisecond
}

// TestSinkFaultsBetween: the same between an exactly-once sink and its broker, and
// damaged answers too. A run that ends by them is followed by another one, which goes
// on; each total is there once. // report 28, report 31
func TestSinkFaultsBetween(t *testing.T) {
	for name, what := range faultsBetween {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(r *rig) {
				const count = 400
				p, _, _ := r.behind(0)
				in, out, dir := r.topic(3), r.topic(2), r.TempDir()
				want := r.words(in, 3, 20, count)
				p.set(often(what))
				r.outlives(p, what, func() error {
					return r.exactly(exactJob{in: in, out: out, sink: []kafka.SinkOption{r.through(p), kafka.RequestTimeout(r.patient()),
						kafka.RetryFor(20 * time.Second)}}, dstream.WithCheckpoint(dir), dstream.WithMaxRecordsPerBatch(20))
				})
				require.NoError(r, r.settle(r.ctx))
				var lines []string
				for _, x := range r.otherRead(out) {
					lines = append(lines, string(x.Value))
				}
				r.requireTotals(want, lines)
			})
		})
	}
}

// sumsThrough is sums, with short timeouts.
func (r *rig) sumsThrough(p *proxy, topic string, out **outputs[int], source []kafka.SourceOption, opts ...dstream.ContextOption) error {
	return r.sumsOf(topic, out, append(source, r.through(p), kafka.RequestTimeout(r.patient()),
		kafka.RetryFor(20*time.Second), kafka.FetchMaxBytes(4<<10)), append(opts, dstream.WithMaxRecordsPerBatch(2000))...)
}

// TestBrokerAwayInMidBatch: all connections end, new ones too for a while; the job goes
// on by itself, each record counted once. // report 28
func TestBrokerAwayInMidBatch(t *testing.T) {
	onEach(t, func(r *rig) {
		const count = 8000
		p, topic, sum := r.behind(count)
		p.set(func(n int) fault {
			if n == 12 {
				go func() {
					p.drop(true)
					time.AfterFunc(500*time.Millisecond, func() { p.drop(false) })
				}()
			}
			return pass
		})
		var out *outputs[int]
		require.NoError(r, r.sumsThrough(p, topic, &out, nil))
		require.Len(r, out.all, count)
		require.Equal(r, sum, out.all[count-1])
	})
}

// TestBrokerAwayForGood: for longer than the limits: the run ends with the cause, and
// was unhealthy before. // report 28, report 38
func TestBrokerAwayForGood(t *testing.T) {
	onEach(t, func(r *rig) {
		p, topic, _ := r.behind(8000)
		p.set(func(n int) fault {
			if n == 12 {
				go p.drop(true)
			}
			return pass
		})
		told := make(chan source.Notice, 100)
		err := r.run(func(ssc *dstream.StreamingContext) error {
			collect(r.stream(ssc, topic, r.through(p), kafka.RequestTimeout(r.patient()), kafka.RetryFor(300*time.Millisecond),
				kafka.FetchMaxBytes(4<<10), kafka.StallAfter(100*time.Millisecond), kafka.OnNotice(func(n source.Notice) { told <- n })))
			return nil
		}, dstream.WithMaxRecordsPerBatch(2000), dstream.WithIORetry(time.Second))
		require.ErrorContains(r, err, topic)
		require.True(r, errorsIsNet(err), "%v wraps the cause", err)
		require.Regexp(r, "stalled|no batch could be planned", (<-told).Text)
	})
}

// errorsIsNet says that the network is the cause.
func errorsIsNet(err error) bool {
	var op net.Error
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// TestGarbageBetween: what is damaged on its way is told by name, and nothing of it
// counts; the data is as good as before.
func TestGarbageBetween(t *testing.T) {
	onEach(t, func(r *rig) {
		p, topic, sum := r.behind(2000)
		for at := 1; at <= 12; at++ {
			p.set(func(n int) fault {
				if n == at {
					return garbage
				}
				return pass
			})
			var out *outputs[int]
			if err := r.sumsThrough(p, topic, &out, []kafka.SourceOption{kafka.RetryFor(time.Second)}); err != nil {
				require.NotContains(r, err.Error(), "panic")
				for i := 1; i < len(out.all); i++ {
					require.Greater(r, out.all[i], out.all[i-1])
				}
				continue
			}
			require.Equal(r, sum, out.all[len(out.all)-1], "answer %d", at)
		}
	})
}

// TestStopWhileSilent: a broker that takes requests and never answers does not hold up
// the stop of a run, and no goroutine stays, however often. // report 27
func TestStopWhileSilent(t *testing.T) {
	onEach(t, func(r *rig) {
		p, topic, _ := r.behind(100)
		loops := 100
		if r.real {
			loops = 20
		}
		before := goleak.IgnoreCurrent()
		for i := range loops {
			after := 3 + i%9
			silent := make(chan bool, 100)
			p.set(func(n int) fault {
				if n >= after {
					silent <- true
					return silence
				}
				return pass
			})
			ctx, cancel := context.WithCancel(r.ctx)
			go func() { <-silent; cancel() }()
			began := time.Now()
			opts := []kafka.SourceOption{r.through(p), kafka.RequestTimeout(time.Hour), kafka.RetryFor(time.Hour)}
			if i%20 == 0 { // a mirror has half a second to bring the last offsets
				opts = append(opts, kafka.Group("g"))
			}
			err := dstream.Run(ctx, 20*time.Millisecond, func(ssc *dstream.StreamingContext) error {
				collect(r.stream(ssc, topic, opts...))
				return nil
			}, dstream.WithStopTimeout(20*time.Millisecond))
			if err != nil {
				require.NotContains(r, err.Error(), "panic")
			}
			cancel()
			require.Less(r, time.Since(began), 5*time.Second)
			p.drop(false)
		}
		goleak.VerifyNone(r, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			// The broker waits for each request on a goroutine of its own, also on
			// connections from before.
			goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"))
	})
}
