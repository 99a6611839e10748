package kafka

import "encoding/binary"

// asked is one partition of a fetch.
type asked struct {
	TopicPartition
	offset int64
	most   int
}

// fetchOf takes a fetch apart.
func fetchOf(version int16, q *cursor) (most int, committed bool, topics []string, parts map[string][]asked) {
	q.take(12)
	most = int(q.i32())
	committed = q.take(1)[0] == 1
	if version >= 7 {
		q.take(8)
	}
	parts = map[string][]asked{}
	for n := q.i32(); n > 0; n-- {
		name := q.text()
		topics = append(topics, name)
		for k := q.i32(); k > 0; k-- {
			x := asked{TopicPartition: TopicPartition{name, q.i32()}}
			if version >= 9 {
				q.i32()
			}
			x.offset = q.i64()
			if version >= 5 {
				q.i64()
			}
			x.most = int(q.i32())
			parts[name] = append(parts[name], x)
		}
	}
	return most, committed, topics, parts
}

// await holds a fetch up.
func (b *fakeBroker) await(version int16, q cursor) {
	_, _, topics, parts := fetchOf(version, &q)
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	if gate == nil {
		return
	}
	for _, name := range topics {
		for _, x := range parts[name] {
			if c := gate(1, x.TopicPartition); c != nil {
				<-c
			}
		}
	}
}

func (b *fakeBroker) fetch(a []byte, version, code int16, q *cursor) []byte {
	be := binary.BigEndian
	left, committed, topics, parts := fetchOf(version, q)
	throttled := b.throttled > 0
	if throttled {
		b.throttled--
		a = be.AppendUint32(a, uint32(b.throttle))
		topics = nil
	} else {
		a = append(a, 0, 0, 0, 0)
	}
	if version >= 7 {
		a = append(a, 0, 0, 0, 0, 0, 0)
	}
	a = be.AppendUint32(a, uint32(len(topics)))
	first := true // the first that has bytes gets a batch at least
	for _, name := range topics {
		a = be.AppendUint16(a, uint16(len(name)))
		a = append(a, name...)
		a = be.AppendUint32(a, uint32(len(parts[name])))
		for _, x := range parts[name] {
			var n int
			a, n = b.fetchPart(a, version, code, x, min(x.most, left), first, committed)
			if n > 0 {
				first = false
			}
			left -= n
		}
	}
	return a
}

// fetchPart answers for one partition, and tells how many bytes it gave.
func (b *fakeBroker) fetchPart(a []byte, version, code int16, x asked, most int, first, committed bool) ([]byte, int) {
	be := binary.BigEndian
	offset := x.offset
	l := b.logs[x.TopicPartition]
	if l == nil {
		l, code = &fakeLog{}, 3
	}
	if code == 0 && (offset < l.start || offset > l.end) {
		code = 1
	}
	a = be.AppendUint32(a, uint32(x.Partition))
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
		if at, bad := l.damaged[x.Base]; bad {
			next[at] ^= 1
		}
		if len(data)+len(next) > most {
			if len(data) > 0 {
				data = append(data, next[:max(0, most-len(data))]...) // brokers cut
				break
			}
			if !first {
				break
			}
		}
		data = append(data, next...)
	}
	if code != 0 {
		data = nil
	}
	if b.cutTo > 0 && len(data) > most {
		data = data[:most]
	}
	a = be.AppendUint32(a, uint32(len(data)))
	return append(a, data...), len(data)
}
