package kafkatest

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sinktest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestSinkSuite: the Kafka sink keeps the contract of sinks, dead, frozen and
// deafened at every request to the broker.
func TestSinkSuite(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		sinktest.Run(t, func(t *testing.T) sinktest.Case {
			b, err := embedded.Start()
			require.NoError(t, err)
			t.Cleanup(b.Close)
			return sinkCase(newRig(t, b.Addr(), false))
		})
	})
	t.Run("real", func(t *testing.T) {
		if os.Getenv("STATEMILL_KAFKA") == "" {
			t.Skip("needs a real broker: STATEMILL_KAFKA is not set (make test-kafka starts one)")
		}
		warm(realRig(t))
		sinktest.Run(t, func(t *testing.T) sinktest.Case {
			if os.Getenv("STATEMILL_SOAK") == "" && (strings.Contains(t.Name(), "/Two") || strings.HasSuffix(t.Name(), "/CrashAtEveryCall")) {
				t.Skip("takes minutes on a real broker: STATEMILL_SOAK is not set (make soak sets it)")
			}
			return sinkCase(realRig(t))
		})
	})
}

// warm waits until a broker that has just started has its coordinators.
func warm(r *rig) {
	u := kafka.NewSink("warm", kafka.Brokers(r.addr), kafka.RetryFor(time.Minute))
	u.Topic(r.topic(1))
	require.NoError(r, u.Fence(r.ctx, sink.Fence{Root: strconv.FormatInt(time.Now().UnixNano(), 36), Run: "r", Term: 1}))
	tx, err := u.Begin(r.ctx, 1)
	require.NoError(r, err)
	require.NoError(r, tx.Commit(r.ctx, sink.Memory{Epoch: 1, Term: 1}))
	require.NoError(r, u.Close())
}

var suiteTopics atomic.Int64

func sinkCase(r *rig) sinktest.Case {
	patience := 5 * time.Millisecond // dead runs shall give up soon
	if r.real {
		patience = 200 * time.Millisecond // markers of an ended transaction take their time
	}
	topic := r.topic(3)
	name := "suite-" + strconv.FormatInt(suiteTopics.Add(1), 10)
	return sinktest.Case{
		Target: topic,
		Encode: func(dst []byte, text string) ([]byte, error) {
			return kafka.NewSink("x").Topic(topic).Encode(dst, kafka.Message{Value: []byte(text)})
		},
		Open: func(in vfs.Injector) sink.Unit {
			u := kafka.NewSink(name, kafka.Brokers(r.addr), kafka.Dialer(&kafkago.Dialer{DialFunc: injectedDial(in)}),
				kafka.RetryFor(patience), kafka.RequestTimeout(5*time.Second), kafka.ProduceBatchBytes(1<<10))
			u.Topic(topic)
			return u
		},
		Read: func(ctx context.Context) ([]string, error) { return r.committed(ctx, topic) },
	}
}

// committed reads what a reader of committed records sees, up to the last stable
// offsets.
func (r *rig) committed(ctx context.Context, topic string) (out []string, err error) {
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	src := kafka.NewSource(kafka.Brokers(r.addr), kafka.Topics(topic), kafka.FromEarliest())
	if err := src.Open(ctx, nil); err != nil {
		return nil, err
	}
	defer src.Close()
	plan, err := src.Plan(ctx, source.Limits{})
	if err != nil {
		return nil, err
	}
	for _, x := range plan.Ranges {
		err := src.Read(ctx, x, func(_ int64, m kafka.Record) error {
			out = append(out, m.Text())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// settle waits until the markers of all decided transactions are written: a real
// broker says yes to a commit when it is decided, a little before readers see it.
func (r *rig) settle(ctx context.Context) error {
	for r.real {
		q := kmsg.NewPtrListTransactionsRequest()
		q.StateFilters = []string{"PrepareCommit", "PrepareAbort", "PrepareEpochFence"}
		answers := r.admin.RequestSharded(ctx, q)
		busy := 0
		for _, a := range answers {
			if a.Err != nil {
				return a.Err
			}
			busy += len(a.Resp.(*kmsg.ListTransactionsResponse).TransactionStates)
		}
		if busy == 0 {
			return nil
		}
		timer := time.NewTimer(2 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// injectedDial passes every connection and every request to in.
func injectedDial(in vfs.Injector) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		dial := func() error {
			c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return err
		}
		if in == nil {
			return c, dial()
		}
		if err := vfs.Inject(in, vfs.Call{Kind: vfs.KindOther, Path: "dial"}, dial); err != nil {
			if c != nil {
				c.Close()
			}
			return nil, err
		}
		return &injectedConn{Conn: c, in: in}, nil
	}
}

// injectedConn is a connection of which each request may be lost, or its answer.
type injectedConn struct {
	net.Conn
	in   vfs.Injector
	deaf error
}

func (c *injectedConn) Write(p []byte) (n int, err error) {
	sent := false
	lost := vfs.Inject(c.in, vfs.Call{Kind: vfs.KindOther, Path: "request", Bytes: len(p)}, func() error {
		sent = true
		n, err = c.Conn.Write(p)
		return err
	})
	if lost != nil && sent && err == nil {
		// It arrives; only the answer never does. Whoever waits for that it was
		// done sees it done.
		var b [4]byte
		c.Conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, _ = c.Conn.Read(b[:])
		c.deaf = lost
		c.Conn.Close()
		return len(p), nil
	}
	if lost != nil {
		c.Conn.Close()
		return n, lost
	}
	return n, err
}

func (c *injectedConn) Read(p []byte) (int, error) {
	if c.deaf != nil {
		return 0, c.deaf
	}
	return c.Conn.Read(p)
}

// TestSinkMessages: keys, headers, times, tombstones, empty values and all
// compressions arrive as they were given, where the Java client would put them.
func TestSinkMessages(t *testing.T) {
	onEach(t, func(r *rig) {
		for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
			topic := r.topic(7)
			u := kafka.NewSink("messages-"+codec, kafka.Brokers(r.addr), kafka.Compress(codec))
			door := u.Topic(topic)
			at := time.UnixMilli(1_700_000_000_123).UTC()
			var want []kafka.Message
			for i := range 300 {
				m := kafka.Message{Key: []byte("key " + strconv.Itoa(i)), Value: []byte("some text, some text " + strconv.Itoa(i)), Time: at}
				switch i % 5 {
				case 1:
					m.Value = nil // a tombstone
				case 2:
					m.Value = []byte{}
				case 3:
					m.Headers = []kafka.Header{{Key: "h", Value: []byte("v")}, {Key: "h"}, {Key: "", Value: []byte{}}}
				}
				want = append(want, m)
			}
			root := strconv.FormatInt(time.Now().UnixNano(), 36)
			require.NoError(r, u.Fence(r.ctx, sink.Fence{Root: root, Run: "r", Term: 1}))
			_, ok, err := u.Memory(r.ctx)
			require.NoError(r, err)
			require.False(r, ok)
			w, err := sink.NewWriter(u, 1, []sink.Output{sink.Bind(door, "out", 1, func(_ context.Context, _ int, yield func(kafka.Message) error) error {
				for _, m := range want {
					if err := yield(m); err != nil {
						return err
					}
				}
				return nil
			})}, nil)
			require.NoError(r, err)
			sum, err := w.Prepare(r.ctx, false)
			require.NoError(r, err)
			mem := sink.Memory{Epoch: 1, Term: 1, Output: sum, Digest: sum}
			require.NoError(r, w.Commit(r.ctx, mem))
			got, ok, err := u.Memory(r.ctx)
			require.NoError(r, err)
			require.True(r, ok)
			require.Equal(r, mem, got)
			require.NoError(r, u.Close())

			require.NoError(r, r.settle(r.ctx))
			by := map[string]kafka.Record{}
			for _, x := range r.read(topic) {
				by[x.KeyText()] = x
			}
			require.Equal(r, len(want), len(by), codec)
			java := kgo.StickyKeyPartitioner(nil).ForTopic(topic) // murmur2 of keys
			for _, m := range want {
				x := by[string(m.Key)]
				require.Equal(r, m.Value, x.Value)
				require.Equal(r, m.Headers, x.Headers)
				require.Equal(r, at, x.Time)
				require.Equal(r, java.Partition(&kgo.Record{Key: m.Key}, 7), int(x.Partition))
			}
		}
	})
}
