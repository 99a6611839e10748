package kafka

import "encoding/binary"

// epochs tells where the logs of leader epochs end.
func (b *fakeBroker) epochs(a []byte, code int16, q *cursor) []byte {
	be := binary.BigEndian
	q.i32()
	a = append(a, 0, 0, 0, 0)
	topics := q.i32()
	a = be.AppendUint32(a, uint32(topics))
	for ; topics > 0; topics-- {
		name := q.text()
		a = be.AppendUint16(a, uint16(len(name)))
		a = append(a, name...)
		n := q.i32()
		a = be.AppendUint32(a, uint32(n))
		for ; n > 0; n-- {
			number, _, epoch := q.i32(), q.i32(), q.i32()
			l, code := b.logs[TopicPartition{name, number}], code
			if l == nil {
				l, code = &fakeLog{}, 3
			}
			end := l.end
			switch {
			case epoch > l.epoch, l.unwritten && int(epoch) >= len(l.ends):
				epoch, end = -1, -1
			case int(epoch) < len(l.ends):
				end = l.ends[epoch]
			}
			a = be.AppendUint16(a, uint16(code))
			a = be.AppendUint32(a, uint32(number))
			a = be.AppendUint32(a, uint32(epoch))
			a = be.AppendUint64(a, uint64(end))
		}
	}
	return a
}

// cursor reads a request.
type cursor struct{ b []byte }

func (q *cursor) take(n int) []byte { out := q.b[:n]; q.b = q.b[n:]; return out }
func (q *cursor) i16() int16        { return int16(binary.BigEndian.Uint16(q.take(2))) }
func (q *cursor) i32() int32        { return int32(binary.BigEndian.Uint32(q.take(4))) }
func (q *cursor) i64() int64        { return int64(binary.BigEndian.Uint64(q.take(8))) }
func (q *cursor) text() string {
	if n := q.i16(); n > 0 {
		return string(q.take(int(n)))
	}
	return ""
}
