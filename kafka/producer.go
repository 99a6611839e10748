package kafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

// Producer writes messages to topics at least once: each is on all replicas in sync
// (acks=all) when a call that wrote it returns nil. What is sent again because an
// answer was lost is written once (idempotence); what a job writes again because a
// batch ran again is there twice. Batches of one partition follow one another, so
// the order of its messages is kept.
//
// Partitions that a topic gets are written to within a minute; keys may then lie in
// others than before.
//
// Its methods may be called from any goroutine. It has no goroutines of its own but while
// one of them runs.
type Producer struct {
	cfg     sinkConfig
	cluster *cluster // nil: the options have faults

	mu     sync.Mutex
	id     *identity          // nil: not known, or given up
	counts map[string]counted // partitions of topics
	lanes  map[wire.TopicPartition]gate
	asking gate // for an id
}

// identity is an idempotent producer's, with the next sequence of each partition. It
// is given up when what became of a batch is not known.
type identity struct {
	wire.ProducerID
	mu   sync.Mutex
	next map[wire.TopicPartition]int32
}

// NewProducer makes a producer. It asks nothing of the cluster before its first
// messages. Faults of its options are told by Validate, at the start of a job that has an
// AtLeastOnce of it, and else by its first messages. TransactionTimeout is not used.
func NewProducer(opts ...SinkOption) *Producer {
	c := newSinkConfig(opts)
	p := &Producer{cfg: c, counts: map[string]counted{}, lanes: map[wire.TopicPartition]gate{}, asking: newGate()}
	p.cluster = newCluster(&p.cfg.config)
	return p
}

func (p *Producer) String() string { return "kafka producer" }

// Validate says what is wrong with the options. It does no I/O.
func (p *Producer) Validate() error {
	if err := p.cfg.valid(); err != nil {
		return &permanent{fmt.Errorf("%v: %w", p, err)}
	}
	return nil
}

// Close closes the connections. What is written afterwards is an error.
func (p *Producer) Close() error {
	p.cluster.close()
	return nil
}

// AtLeastOnce writes every batch of a stream to a topic, as a plain output: before
// the batch is committed, and again if it runs again. message makes the message of a
// row. All messages of a batch are on all replicas when the output is done; without
// a key they go to a partition by that of the row.
//
// For output that is there once, use a [Sink]. What is wrong with the arguments, and with
// the producer's options, is told at the start, with all other faults of the job.
func AtLeastOnce[T any](in dstream.Stream[T], p *Producer, topic string, message func(T) (Message, error), opts ...dstream.OpOption) {
	checked := dstream.Checked(func() error {
		var errs []error
		if p == nil {
			errs = append(errs, errors.New("kafka: AtLeastOnce has no producer"))
		} else {
			errs = append(errs, p.Validate())
		}
		if message == nil {
			errs = append(errs, errors.New("kafka: AtLeastOnce has no function for messages"))
		}
		return errors.Join(append(errs, topicFault(topic))...)
	})
	dstream.ForeachRDD(in, func(ctx context.Context, _ dstream.Batch, r *rdd.RDD[T]) error {
		w, err := p.begin(ctx, topic)
		if err != nil {
			return err
		}
		err = rdd.ForeachPartition(ctx, r, func(ctx context.Context, partition int, rows iter.Seq[T]) error {
			n := 0
			for row := range rows {
				m, err := messageFor(message, row)
				if err != nil {
					return err
				}
				if err := w.add(ctx, partition, n, m); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			return err
		}
		return w.flush(ctx)
	}, append(slices.Clone(opts), checked)...)
}

// topicFault says what is wrong with a topic's name, as far as that can be seen.
func topicFault(topic string) error {
	if topic == "" || len(topic) > 249 {
		return fmt.Errorf("topic %q: the name has %d characters, it must have 1 to 249", topic, len(topic))
	}
	return nil
}

// Write writes messages to a topic and returns when all are on all replicas in sync.
// After an error some may be there.
func (p *Producer) Write(ctx context.Context, topic string, messages ...Message) error {
	w, err := p.begin(ctx, topic)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := w.add(ctx, 0, -1, m); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// permanent is an error that trying again does not help against.
type permanent struct{ error }

// Unwrap gives the cause.
func (e *permanent) Unwrap() error { return e.error }

// Permanent says so.
func (e *permanent) Permanent() bool { return true }

// writing is one call's messages: what it has not sent when it fails is forgotten
// with it.
type writing struct {
	p     *Producer
	topic string
	place partitioner.Partitioner[string]
	count int32

	mu    sync.Mutex
	parts map[wire.TopicPartition]*produced
	order []wire.TopicPartition
}

func (p *Producer) begin(ctx context.Context, topic string) (*writing, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.cluster.isClosed() {
		return nil, &permanent{fmt.Errorf("%v: write to topic %q: the producer is closed", p, topic)}
	}
	n, err := p.partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	return &writing{p: p, topic: topic, place: partitioner.Murmur2(int(n)), count: n, parts: map[wire.TopicPartition]*produced{}}, nil
}

// countsFor is how long it is believed how many partitions a topic has: it may get more.
const countsFor = time.Minute

// counted is how many partitions a topic had at a time.
type counted struct {
	n  int32
	at time.Time
}

// partitions finds out how many a topic has.
func (p *Producer) partitions(ctx context.Context, topic string) (int32, error) {
	now := p.cfg.clock.Now()
	p.mu.Lock()
	c := p.counts[topic]
	p.mu.Unlock()
	if c.n > 0 && now.Sub(c.at) < countsFor {
		return c.n, nil
	}
	n := int32(0)
	r := p.cluster.retrier()
	for {
		m, err := p.cluster.about(ctx, []string{topic})
		if err == nil {
			for _, t := range m.Topics {
				switch {
				case t.Name != topic:
				case errors.Is(t.Err, wire.UnknownTopic):
					err = fmt.Errorf("topic %q: %w", topic, ErrNoTopic)
				case t.Err != nil:
					err = fmt.Errorf("topic %q: %w", topic, t.Err)
				default:
					n = int32(len(t.Partitions))
				}
			}
			if err == nil && n == 0 {
				err = fmt.Errorf("topic %q: %w", topic, ErrNoTopic)
			}
		}
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.counts[topic] = counted{n, now}
			return n, nil
		}
		if !r.again(ctx, err) {
			return 0, r.wrap(err, "%v: look for the topic", p)
		}
	}
}

// add adds a message of a part to its partition's batch, which is sent when it is
// full.
func (w *writing) add(ctx context.Context, part, row int, m Message) error {
	at := wire.TopicPartition{Topic: w.topic, Partition: int32(part) % w.count}
	if m.Key != nil {
		at.Partition = int32(w.place.Partition(view(m.Key)))
	}
	w.mu.Lock()
	to := w.parts[at]
	if to == nil {
		to = &produced{}
		w.parts[at] = to
		w.order = append(w.order, at)
	}
	w.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	t := m.Time.UnixMilli()
	if m.Time.IsZero() {
		t = clock.System().Now().UnixMilli()
	} else if t < 0 {
		return &permanent{fmt.Errorf("%v: the message's time %v is before 1970, which Kafka cannot store", w.p, m.Time)}
	}
	if to.b.Len() > 0 && to.b.Size()+m.takes() > w.p.cfg.batchBytes {
		if err := w.p.send(ctx, &outgoing{at: at, to: to}); err != nil {
			return err
		}
	}
	if to.b.Len() == 0 {
		to.first = originOf(part, row, &m)
	}
	to.b.Add(t, m.Key, m.Value, keyValues(m.Headers))
	return nil
}

// flush sends what is left, to all partitions at once.
func (w *writing) flush(ctx context.Context) error {
	var left []*outgoing
	for _, at := range w.order {
		if to := w.parts[at]; to.b.Len() > 0 {
			left = append(left, &outgoing{at: at, to: to})
		}
	}
	if len(left) == 0 {
		return nil
	}
	return w.p.send(ctx, left...)
}
