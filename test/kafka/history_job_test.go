package kafkatest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// historyLife is one process of a history's job.
type historyLife struct {
	faults *vfs.Faults
	cancel context.CancelFunc
	died   chan struct{} // closed when the armed fault strikes
	armed  bool
	done   chan error

	mu     sync.Mutex
	conns  []net.Conn
	totals map[string]int
	table  map[string]string
	epochs int
}

// dead is why nothing of a dead process works: it need not try again.
type dead struct{}

func (dead) Error() string   { return "the process is gone" }
func (dead) Permanent() bool { return true }

// live starts a process on what the ones before it have left.
func (h *history) live(loss bool) *historyLife {
	ctx, cancel := context.WithCancel(context.Background())
	l := &historyLife{faults: &vfs.Faults{}, cancel: cancel, died: make(chan struct{}), done: make(chan error, 1)}
	h.lives++
	opts := []dstream.ContextOption{
		dstream.WithCheckpointStore(h.store(l), dstream.SnapshotEvery(4), dstream.MaintenanceInterval(20*time.Millisecond)),
		dstream.WithIORetry(0), dstream.WithMaxRecordsPerBatch(30), dstream.WithStopTimeout(patience),
		dstream.WithListener(dstream.Listener{BatchCompleted: func(p dstream.Progress) { h.progress(l, p) }}),
	}
	go func() { l.done <- dstream.Run(ctx, 5*time.Millisecond, h.job(l, loss), opts...) }()
	return l
}

// store is the checkpoint as a process sees it.
func (h *history) store(l *historyLife) vfs.Store {
	if h.disk == nil {
		return vfs.WithStoreFaults(h.objects, l.faults)
	}
	d, err := vfs.NewDir(vfs.WithFaults(h.disk, l.faults), "/history", fmt.Sprint("life", h.lives))
	require.NoError(h, err)
	return d
}

// job counts the keys of one topic, keeps the last value of each key of the other,
// and writes both as they change in one transaction each epoch.
func (h *history) job(l *historyLife, loss bool) dstream.Job {
	dialer := &kafkago.Dialer{DialFunc: l.dial}
	brokers := kafka.Brokers(strings.Split(h.addr, ",")...)
	read := []kafka.SourceOption{brokers, kafka.Dialer(dialer), kafka.RetryFor(h.patient), kafka.FromEarliest(), kafka.RefreshEvery(0)}
	if h.real { // in the process, an answer that its size cuts off tells no aborted transactions
		read = append(read, kafka.FetchMaxBytes(2<<10))
	}
	if loss {
		read = append(read, kafka.ContinueOnLoss())
	}
	return func(ssc *dstream.StreamingContext) error {
		u := kafka.NewSink("out", brokers, kafka.Dialer(dialer), kafka.RetryFor(h.patient))
		door := func(topic string) func(line string) (kafka.Message, error) {
			return func(line string) (kafka.Message, error) {
				key, _, _ := strings.Cut(line, "=")
				return kafka.Message{Key: []byte(key), Value: []byte(line)}, nil
			}
		}
		ones := dstream.MapPair(kafka.DirectStream(ssc, "in", append(read, kafka.Topics(h.in), kafka.Group(h.in))...),
			func(x kafka.Record) (string, int) {
				h.met(x)
				return string(x.Key), 1
			})
		totals := dstream.MapWithState(ones, dstream.Function(
			func(key string, one dstream.Option[int], s *dstream.State[int]) string {
				s.Update(s.OrElse(0) + one.OrElse(0))
				return fmt.Sprintf("%s=%d %d", key, s.Get(), rand.Int64()) // what comes of two attempts shows
			}).Named("totals").NumPartitions(2))
		dstream.Output(totals, "totals", kafka.To(u, h.out, door(h.out)))
		rows := dstream.KeyBy(kafka.DirectStream(ssc, "table", append(read, kafka.Topics(h.table))...),
			func(x kafka.Record) string { return string(x.Key) })
		changes := dstream.MapWithState(rows, dstream.Function(
			func(key string, x dstream.Option[kafka.Record], s *dstream.State[string]) string {
				row := x.OrElse(kafka.Record{})
				number, _ := row.Header("n")
				if row.Tombstone() {
					if s.Exists() {
						s.Remove()
					}
				} else {
					s.Update(string(row.Value))
				}
				return tableLine(key, number, row.Tombstone())
			}).Named("table").NumPartitions(2))
		dstream.Output(changes, "changes", kafka.To(u, h.changes, door(h.changes)))
		keepState(l, totals.StateSnapshots(), &l.totals)
		keepState(l, changes.StateSnapshots(), &l.table)
		return nil
	}
}

// keepState keeps a state as it is after each batch.
func keepState[V any](l *historyLife, states dstream.Stream[dstream.Pair[string, V]], at *map[string]V) {
	dstream.ForeachRDD(states, func(ctx context.Context, _ dstream.Batch, x *rdd.RDD[dstream.Pair[string, V]]) error {
		pairs, err := rdd.Collect(ctx, x)
		all := map[string]V{}
		for _, p := range pairs {
			all[p.Key] = p.Value
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		*at = all
		return err
	})
}

// progress notes what is durable.
func (h *history) progress(l *historyLife, p dstream.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range p.Sources {
		for _, x := range s.Ranges {
			h.durable[x.Partition] = max(h.durable[x.Partition], x.Until)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs++
}

// met notes that a record was read, for who looks for a fault.
func (h *history) met(x kafka.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read == nil {
		h.read = map[string]bool{}
	}
	h.read[fmt.Sprintf("%d@%d", x.Partition, x.Offset)] = true
}

// positions are the durable ones, by names such as "topic-3".
func (h *history) positions() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.durable)
}

// dial makes connections that die with the process, and that cut ends.
func (l *historyLife) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := injectedDial(l.faults)(ctx, network, addr)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
	}
	return c, err
}

// cut ends all connections.
func (l *historyLife) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// arm lets the process die at one of its next calls to the disk, the store or Kafka.
func (l *historyLife) arm(calls int, after bool) {
	l.armed = true
	l.faults.Fail(vfs.Rule{K: calls, After: after, Dead: true, Err: dead{}})
	var once sync.Once
	l.faults.Do(vfs.Rule{K: calls}, func(vfs.Call) { once.Do(func() { close(l.died) }) })
}
