package kafka

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/sink"
)

// transaction is a sink.Tx: one transaction of Kafka.
type transaction struct {
	s          *Sink
	epoch      uint64
	generation int

	joining  sync.Mutex
	joined   int        // how many of order are part of the transaction; joining's
	mu       sync.Mutex // protects what follows
	parts    map[wire.TopicPartition]*produced
	order    []wire.TopicPartition
	opened   bool         // the coordinator may know of it
	began    time.Time    // when; protected, as overdue is, by the sink's lock
	overdue  bool         // it was found to have lasted too long
	offsets  bool         // the group is part of it
	memory   *sink.Memory // that Commit was called with
	remember bool         // it is written
	ending   bool         // the commit was asked for: it may come whenever it likes
	over     bool         // committed or aborted
}

// produced is what goes to one partition.
type produced struct {
	mu    sync.Mutex
	b     batch.Builder
	first origin // of the batch
}

// alive says what is wrong with using the transaction now.
func (x *transaction) alive() error {
	switch {
	case x.generation != x.s.generation:
		return fmt.Errorf("%v: epoch %d: %w: the sink was fenced after the transaction began", x.s, x.epoch, sink.ErrFenced)
	case x.s.isLost():
		return fmt.Errorf("%v: epoch %d: %w", x.s, x.epoch, sink.ErrFenced)
	}
	return nil
}

// Write implements sink.Tx. A key's messages go to the partition that the Java
// client would choose (murmur2); those without a key to one by the part.
func (x *transaction) Write(ctx context.Context, p sink.Part, rows sink.Rows) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := x.alive(); err != nil {
		return err
	}
	n := x.s.counts[p.Target]
	if n < 1 {
		return fmt.Errorf("%v: topic %q has no partitions", x.s, p.Target)
	}
	place := partitioner.Murmur2(int(n))
	i := 0
	return rows(func(row []byte) error {
		m, err := messageOf(row)
		if err != nil {
			return fmt.Errorf("%v: row %d: %w", x.s, i, err)
		}
		i++
		at := wire.TopicPartition{Topic: p.Target, Partition: int32(p.Index) % n}
		if m.Key != nil {
			at.Partition = int32(place.Partition(view(m.Key)))
		}
		return x.explain(x.add(ctx, at, m, p.Index, i-1))
	})
}

func (x *transaction) part(at wire.TopicPartition) *produced {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.parts[at]
	if p == nil {
		p = &produced{}
		x.parts[at] = p
		x.order = append(x.order, at)
	}
	return p
}

// add adds a message to its partition's batch, which is sent when it is full.
func (x *transaction) add(ctx context.Context, at wire.TopicPartition, m Message, part, row int) error {
	p := x.part(at)
	p.mu.Lock()
	defer p.mu.Unlock()
	t := m.Time.UnixMilli()
	if m.Time.IsZero() {
		t = clock.System().Now().UnixMilli()
	}
	if p.b.Len() > 0 && p.b.Size()+m.takes() > x.s.cfg.batchBytes {
		if err := x.send(ctx, at); err != nil {
			return err
		}
	}
	if p.b.Len() == 0 {
		p.first = originOf(part, row, &m)
	}
	p.b.Add(t, m.Key, m.Value, keyValues(m.Headers))
	return nil
}

// open notes that the coordinator may know of the transaction from now on.
func (x *transaction) open() {
	x.mu.Lock()
	x.opened = true
	x.mu.Unlock()
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.began.IsZero() {
		x.began = x.s.cfg.clock.Now()
	}
}

// join makes all partitions that have messages part of the transaction, in one request.
func (x *transaction) join(ctx context.Context) error {
	x.joining.Lock()
	defer x.joining.Unlock()
	x.mu.Lock()
	more := slices.Clone(x.order[x.joined:])
	x.mu.Unlock()
	if len(more) == 0 {
		return nil
	}
	x.open()
	doing := fmt.Sprintf("begin to write to %v", TopicPartition(more[0]))
	if len(more) > 1 {
		doing += fmt.Sprintf(" and %d more partitions", len(more)-1)
	}
	slices.SortFunc(more, func(a, b wire.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	err := x.s.changes(ctx, wire.TransactionCoordinator, doing, func(c *wire.Conn) error {
		err := c.AddPartitionsToTxn(ctx, x.s.txn, more)
		if errors.Is(err, wire.UnknownTopic) && !sabotage.On("kafka-partition-gone-asked-for") {
			if gone := x.s.gone(ctx, more); gone != nil {
				return gone
			}
		}
		return err
	})
	if err == nil {
		x.joined += len(more)
	}
	if gone := (*partitionGoneError)(nil); errors.As(err, &gone) {
		// Messages are placed by another number now: the epoch begins anew behind a fence.
		x.s.countAnew()
		x.s.lost()
		return fmt.Errorf("%w: %w", sink.ErrFenced, err)
	}
	return err
}

// partitionGoneError is a topic that was made again with fewer partitions.
type partitionGoneError struct {
	at wire.TopicPartition
	n  int
}

func (e *partitionGoneError) Error() string {
	return fmt.Sprintf("topic %q has %d partitions now, partition %d is none of them: it was made again", e.at.Topic, e.n, e.at.Partition)
}

// Permanent: the same request finds them neither another time.
func (e *partitionGoneError) Permanent() bool { return true }

// gone asks how many partitions there are, and says of which there are too few. A broker
// that does not know a topic yet knows no number either: then nothing is said.
func (s *Sink) gone(ctx context.Context, partitions []wire.TopicPartition) error {
	m, err := s.cluster.metadata(ctx)
	if err != nil {
		return nil
	}
	for _, t := range m.Topics {
		for _, at := range partitions {
			if n := len(t.Partitions); at.Topic == t.Name && t.Err == nil && n > 0 && int(at.Partition) >= n {
				return &partitionGoneError{at, n}
			}
		}
	}
	return nil
}

// send sends the batches of partitions, whose locks are held, and waits until they are
// safe.
func (x *transaction) send(ctx context.Context, parts ...wire.TopicPartition) error {
	s := x.s
	if err := x.alive(); err != nil {
		return err
	}
	if err := x.join(ctx); err != nil {
		return err
	}
	var list []*outgoing
	s.mu.Lock()
	for _, at := range parts {
		list = append(list, &outgoing{at: at, to: x.part(at), first: s.sequence[at]})
	}
	s.mu.Unlock()
	d := &delivery{s.cluster, &s.cfg, s.txn.ID, s.txn.ProducerID, func(string) { s.countAnew() }} // by the next transaction
	failed := d.all(ctx, list, func(o *outgoing) {
		s.mu.Lock()
		s.sequence[o.at] = nextSequence(o.first, o.to.b.Len())
		s.mu.Unlock()
		o.to.b.Reset()
	})
	switch {
	case failed == nil:
		return nil
	case fenced(failed.o.err):
		s.shutOut()
		return fmt.Errorf("%w: %w", sink.ErrFenced, failed.wrap(s))
	}
	s.lost() // they may be there, or come yet: the sequences are not known
	return failed.wrap(s)
}

// lost notes that what became of a transaction is not known: only another fence
// makes it known.
func (s *Sink) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
}

// shutOut is lost, by the coordinator's or a leader's word: there is nothing left to end.
func (s *Sink) shutOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.fenced = true, true
}

func (s *Sink) isFenced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fenced
}

func (s *Sink) isLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Commit implements sink.Tx. It can be called again: what was done is not done
// again, and a commit of which the answer was lost is asked for once more, which
// Kafka answers with yes.
func (x *transaction) Commit(ctx context.Context, m sink.Memory) error {
	return x.explain(x.commit(ctx, m))
}

func (x *transaction) commit(ctx context.Context, m sink.Memory) error {
	s := x.s
	switch {
	case x.over:
		return fmt.Errorf("%v: epoch %d: the transaction is over: %w", s, x.epoch, sink.ErrMisuse)
	case m.Epoch != x.epoch:
		return fmt.Errorf("%v: the transaction of epoch %d cannot commit epoch %d: %w", s, x.epoch, m.Epoch, sink.ErrMisuse)
	case x.memory != nil && *x.memory != m:
		return fmt.Errorf("%v: the transaction of epoch %d cannot commit it with another memory than before: %w", s, x.epoch, sink.ErrMisuse)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if m.Epoch <= s.have && !sabotage.On("kafka-epoch-twice") {
		return &sink.EpochError{Unit: s.name, Epoch: m.Epoch, Have: s.have}
	}
	if err := x.alive(); err != nil {
		return err
	}
	x.memory = &m
	if err := x.flush(ctx); err != nil {
		return err
	}
	if err := x.remembers(ctx, m); err != nil {
		return err
	}
	x.ending = true
	err := s.changes(ctx, wire.TransactionCoordinator, fmt.Sprintf("commit epoch %d", x.epoch), func(c *wire.Conn) error {
		return c.EndTxn(ctx, s.txn, true)
	})
	if err != nil {
		return err
	}
	x.over, s.have = true, m.Epoch
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overdue = 0
	return nil
}

// flush sends what is left in the batches of all partitions.
func (x *transaction) flush(ctx context.Context) error {
	var left []wire.TopicPartition
	for _, at := range x.order {
		p := x.parts[at]
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.b.Len() > 0 {
			left = append(left, at)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return x.send(ctx, left...)
}

// remembers makes the memory part of the transaction.
func (x *transaction) remembers(ctx context.Context, m sink.Memory) error {
	s := x.s
	if !x.offsets {
		x.open()
		err := s.changes(ctx, wire.TransactionCoordinator, "begin to write the memory", func(c *wire.Conn) error {
			return c.AddOffsetsToTxn(ctx, s.txn, s.txn.ID)
		})
		if err != nil {
			return err
		}
		x.offsets = true
	}
	if x.remember {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	// Under each topic, as Kafka forgets what lies under one that is deleted.
	var offsets []wire.GroupOffset
	for _, topic := range s.topics {
		offsets = append(offsets, wire.GroupOffset{TopicPartition: wire.TopicPartition{Topic: topic}, Offset: int64(m.Epoch), Metadata: string(text)})
		if sabotage.On("memory-under-one-topic") {
			break
		}
	}
	err = s.changes(ctx, wire.GroupCoordinator, "write the memory", func(c *wire.Conn) error {
		return c.TxnOffsetCommit(ctx, s.txn, s.txn.ID, offsets...)
	})
	if err != nil {
		return err
	}
	x.remember = true
	return nil
}

// Abort implements sink.Tx.
func (x *transaction) Abort(ctx context.Context) error {
	s := x.s
	if x.over {
		return nil
	}
	x.over = true
	if !x.opened || x.generation != s.generation || s.isFenced() {
		return nil // there is nothing, or somebody else has ended it
	}
	if s.isLost() || x.ending {
		s.lost() // the memory tells what became of it, behind the next fence
		return s.abandon(ctx)
	}
	err := s.changes(ctx, wire.TransactionCoordinator, fmt.Sprintf("abort epoch %d", x.epoch), func(c *wire.Conn) error {
		return c.EndTxn(ctx, s.txn, false)
	})
	if err != nil {
		s.lost() // the next fence aborts it
		if errors.Is(err, sink.ErrFenced) {
			return nil
		}
	}
	return err
}
