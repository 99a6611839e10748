package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/guard"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
)

// The defaults of a sink's options.
const (
	DefaultTransactionTimeout = time.Minute
	DefaultProduceBatchBytes  = 512 << 10
)

// SinkOption sets one thing of a sink. Faults are told all together, when a job starts
// or by Fence.
type SinkOption interface{ applySink(*sinkConfig) }

type sinkOption func(*sinkConfig)

func (o sinkOption) applySink(c *sinkConfig) { o(c) }

type sinkConfig struct {
	config
	txnTimeout time.Duration
	batchBytes int
	codec      batch.Codec
}

// TransactionTimeout is how long a transaction may last before the broker gives
// it up; default 1 min, from 1 s on, at most the broker's
// transaction.max.timeout.ms (15 min by default). Readers of committed records
// wait behind the open transaction of a dead process for so long, unless its
// successor starts before. If three transactions in a row last longer, the run ends.
func TransactionTimeout(d time.Duration) SinkOption {
	return sinkOption(func(c *sinkConfig) {
		if d < time.Second || d > 1<<31*time.Millisecond {
			c.fault("TransactionTimeout is %v, it must be 1s to 24 days", d)
		}
		c.txnTimeout = d
	})
}

// ProduceBatchBytes is the size, before compression, at which a record batch is
// sent; default 512 KiB, from 1 KiB to 1 GiB. The broker takes batches up to its
// message.max.bytes (1 MiB by default).
func ProduceBatchBytes(n int) SinkOption {
	return sinkOption(func(c *sinkConfig) {
		if n < 1<<10 || n > 1<<30 {
			c.fault("ProduceBatchBytes is %d, it must be 1 KiB to 1 GiB", n)
		}
		c.batchBytes = n
	})
}

// Compress compresses record batches: "none" (default), "gzip", "snappy", "lz4" or
// "zstd", which brokers know since Kafka 2.1.
func Compress(name string) SinkOption {
	return sinkOption(func(c *sinkConfig) {
		names := []string{"none", "gzip", "snappy", "lz4", "zstd"}
		i := slices.Index(names, name)
		if i < 0 {
			c.fault("Compress(%q): the compressions are %s", name, strings.Join(names, ", "))
			return
		}
		c.codec = batch.Codec(i)
	})
}

// Sink writes each epoch's messages to topics in one transaction, exactly once: a
// [sink.Unit]. All outputs of a job to one cluster share one Sink, and become
// visible to readers of committed records in one act; a second Sink is a fault of the job.
//
// Its transactional id is "statemill." with the id of the checkpoint root and the
// sink's name, and so is the name of the consumer group under which it remembers
// its last epoch, as an offset with a text, in the same transaction, under each of its
// topics: the newest one counts, so a topic may be deleted, made again, or left out by the
// program. Kafka forgets the offsets of a group without members after
// offsets.retention.minutes (7 days by default), and those under a topic when it is
// deleted, even if it is made again: a job that stands still for longer, or whose topics
// were all deleted, finds no memory, or an old one, and refuses to start. The way out is to
// fork the root: the fork's sinks start anew.
//
// Partitions that a topic gets while the job runs are written to within a minute (or by
// the next run), after which keys may lie in other partitions than before, as with any
// client. An epoch that is written again after that, because it was not committed, may
// so place its messages in other partitions than the attempt that nobody has seen.
//
// Brokers must be of Kafka 2.5 or later.
type Sink struct {
	name string
	cfg  sinkConfig
	hold sink.Hold

	mu      sync.Mutex
	topics  []string
	cluster *cluster

	// Of the run that has fenced last; changed between epochs only.
	txn        wire.Txn
	open       bool // it has not closed the sink
	generation int  // of fences and ends: a transaction of an earlier one is dead. It never goes back
	tx         *transaction
	sequence   map[wire.TopicPartition]int32
	have       uint64           // the epoch that the sink has, as far as this run knows
	broken     bool             // what became of a transaction is not known: fence again
	fenced     bool             // broken, and there is nothing left to abort
	doubt      bool             // a request of this epoch may still arrive
	overdue    int              // transactions in a row that lasted too long
	addrs      map[int8]string  // coordinators, by kind
	counts     map[string]int32 // partitions of the topics
	countedAt  time.Time        // zero: not, or they are in doubt
}

var (
	_ sink.Unit        = (*Sink)(nil)
	_ sink.Validator   = (*Sink)(nil)
	_ sink.Remembering = (*Sink)(nil)
)

// NewSink makes a sink with a name that is its own in the job: the same one in
// every run.
func NewSink(name string, opts ...SinkOption) *Sink {
	c := newSinkConfig(opts)
	if name == "" || len(name) > 100 {
		c.fault("the sink's name %q has %d bytes, it must have 1 to 100", name, len(name))
	}
	return &Sink{name: name, cfg: c, addrs: map[int8]string{}}
}

func newSinkConfig(opts []SinkOption) sinkConfig {
	c := sinkConfig{config: defaultConfig(), txnTimeout: DefaultTransactionTimeout, batchBytes: DefaultProduceBatchBytes}
	for _, o := range opts {
		if o == nil {
			c.fault("an option is nil")
			continue
		}
		o.applySink(&c)
	}
	if len(c.brokers) == 0 {
		c.fault("no broker is named: Brokers(\"host:port\")")
	}
	return c
}

// Topic is a door to one topic, which must exist.
func (s *Sink) Topic(topic string) sink.Sink[Message] {
	if s == nil {
		return sink.Sink[Message]{Target: topic, Encode: appendMessage} // Validate tells that it has no unit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case topic == "" || len(topic) > 249:
		s.cfg.fault("topic %q: the name has %d characters, it must have 1 to 249", topic, len(topic))
	case !slices.Contains(s.topics, topic):
		s.topics = append(s.topics, topic)
	}
	return sink.Sink[Message]{Unit: s, Target: topic, Encode: appendMessage}
}

// To is a door to one topic for rows of any type: message makes the message of a
// row, from its argument alone. Its error, or panic, ends the run with a
// *sink.EncodeError, which names the row.
func To[T any](s *Sink, topic string, message func(T) (Message, error)) sink.Sink[T] {
	door := s.Topic(topic)
	if message == nil {
		return sink.Sink[T]{Unit: door.Unit, Target: topic} // without Encode, as Validate tells
	}
	return sink.Sink[T]{Unit: door.Unit, Target: topic, Encode: func(dst []byte, row T) ([]byte, error) {
		m, err := messageFor(message, row)
		if err != nil {
			return dst, err
		}
		return door.Encode(dst, m)
	}}
}

// longestRow is how much of a row, or a key, errors show.
const longestRow = 200

func shown(text string) string {
	if len(text) > longestRow {
		text = strings.ToValidUTF8(text[:longestRow], "") + " …"
	}
	return text
}

// messageFor makes the message of a row. What goes wrong says of which.
func messageFor[T any](message func(T) (Message, error), row T) (m Message, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &permanent{fmt.Errorf("the message of row %s: %w", shown(fmt.Sprintf("%+v", row)), guard.Error(v))}
		}
	}()
	if m, err = message(row); err != nil {
		err = fmt.Errorf("the message of row %s: %w", shown(fmt.Sprintf("%+v", row)), err)
	}
	return m, err
}

// Name implements sink.Unit.
func (s *Sink) Name() string { return s.name }

func (s *Sink) String() string { return fmt.Sprintf("kafka sink %q", s.name) }

// Validate implements sink.Validator.
func (s *Sink) Validate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.cfg.valid()
	if err == nil && len(s.topics) == 0 {
		err = errors.New("no topic is named: Topic(\"name\")")
	}
	if err != nil {
		return &permanent{fmt.Errorf("%v: %w", s, err)}
	}
	return nil
}

// Fence implements sink.Unit: whoever had the transactional id before can commit
// nothing any more, and what it had open is aborted. Kafka knows no terms here: the
// last fence wins.
func (s *Sink) Fence(ctx context.Context, f sink.Fence) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := s.hold.Take(s.name, f); err != nil {
		return err
	}
	s.mu.Lock()
	slices.Sort(s.topics)
	if s.cluster == nil {
		s.cfg.topics = s.topics
		s.cluster = newCluster(&s.cfg.config)
	}
	s.mu.Unlock()
	if err := s.learn(ctx); err != nil {
		return err
	}
	id := unitID(f.Root, s.name)
	err := s.coordinated(ctx, wire.TransactionCoordinator, id, "fence", func(c *wire.Conn) error {
		if err := c.Transactions(); err != nil { // before anything of others ends
			return err
		}
		p, err := c.InitProducerID(ctx, id, s.cfg.txnTimeout)
		if err == nil {
			s.txn = wire.Txn{ID: id, ProducerID: p}
		}
		if errors.Is(err, wire.InvalidTxnTimeout) {
			err = &permanent{fmt.Errorf("TransactionTimeout is %v, which is more than the broker's transaction.max.timeout.ms: lower the one or raise the other: %w", s.cfg.txnTimeout, err)}
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.Notice != nil {
		s.tell(ctx, f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dies()
	s.open, s.broken, s.fenced, s.doubt = true, false, false, false
	s.sequence = map[wire.TopicPartition]int32{}
	return nil
}

// dies lets go of the transaction there was: nothing but an abort can come of it, and that
// asks nothing of the cluster. mu is held.
func (s *Sink) dies() {
	s.generation++
	s.tx = nil
}

// learn finds out how many partitions the topics have.
func (s *Sink) learn(ctx context.Context) error {
	r := s.cluster.retrier()
	now := s.cfg.clock.Now()
	for {
		counts := map[string]int32{}
		m, err := s.cluster.metadata(ctx)
		if err == nil {
			for _, t := range m.Topics {
				if errors.Is(t.Err, wire.UnknownTopic) {
					err = fmt.Errorf("topic %q: %w: create it, or mend the name", t.Name, ErrNoTopic)
				} else if t.Err != nil {
					err = fmt.Errorf("topic %q: %w", t.Name, t.Err)
				}
				counts[t.Name] = int32(len(t.Partitions))
			}
			if err == nil {
				s.mu.Lock()
				s.counts, s.countedAt = counts, now
				s.mu.Unlock()
				return nil
			}
		}
		if !r.again(ctx, err) {
			return r.wrap(err, "%v: look for the topics", s)
		}
	}
}

// MemoryAt implements sink.Remembering.
func (s *Sink) MemoryAt() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	under := fmt.Sprintf("topic %q; Kafka forgets it when that topic is deleted", s.topics[0])
	if len(s.topics) > 1 {
		under = fmt.Sprintf("each of topics %s; Kafka forgets it when all of them are deleted", strings.Join(s.topics, ", "))
	}
	return fmt.Sprintf("it is an offset of group %q under %s, even if it is made again, and after offsets.retention.minutes, 7 days by default, without members",
		s.txn.ID, under)
}

// countAnew puts the partitions in doubt.
func (s *Sink) countAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countedAt = time.Time{}
}

// recount is learn, if what it learned is old: a topic may get partitions while the job
// runs. A transaction has one answer from begin to end.
func (s *Sink) recount(ctx context.Context) error {
	s.mu.Lock()
	at := s.countedAt
	s.mu.Unlock()
	if !at.IsZero() && s.cfg.clock.Now().Sub(at) < countsFor || sabotage.On("partitions-counted-once") {
		return nil
	}
	return s.learn(ctx)
}

// Memory implements sink.Unit. It waits for transactions that are still open: what
// it gives can no older run change any more.
func (s *Sink) Memory(ctx context.Context) (m sink.Memory, ok bool, err error) {
	if !s.open {
		return m, false, fmt.Errorf("%v: memory before fence: %w", s, sink.ErrMisuse)
	}
	read := func(c *wire.Conn) error {
		m, ok = sink.Memory{}, false
		offsets, err := s.remembered(ctx, c)
		if err != nil {
			return err
		}
		for _, o := range offsets {
			if o.Offset < 0 || o.Metadata == "" {
				continue
			}
			var x sink.Memory
			if err := json.Unmarshal([]byte(o.Metadata), &x); err != nil || x.Epoch != uint64(o.Offset) {
				return &memoryError{group: s.txn.ID, text: o.Metadata, err: err}
			}
			// The partition that remembers changes with the job's topics: the newest
			// epoch counts.
			if !ok || x.Epoch > m.Epoch {
				m, ok = x, true
			}
		}
		return nil
	}
	err = s.coordinated(ctx, wire.GroupCoordinator, s.txn.ID, "read the memory", read)
	if errors.Is(err, wire.UnstableOffset) && (s.tx == nil || s.tx.over) {
		if err = s.settle(ctx); err == nil {
			err = s.coordinated(ctx, wire.GroupCoordinator, s.txn.ID, "read the memory", read)
		}
	}
	if errors.Is(err, wire.UnstableOffset) {
		// The fence ended all that was open. Whoever has opened something since
		// then has fenced this run out.
		s.shutOut()
		err = fmt.Errorf("%w: %w", sink.ErrFenced, err)
	}
	if err != nil {
		return sink.Memory{}, false, err
	}
	s.have = m.Epoch
	return m, ok, nil
}

// remembered reads the offsets of the sink's group: of each of its topics by name,
// because only then does the broker notice the very first memory on its way, and
// all others, because the topic that remembers changes with the job's topics.
func (s *Sink) remembered(ctx context.Context, c *wire.Conn) ([]wire.GroupOffset, error) {
	var own []wire.TopicPartition
	for _, t := range s.topics {
		own = append(own, wire.TopicPartition{Topic: t})
	}
	var out []wire.GroupOffset
	for _, partitions := range [][]wire.TopicPartition{own, nil} {
		offsets, err := c.StableOffsets(ctx, s.txn.ID, partitions)
		if err != nil && !errors.Is(err, wire.GroupNotFound) {
			return nil, err
		}
		out = append(out, offsets...)
	}
	return out, nil
}

// memoryError is a group that somebody else has written to.
type memoryError struct {
	group, text string
	err         error
}

func (e *memoryError) Error() string {
	return fmt.Sprintf("group %q remembers %q, which no sink has written: %v: who else uses this group?", e.group, e.text, e.err)
}

func (e *memoryError) Permanent() bool { return true }

// Begin implements sink.Unit.
func (s *Sink) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !s.open:
		return nil, fmt.Errorf("%v: begin before fence: %w", s, sink.ErrMisuse)
	case s.isLost():
		return nil, fmt.Errorf("%v: an earlier transaction did not end in order: %w", s, sink.ErrFenced)
	}
	if s.tx != nil && !s.tx.over {
		return nil, fmt.Errorf("%v: begin of epoch %d while epoch %d is open: %w", s, epoch, s.tx.epoch, sink.ErrMisuse)
	}
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	if err := s.recount(ctx); err != nil {
		return nil, err
	}
	s.tx = &transaction{s: s, epoch: epoch, generation: s.generation, parts: map[wire.TopicPartition]*produced{}}
	return s.tx, nil
}

// Close implements sink.Unit.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.close()
		s.cluster = nil
	}
	s.open = false
	if sabotage.On("kafka-close-forgets") {
		s.generation = 0
	} else {
		s.dies()
	}
	s.hold.Release()
	return nil
}
