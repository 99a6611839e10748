package kafka

import (
	"encoding/binary"
	"maps"
	"net"
	"testing"

	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/stretchr/testify/require"
)

// fakeWrites is the part of a fakeBroker that takes what is written: it is the leader
// of every partition and every coordinator.
type fakeWrites struct {
	producers map[string]*fakeProducer // by transactional id; "" for all without
	groups    map[string]map[TopicPartition]groupOffset
	written   map[TopicPartition][]string // "key=value", of what is committed
	last      map[[2]any]int32            // the last sequence, by producer id and partition
	members   bool                        // groups have some
	unknown   map[string]bool             // topics that do not exist where offsets are committed
	anybody   bool                        // gets the next epoch
	old       bool                        // the broker is too old for sinks
	// refuse is asked for each batch before it is stored, and again when it is: a code
	// for its answer.
	refuse func(tp TopicPartition, stored bool) int16
	muted  uint32 // for how many milliseconds the answer to the next Produce mutes
	ids    int64
}

// fakeProducer is one producer, with what its open transaction holds.
type fakeProducer struct {
	id      int64
	epoch   int16
	last    int16 // the epoch that was followed by this one at the producer's own wish, or -1
	pending map[TopicPartition][]string
	added   map[TopicPartition]bool
	offsets map[string]map[TopicPartition]groupOffset
}

type groupOffset struct {
	offset int64
	text   string
}

func newFakeWrites() fakeWrites {
	return fakeWrites{producers: map[string]*fakeProducer{}, groups: map[string]map[TopicPartition]groupOffset{},
		written: map[TopicPartition][]string{}, last: map[[2]any]int32{}, ids: 100}
}

func (p *fakeProducer) clear() {
	p.pending, p.added = map[TopicPartition][]string{}, map[TopicPartition]bool{}
	p.offsets = map[string]map[TopicPartition]groupOffset{}
}

// keys are the requests that are taken, with the greatest version of each.
func (w *fakeWrites) keys() map[uint16]uint16 {
	if w.old { // as Kafka 2.4
		return map[uint16]uint16{0: 8, 8: 5, 9: 6, 10: 2, 16: 2, 22: 2, 24: 2, 25: 2, 26: 2, 28: 2}
	}
	return map[uint16]uint16{0: 8, 8: 5, 9: 7, 10: 2, 16: 2, 22: 3, 24: 2, 25: 2, 26: 2, 28: 2}
}

// answer answers one of them. A code is the broker's fault: then nothing is done.
func (w *fakeWrites) answer(a []byte, key, version, code int16, q *cursor, at *net.TCPAddr) []byte {
	be := binary.BigEndian
	if key == 22 && version >= 2 {
		return w.nextEpoch(a, code, q)
	}
	if key != 0 && key != 9 && key != 10 {
		a = append(a, 0, 0, 0, 0)
	}
	switch key {
	case 0:
		return w.produce(a, code, q)
	case 8:
		return w.commitOffsets(a, code, q)
	case 9:
		return w.fetchOffsets(a, code, q)
	case 10:
		a = append(a, 0, 0, 0, 0)
		a = be.AppendUint16(a, uint16(code))
		a = append(a, 0xff, 0xff, 0, 0, 0, 7)
		a = be.AppendUint16(a, uint16(len(at.IP.String())))
		a = append(a, at.IP.String()...)
		return be.AppendUint32(a, uint32(at.Port))
	case 16:
		a = be.AppendUint16(a, uint16(code))
		a = be.AppendUint32(a, uint32(len(w.groups)))
		for name := range w.groups {
			a = be.AppendUint16(a, uint16(len(name)))
			a = append(append(a, name...), 0, 0)
		}
		return a
	case 22:
		txn := q.text()
		p := w.producers[txn]
		if p == nil || txn == "" {
			w.ids++
			p = &fakeProducer{id: w.ids, epoch: -1}
			w.producers[txn] = p
		}
		if code == 0 {
			p.epoch++
			p.last = -1
			p.clear() // what was open is aborted
		}
		a = be.AppendUint16(a, uint16(code))
		a = be.AppendUint64(a, uint64(p.id))
		return be.AppendUint16(a, uint16(p.epoch))
	}
	if key == 28 {
		return w.txnOffsets(a[:len(a)-4], code, q)
	}
	p, code := w.producer(code, q)
	switch key {
	case 24:
		parts := eachPartition(q, func(TopicPartition) {})
		for _, tp := range parts {
			if code == 0 {
				p.added[tp] = true
			}
		}
		return appendCodes(a, parts, code)
	case 25:
		if group := q.text(); code == 0 && p.offsets[group] == nil {
			p.offsets[group] = map[TopicPartition]groupOffset{}
		}
	case 26:
		if commit := q.take(1)[0] == 1; code == 0 {
			if commit {
				w.commit(p)
			}
			p.clear()
		}
	}
	return be.AppendUint16(a, uint16(code))
}

// producer reads who a request is from.
func (w *fakeWrites) producer(code int16, q *cursor) (*fakeProducer, int16) {
	txn, id, epoch := q.text(), q.i64(), q.i16()
	p := w.producers[txn]
	switch {
	case p == nil || p.id != id:
		return &fakeProducer{}, max(code, 49)
	case p.epoch != epoch:
		return p, max(code, 47)
	}
	return p, code
}

// nextEpoch is InitProducerId in version 3, of a producer that has an id.
func (w *fakeWrites) nextEpoch(a []byte, code int16, q *cursor) []byte {
	be := binary.BigEndian
	q.take(1)
	p := w.producers[string(q.take(int(q.uvarint())-1))]
	q.i32()
	id, epoch := q.i64(), q.i16()
	switch {
	case code != 0:
	case p == nil || p.id != id:
		code = 49
	case w.anybody:
		p.epoch++
	case epoch == p.last: // asked again
	case epoch != p.epoch:
		code = 90
	default:
		p.last = p.epoch
		p.epoch++
		p.clear()
	}
	a = append(a, 0, 0, 0, 0, 0)
	a = be.AppendUint16(a, uint16(code))
	if code != 0 {
		p = &fakeProducer{id: -1, epoch: -1}
	}
	a = be.AppendUint64(a, uint64(p.id))
	return append(be.AppendUint16(a, uint16(p.epoch)), 0)
}

func (w *fakeWrites) commit(p *fakeProducer) {
	for tp, rows := range p.pending {
		w.written[tp] = append(w.written[tp], rows...)
	}
	for group, offsets := range p.offsets {
		w.put(group, offsets)
	}
}

func (w *fakeWrites) put(group string, offsets map[TopicPartition]groupOffset) {
	if w.groups[group] == nil {
		w.groups[group] = map[TopicPartition]groupOffset{}
	}
	for tp, o := range offsets {
		w.groups[group][tp] = o
	}
}

func (w *fakeWrites) produce(a []byte, code int16, q *cursor) []byte {
	be := binary.BigEndian
	txn := q.text()
	q.take(6)
	topics := q.i32()
	a = be.AppendUint32(a, uint32(topics))
	for ; topics > 0; topics-- {
		tp := TopicPartition{Topic: q.text()}
		parts := q.i32()
		a = be.AppendUint16(a, uint16(len(tp.Topic)))
		a = append(a, tp.Topic...)
		a = be.AppendUint32(a, uint32(parts))
		for ; parts > 0; parts-- {
			tp.Partition = q.i32()
			data := q.take(int(q.i32()))
			own := code
			if own == 0 && w.refuse != nil {
				own = w.refuse(tp, false)
			}
			if own == 0 {
				own = w.store(txn, tp, data)
			}
			if own == 0 && w.refuse != nil {
				own = w.refuse(tp, true)
			}
			a = be.AppendUint32(a, uint32(tp.Partition))
			a = be.AppendUint16(a, uint16(own))
			a = append(a, make([]byte, 24+4)...)
			a = append(a, 0xff, 0xff)
		}
	}
	a = be.AppendUint32(a, w.muted)
	w.muted = 0
	return a
}

// store checks who writes, and that sequences follow one another.
func (w *fakeWrites) store(txn string, tp TopicPartition, data []byte) int16 {
	be := binary.BigEndian
	id, epoch, first := int64(be.Uint64(data[43:])), int16(be.Uint16(data[51:])), int32(be.Uint32(data[53:]))
	p := w.producers[txn]
	switch {
	case p == nil || p.id != id:
		return 59
	case p.epoch != epoch:
		return 47
	case txn != "" && !p.added[tp]:
		return 48
	}
	key := [2]any{[2]int64{id, int64(epoch)}, tp}
	next, seen := w.last[key]
	switch {
	case seen && first < next:
		return 46
	case first != next:
		return 45
	}
	var rows []string
	var d batch.Decoder
	d.Reset(data, 0, false, nil, 64<<20)
	var r batch.Record
	for {
		more, err := d.Next(&r)
		if err != nil {
			return 2
		}
		if !more {
			break
		}
		rows = append(rows, string(r.Key)+"="+string(r.Value))
	}
	w.last[key] = next + int32(len(rows))
	if txn != "" {
		p.pending[tp] = append(p.pending[tp], rows...)
	} else {
		w.written[tp] = append(w.written[tp], rows...)
	}
	return 0
}

// commitOffsets is OffsetCommit in version 5.
func (w *fakeWrites) commitOffsets(a []byte, code int16, q *cursor) []byte {
	group := q.text()
	q.i32()
	q.text()
	if w.members {
		code = 25
	}
	offsets := map[TopicPartition]groupOffset{}
	parts := eachPartition(q, func(tp TopicPartition) { offsets[tp] = groupOffset{q.i64(), q.text()} })
	if code == 0 {
		maps.DeleteFunc(offsets, func(tp TopicPartition, _ groupOffset) bool { return w.unknown[tp.Topic] })
		w.put(group, offsets)
	}
	a = appendCodes(a, nil, 0)
	binary.BigEndian.PutUint32(a[len(a)-4:], uint32(len(parts)))
	for _, tp := range parts {
		own := code
		if w.unknown[tp.Topic] {
			own = 3
		}
		a = append(a, appendCodes(nil, []TopicPartition{tp}, own)[4:]...)
	}
	return a
}

// txnOffsets is TxnOffsetCommit in version 2.
func (w *fakeWrites) txnOffsets(a []byte, code int16, q *cursor) []byte {
	a = append(a, 0, 0, 0, 0)
	txn, group, id, epoch := q.text(), q.text(), q.i64(), q.i16()
	p := w.producers[txn]
	switch {
	case code != 0:
	case p == nil || p.id != id:
		code = 49
	case p.epoch != epoch:
		code = 47
	case p.offsets[group] == nil:
		code = 48
	}
	parts := eachPartition(q, func(tp TopicPartition) {
		offset, _, text := q.i64(), q.i32(), q.text()
		if code == 0 {
			p.offsets[group][tp] = groupOffset{offset, text}
		}
	})
	return appendCodes(a, parts, code)
}

// fetchOffsets is OffsetFetch in version 7, with require_stable.
func (w *fakeWrites) fetchOffsets(a []byte, code int16, q *cursor) []byte {
	be := binary.BigEndian
	q.take(1) // tags
	compact := func() string { return string(q.take(int(q.uvarint()) - 1)) }
	group := compact()
	var parts []TopicPartition
	n := q.uvarint()
	for k := n; k > 1; k-- {
		topic := compact()
		for j := q.uvarint(); j > 1; j-- {
			parts = append(parts, TopicPartition{topic, q.i32()})
		}
		q.take(1)
	}
	offsets := w.groups[group]
	if n == 0 {
		for tp := range offsets {
			parts = append(parts, tp)
		}
	}
	if code == 0 && offsets == nil {
		code = 69
	}
	a = append(a, 0, 0, 0, 0, 0)
	a = binary.AppendUvarint(a, uint64(len(parts)+1))
	for _, tp := range parts {
		o, ok := offsets[tp]
		if !ok {
			o.offset = -1
		}
		a = binary.AppendUvarint(a, uint64(len(tp.Topic)+1))
		a = append(a, tp.Topic...)
		a = append(a, 2)
		a = be.AppendUint32(a, uint32(tp.Partition))
		a = be.AppendUint64(a, uint64(o.offset))
		a = be.AppendUint32(a, 1<<32-1)
		a = binary.AppendUvarint(a, uint64(len(o.text)+1))
		a = append(a, o.text...)
		a = append(a, 0, 0, 0, 0)
	}
	a = be.AppendUint16(a, uint16(code))
	return append(a, 0)
}

// eachPartition reads topics with their partitions; f reads what follows a number.
func eachPartition(q *cursor, f func(TopicPartition)) (all []TopicPartition) {
	for n := q.i32(); n > 0; n-- {
		topic := q.text()
		for k := q.i32(); k > 0; k-- {
			tp := TopicPartition{topic, q.i32()}
			f(tp)
			all = append(all, tp)
		}
	}
	return all
}

func appendCodes(a []byte, parts []TopicPartition, code int16) []byte {
	be := binary.BigEndian
	a = be.AppendUint32(a, uint32(len(parts)))
	for _, tp := range parts {
		a = be.AppendUint16(a, uint16(len(tp.Topic)))
		a = append(a, tp.Topic...)
		a = append(a, 0, 0, 0, 1)
		a = be.AppendUint32(a, uint32(tp.Partition))
		a = be.AppendUint16(a, uint16(code))
	}
	return a
}

func (q *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(q.b)
	q.b = q.b[n:]
	return v
}

// has says what a partition holds that readers of committed records see.
func (b *fakeBroker) has(t *testing.T, topic string, partition int32, rows ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, rows, b.writes.written[TopicPartition{topic, partition}])
}

// faults lets requests of a key fail, so many times.
func (b *fakeBroker) faults(key, code int16, act string, times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = func(k int16, _ int) (int16, string) {
		if k == key && times > 0 {
			times--
			return code, act
		}
		return 0, ""
	}
}
