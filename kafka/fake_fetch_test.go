package kafka

import "encoding/binary"

func (b *fakeBroker) fetch(a []byte, version, code int16, q *cursor) []byte {
	be := binary.BigEndian
	q.take(12)
	most := q.i32()
	committed := q.take(1)[0] == 1
	if version >= 7 {
		q.take(8)
	}
	q.i32()
	name := q.text()
	q.i32()
	number := q.i32()
	if version >= 9 {
		q.i32()
	}
	offset := q.i64()
	l := b.logs[TopicPartition{name, number}]
	if l == nil {
		l, code = &fakeLog{}, 3
	}
	if b.throttled > 0 {
		b.throttled--
		a = be.AppendUint32(a, uint32(b.throttle))
		if version >= 7 {
			a = append(a, 0, 0, 0, 0, 0, 0)
		}
		return be.AppendUint32(a, 0)
	}
	if code == 0 && (offset < l.start || offset > l.end) {
		code = 1
	}
	a = append(a, 0, 0, 0, 0)
	if version >= 7 {
		a = append(a, 0, 0, 0, 0, 0, 0)
	}
	a = be.AppendUint32(a, 1)
	a = be.AppendUint16(a, uint16(len(name)))
	a = append(a, name...)
	a = be.AppendUint32(a, 1)
	a = be.AppendUint32(a, uint32(number))
	a = be.AppendUint16(a, uint16(code))
	a = be.AppendUint64(a, uint64(l.end))
	a = be.AppendUint64(a, uint64(l.stable))
	if version >= 5 {
		a = be.AppendUint64(a, uint64(l.start))
	}
	var aborted [][2]int64
	for _, x := range l.aborted {
		if committed && l.markerOf(x) >= offset {
			aborted = append(aborted, x)
		}
	}
	a = be.AppendUint32(a, uint32(len(aborted)))
	for _, x := range aborted {
		a = be.AppendUint64(a, uint64(x[0]))
		a = be.AppendUint64(a, uint64(x[1]))
	}
	if version >= 11 {
		a = be.AppendUint32(a, 1<<32-1)
	}
	data := l.raw
	for _, x := range l.batches {
		if lastOf(x) < offset || committed && x.Base >= l.stable {
			continue
		}
		next := x.Append(nil)
		if len(data) > 0 && len(data)+len(next) > int(most) {
			data = append(data, next[:max(0, int(most)-len(data))]...) // brokers cut
			break
		}
		data = append(data, next...)
	}
	if code != 0 {
		data = nil
	}
	if b.cutTo > 0 && len(data) > int(most) {
		data = data[:most]
	}
	a = be.AppendUint32(a, uint32(len(data)))
	return append(a, data...)
}
