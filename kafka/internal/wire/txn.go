package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"time"
)

// The requests of a producer with transactions.
const (
	keyProduce         = 0
	keyOffsetFetch     = 9
	keyFindCoordinator = 10
	keyInitProducerID  = 22
	keyAddPartitions   = 24
	keyAddOffsets      = 25
	keyEndTxn          = 26
	keyTxnOffsetCommit = 28
)

// What a coordinator coordinates.
const (
	GroupCoordinator       int8 = 0
	TransactionCoordinator int8 = 1
)

// FindCoordinator asks for the broker that coordinates a group or a transactional
// id. Its error may be an Error.
func (c *Conn) FindCoordinator(ctx context.Context, kind int8, key string) (addr string, err error) {
	version, err := c.version(keyFindCoordinator, 1, 2, "FindCoordinator")
	if err != nil {
		return "", err
	}
	b := appendText(c.begin(keyFindCoordinator, version, false), key)
	answer, err := c.call(ctx, append(b, byte(kind)), smallAnswer)
	if err != nil {
		return "", err
	}
	r := &reader{b: answer}
	c.throttled(r)
	code := r.i16()
	r.text() // in words
	r.i32()  // node
	host, port := r.text(), r.i32()
	switch {
	case r.bad:
		return "", c.cut("FindCoordinator")
	case code != 0:
		return "", Error(code)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}

// throttled reads for how long the broker wants to be left alone, from which on it reads
// nothing more from the connection (quotas, KIP-219).
func (c *Conn) throttled(r *reader) {
	c.muted = max(c.muted, time.Duration(max(r.i32(), 0))*time.Millisecond)
}

// Muted gives for how long the broker wants to be left alone, as its answers since the
// last call have it.
func (c *Conn) Muted() time.Duration {
	d := c.muted
	c.muted = 0
	return d
}

// ProducerID is who a producer is; every InitProducerID of one transactional id
// gives a greater epoch, or another id.
type ProducerID struct {
	ID    int64
	Epoch int16
}

// InitProducerID makes the caller the one producer of a transactional id; what an
// older one had open is aborted. Without a transactional id it gives an idempotent
// producer's id.
func (c *Conn) InitProducerID(ctx context.Context, txn string, timeout time.Duration) (ProducerID, error) {
	version, err := c.version(keyInitProducerID, 0, 1, "InitProducerId")
	if err != nil {
		return ProducerID{}, err
	}
	b := c.begin(keyInitProducerID, version, false)
	if txn == "" {
		b = binary.BigEndian.AppendUint16(b, 1<<16-1)
	} else {
		b = appendText(b, txn)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(timeout/time.Millisecond))
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return ProducerID{}, err
	}
	return c.producerID(&reader{b: answer}, false)
}

const (
	nextEpoch     = 3 // of InitProducerId
	stableOffsets = 7 // of OffsetFetch
)

// Transactions says whether the broker speaks all that exactly-once sinks need.
func (c *Conn) Transactions() error {
	if _, err := c.version(keyOffsetFetch, stableOffsets, stableOffsets, "OffsetFetch"); err != nil {
		return err
	}
	_, err := c.version(keyInitProducerID, nextEpoch, nextEpoch, "InitProducerId")
	return err
}

// NextEpoch gives the producer of t, if it is still the one of its transactional id, the
// next epoch: what it has asked for with the one before is refused from then on, also
// what has yet to arrive. Anybody else is fenced (Kafka 2.5 and later).
func (c *Conn) NextEpoch(ctx context.Context, t Txn, timeout time.Duration) (ProducerID, error) {
	const version = nextEpoch
	if _, err := c.version(keyInitProducerID, version, version, "InitProducerId"); err != nil {
		return ProducerID{}, err
	}
	be := binary.BigEndian
	b := appendCompact(c.begin(keyInitProducerID, version, true), t.ID)
	b = be.AppendUint32(b, uint32(timeout/time.Millisecond))
	b = be.AppendUint64(b, uint64(t.ProducerID.ID))
	b = be.AppendUint16(b, uint16(t.Epoch))
	answer, err := c.call(ctx, append(b, 0), smallAnswer)
	if err != nil {
		return ProducerID{}, err
	}
	return c.producerID(&reader{b: answer}, true)
}

// producerID reads an InitProducerId answer.
func (c *Conn) producerID(r *reader, flexible bool) (ProducerID, error) {
	if flexible {
		r.tags()
	}
	c.throttled(r)
	code := r.i16()
	p := ProducerID{r.i64(), r.i16()}
	if flexible {
		r.tags()
	}
	switch {
	case r.bad:
		return ProducerID{}, c.cut("InitProducerId")
	case code != 0:
		return ProducerID{}, Error(code)
	}
	return p, nil
}

// Txn names a producer's transaction.
type Txn struct {
	ID string
	ProducerID
}

func (c *Conn) beginTxn(key int16, most int16, name string, t Txn) (b []byte, version int16, err error) {
	if version, err = c.version(key, 0, most, name); err != nil {
		return nil, 0, err
	}
	return t.append(c.begin(key, version, false)), version, nil
}

func (t Txn) append(b []byte) []byte {
	b = appendText(b, t.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(t.ProducerID.ID))
	return binary.BigEndian.AppendUint16(b, uint16(t.Epoch))
}

// AddPartitionsToTxn makes partitions part of the transaction, before anything is
// produced to them; those of one topic stand together.
func (c *Conn) AddPartitionsToTxn(ctx context.Context, t Txn, partitions []TopicPartition) error {
	b, _, err := c.beginTxn(keyAddPartitions, 2, "AddPartitionsToTxn", t)
	if err != nil {
		return err
	}
	b = appendPartitions(b, partitions)
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return err
	}
	r := &reader{b: answer}
	c.throttled(r)
	var fault error
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(6); k > 0; k-- {
			p, e := r.i32(), r.i16()
			// "Operation not attempted" says only that another one is at fault.
			if e != 0 && (fault == nil || e != operationNotAttempted) {
				fault = fmt.Errorf("topic %q partition %d: %w", topic, p, Error(e))
			}
		}
	}
	if r.bad {
		return c.cut("AddPartitionsToTxn")
	}
	return fault
}

const operationNotAttempted = 55

func appendPartitions(b []byte, partitions []TopicPartition) []byte {
	return appendTopics(b, partitions, func(b []byte, _ int) []byte { return b })
}

// appendTopics writes partitions topic by topic, those of one topic standing together.
// Behind the number of partition i comes what more appends.
func appendTopics(b []byte, partitions []TopicPartition, more func(b []byte, i int) []byte) []byte {
	runs := topicRuns(partitions)
	b = binary.BigEndian.AppendUint32(b, uint32(len(runs)))
	i := 0
	for _, run := range runs {
		b = appendText(b, run[0].Topic)
		b = binary.BigEndian.AppendUint32(b, uint32(len(run)))
		for _, p := range run {
			b = more(binary.BigEndian.AppendUint32(b, uint32(p.Partition)), i)
			i++
		}
	}
	return b
}

// topicRuns cuts partitions, of which those of one topic stand together.
func topicRuns(partitions []TopicPartition) (runs [][]TopicPartition) {
	for i := 0; i < len(partitions); {
		end := i + 1
		for end < len(partitions) && partitions[end].Topic == partitions[i].Topic {
			end++
		}
		runs = append(runs, partitions[i:end])
		i = end
	}
	return runs
}

// code reads an answer that is a throttle and an error code.
func (c *Conn) code(answer []byte, what string) error {
	r := &reader{b: answer}
	c.throttled(r)
	e := r.i16()
	if r.bad {
		return c.cut(what)
	}
	return code(e)
}

// AddOffsetsToTxn makes a group's offsets part of the transaction.
func (c *Conn) AddOffsetsToTxn(ctx context.Context, t Txn, group string) error {
	b, _, err := c.beginTxn(keyAddOffsets, 2, "AddOffsetsToTxn", t)
	if err != nil {
		return err
	}
	answer, err := c.call(ctx, appendText(b, group), smallAnswer)
	if err != nil {
		return err
	}
	return c.code(answer, "AddOffsetsToTxn")
}

// EndTxn commits or aborts the transaction. Asked again for what it has done, the
// coordinator says yes.
func (c *Conn) EndTxn(ctx context.Context, t Txn, commit bool) error {
	b, _, err := c.beginTxn(keyEndTxn, 2, "EndTxn", t)
	if err != nil {
		return err
	}
	flag := byte(0)
	if commit {
		flag = 1
	}
	answer, err := c.call(ctx, append(b, flag), smallAnswer)
	if err != nil {
		return err
	}
	return c.code(answer, "EndTxn")
}

// GroupOffset is the offset that a group has of a partition, with a text.
type GroupOffset struct {
	TopicPartition
	Offset   int64
	Metadata string
}

// TxnOffsetCommit writes offsets of a group as a part of the transaction; those of one
// topic stand together.
func (c *Conn) TxnOffsetCommit(ctx context.Context, t Txn, group string, offsets ...GroupOffset) error {
	version, err := c.version(keyTxnOffsetCommit, 0, 2, "TxnOffsetCommit")
	if err != nil {
		return err
	}
	be := binary.BigEndian
	b := appendText(c.begin(keyTxnOffsetCommit, version, false), t.ID)
	b = appendText(b, group)
	b = be.AppendUint64(b, uint64(t.ProducerID.ID))
	b = be.AppendUint16(b, uint16(t.Epoch))
	partitions := make([]TopicPartition, len(offsets))
	for i, o := range offsets {
		partitions[i] = o.TopicPartition
	}
	b = appendTopics(b, partitions, func(b []byte, i int) []byte {
		b = be.AppendUint64(b, uint64(offsets[i].Offset))
		if version >= 2 {
			b = be.AppendUint32(b, 1<<32-1) // any leader epoch
		}
		return appendText(b, offsets[i].Metadata)
	})
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return err
	}
	r := &reader{b: answer}
	c.throttled(r)
	return c.partitionFault(r, "TxnOffsetCommit")
}

// RefusedError is an answer in which some partitions have error codes. The others were
// done.
type RefusedError struct {
	Codes map[TopicPartition]Error
	last  TopicPartition
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("topic %q partition %d: %v", e.last.Topic, e.last.Partition, e.Codes[e.last])
}

// Unwrap gives one of the codes.
func (e *RefusedError) Unwrap() error { return e.Codes[e.last] }

// partitionFault reads the rest of an answer that has an error code for each
// partition: a RefusedError if there are some.
func (c *Conn) partitionFault(r *reader, what string) error {
	refused := RefusedError{Codes: map[TopicPartition]Error{}}
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(6); k > 0; k-- {
			if p, e := r.i32(), r.i16(); e != 0 {
				refused.last = TopicPartition{topic, p}
				refused.Codes[refused.last] = Error(e)
			}
		}
	}
	switch {
	case r.bad:
		return c.cut(what)
	case len(refused.Codes) > 0:
		return &refused
	}
	return nil
}

// StableOffsets reads offsets of a group, of decided transactions only: while one
// is open, or not settled yet, that has written an offset of one of the
// partitions, the broker answers UnstableOffset (require_stable, Kafka 2.5 and
// later). Offsets that are not there are -1. Without partitions it reads all that
// the group has; but of a partition that has none yet, it does not notice then
// that one is on its way.
func (c *Conn) StableOffsets(ctx context.Context, group string, partitions []TopicPartition) ([]GroupOffset, error) {
	const version = stableOffsets
	if _, err := c.version(keyOffsetFetch, version, version, "OffsetFetch"); err != nil {
		return nil, err
	}
	b := c.begin(keyOffsetFetch, version, true)
	b = appendCompact(b, group)
	if len(partitions) == 0 {
		b = append(b, 0) // all topics
	} else {
		runs := topicRuns(partitions)
		b = binary.AppendUvarint(b, uint64(len(runs)+1))
		for _, run := range runs {
			b = appendCompact(b, run[0].Topic)
			b = binary.AppendUvarint(b, uint64(len(run)+1))
			for _, p := range run {
				b = binary.BigEndian.AppendUint32(b, uint32(p.Partition))
			}
			b = append(b, 0) // no tags
		}
	}
	b = append(b, 1, 0) // stable, no tags
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return nil, err
	}
	r := &reader{b: answer}
	r.tags()
	c.throttled(r)
	var out []GroupOffset
	var fault error
	for n := r.compactCount(3); n > 0; n-- {
		topic := r.compactText()
		for k := r.compactCount(20); k > 0; k-- {
			o := GroupOffset{TopicPartition: TopicPartition{topic, r.i32()}, Offset: r.i64()}
			r.i32() // leader epoch
			o.Metadata = r.compactText()
			if e := r.i16(); e != 0 {
				fault = Error(e)
			}
			r.tags()
			out = append(out, o)
		}
		r.tags()
	}
	if e := r.i16(); e != 0 {
		fault = Error(e)
	}
	r.tags()
	switch {
	case r.bad:
		return nil, c.cut("OffsetFetch")
	case fault != nil:
		return nil, fault
	}
	return out, nil
}

func appendCompact(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)+1))
	return append(b, s...)
}
