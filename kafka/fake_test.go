package kafka

import (
	"encoding/binary"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/stretchr/testify/require"
)

// fakeBroker answers the four requests of a direct stream from logs of hand-made
// batches, as a broker would, and misbehaves as it is told to.
type fakeBroker struct {
	t        *testing.T
	listener net.Listener
	wait     sync.WaitGroup

	mu        sync.Mutex
	logs      map[TopicPartition]*fakeLog
	cluster   string          // the id that is told
	ids       map[string]byte // of topics; with anonymous, nobody is told
	anonymous bool
	old       bool   // speaks the oldest versions that will do
	metadatas uint16 // the latest version of Metadata that it speaks, 0 for 13
	fetches   int
	requests  int
	conns     map[net.Conn]bool
	// fault is asked before an answer: a code for the partition, and whether to
	// close the connection, or to stay silent.
	fault  func(key int16, n int) (code int16, act string)
	writes fakeWrites
	// gate is asked before a fetch is answered: what to wait for, nil for nothing.
	gate func(key int16, tp TopicPartition) chan struct{}
	// throttle is for how many milliseconds the next fetch is throttled, and how many.
	throttle, throttled int
	users               bool          // who connects has to say who he is, by SASL PLAIN
	peers               []*fakeBroker // other nodes of the cluster, which have the logs that they lead
	cutTo               int           // batches are cut to so many bytes, as brokers before 0.10.1 do
}

type fakeLog struct {
	start, end, stable int64
	batches            []batchtest.Batch
	raw                []byte        // in the place of batches
	damaged            map[int64]int // a byte of the batch with that base
	aborted            [][2]int64
	epoch              int32   // the leader's
	ends               []int64 // of the epochs before, from 0 on
	unwritten          bool    // nothing was written since them, and epochs without are not known
}

func newFake(t *testing.T) *fakeBroker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return newFakeOn(t, l)
}

func newFakeOn(t *testing.T, l net.Listener) *fakeBroker {
	b := &fakeBroker{t: t, listener: l, logs: map[TopicPartition]*fakeLog{}, ids: map[string]byte{}, conns: map[net.Conn]bool{}, writes: newFakeWrites()}
	b.wait.Add(1)
	go func() {
		defer b.wait.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns[c] = true
			b.mu.Unlock()
			b.wait.Add(1)
			go func() {
				defer b.wait.Done()
				defer c.Close()
				for b.serve(c) {
				}
			}()
		}
	}()
	t.Cleanup(b.close)
	return b
}

func (b *fakeBroker) close() {
	b.listener.Close()
	b.mu.Lock()
	for c := range b.conns {
		c.Close()
	}
	b.mu.Unlock()
	b.wait.Wait()
}

func (b *fakeBroker) addr() string { return b.listener.Addr().String() }

// log makes or replaces a partition; its end is that of the last batch.
func (b *fakeBroker) log(topic string, partition int32, batches ...batchtest.Batch) *fakeLog {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &fakeLog{batches: batches}
	for i, x := range batches {
		if i == 0 {
			l.start = x.Base
		}
		l.end = lastOf(x) + 1
	}
	l.stable = l.end
	b.logs[TopicPartition{topic, partition}] = l
	if b.ids[topic] == 0 {
		b.ids[topic] = 1
	}
	return l
}

// since is the offset of the first record of a time or later.
func (l *fakeLog) since(ms int64) int64 {
	for _, b := range l.batches {
		for _, r := range b.Records {
			if b.Time+r.TimeDelta >= ms {
				return b.Base + int64(r.Delta)
			}
		}
	}
	return -1
}

// markerOf is where an aborted transaction ends.
func (l *fakeLog) markerOf(aborted [2]int64) int64 {
	for _, b := range l.batches {
		if b.Control && b.Producer == aborted[0] && b.Base > aborted[1] {
			return b.Base
		}
	}
	return 1 << 62
}

// leader is who has a log: 0 for b, then its peers; -1 if nobody has it.
func (b *fakeBroker) leader(tp TopicPartition) int {
	if b.logs[tp] != nil {
		return 0
	}
	for i, p := range b.peers {
		p.mu.Lock()
		has := p.logs[tp] != nil
		p.mu.Unlock()
		if has {
			return 1 + i
		}
	}
	return -1
}

// topics are the names of all.
func (b *fakeBroker) topics() (names []string) {
	for tp := range b.logs {
		if !slices.Contains(names, tp.Topic) {
			names = append(names, tp.Topic)
		}
	}
	return names
}

// remove deletes a topic; made again, it has another id.
func (b *fakeBroker) remove(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tp := range b.logs {
		if tp.Topic == topic {
			delete(b.logs, tp)
		}
	}
	b.ids[topic]++
}

func lastOf(x batchtest.Batch) int64 {
	last := x.Last
	for _, r := range x.Records {
		last = max(last, r.Delta)
	}
	return x.Base + int64(last)
}

func (b *fakeBroker) serve(c net.Conn) bool {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return false
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, frame); err != nil {
		return false
	}
	q := &cursor{b: frame}
	key, version, id := q.i16(), q.i16(), q.i32()
	q.text()
	if key == 1 {
		b.await(version, *q)
	}
	b.mu.Lock()
	b.requests++
	n := b.requests
	var code int16
	var act string
	if b.fault != nil {
		code, act = b.fault(key, n)
	}
	answer := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(id))
	switch key {
	case 18:
		answer = b.versions(answer)
	case 3:
		answer = b.metadata(answer, version, code, q)
	case 2:
		answer = b.offsets(answer, version, code, q)
	case 23:
		answer = b.epochs(answer, code, q)
	case 1:
		b.fetches++
		answer = b.fetch(answer, version, code, q)
	case 17, 36:
		answer = appendSASL(answer, key, code)
	default:
		answer = b.writes.answer(answer, key, version, code, q, b.listener.Addr().(*net.TCPAddr))
	}
	b.mu.Unlock()
	switch act {
	case "close":
		return false
	case "silent":
		io.Copy(io.Discard, c) // until the client gives up
		return false
	case "half":
		answer = answer[:len(answer)/2]
		defer c.Close()
	}
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	if act == "half" {
		binary.BigEndian.PutUint32(answer, uint32(2*len(answer)))
	}
	if n, ok := cutAt(act); ok {
		c.Write(answer[:min(n, len(answer))])
		return false
	}
	_, err := c.Write(answer)
	return err == nil && !(key == 17 && version == 0 && refusesToken(c))
}

func (b *fakeBroker) versions(a []byte) []byte {
	most := map[uint16]uint16{1: 17, 2: 10, 3: 13, 18: 4, 23: 4}
	if b.old {
		most = map[uint16]uint16{1: 4, 2: 2, 3: 5, 18: 0, 23: 2}
	} else {
		maps.Copy(most, b.writes.keys())
		if b.metadatas > 0 {
			most[3] = b.metadatas
		}
	}
	if b.users {
		if most[17] = 1; b.old {
			most[17] = 0 // as before Kafka 1.0
		}
		most[36] = 0
	}
	least := map[uint16]uint16{1: 4, 2: 1, 23: 2}
	a = append(a, 0, 0)
	a = binary.BigEndian.AppendUint32(a, uint32(len(most)))
	for key := range most {
		a = binary.BigEndian.AppendUint16(a, key)
		a = binary.BigEndian.AppendUint16(a, least[key])
		a = binary.BigEndian.AppendUint16(a, most[key])
	}
	return a
}

func (b *fakeBroker) metadata(a []byte, version, code int16, q *cursor) []byte {
	be := binary.BigEndian
	var topics []string
	flexible := version >= 10
	if flexible {
		q.take(1)
		n := int(q.take(1)[0]) - 1
		if n < 0 {
			topics = b.topics()
		}
		for ; n > 0; n-- {
			q.take(16)
			topics = append(topics, string(q.take(int(q.take(1)[0])-1)))
			q.take(1)
		}
	} else {
		n := q.i32()
		if n < 0 {
			topics = b.topics()
		}
		for ; n > 0; n-- {
			topics = append(topics, q.text())
		}
	}
	count := func(n int) {
		if flexible {
			a = binary.AppendUvarint(a, uint64(n+1))
		} else {
			a = be.AppendUint32(a, uint32(n))
		}
	}
	text := func(s string) {
		if flexible {
			a = binary.AppendUvarint(a, uint64(len(s)+1))
		} else {
			a = be.AppendUint16(a, uint16(len(s)))
		}
		a = append(a, s...)
	}
	null := func() {
		if flexible {
			a = append(a, 0)
		} else {
			a = append(a, 0xff, 0xff)
		}
	}
	tags := func() {
		if flexible {
			a = append(a, 0)
		}
	}
	tags()
	a = append(a, 0, 0, 0, 0)
	nodes := append([]*fakeBroker{b}, b.peers...)
	count(len(nodes))
	for i, node := range nodes {
		addr := node.listener.Addr().(*net.TCPAddr)
		a = be.AppendUint32(a, 7+uint32(i))
		text(addr.IP.String())
		a = be.AppendUint32(a, uint32(addr.Port))
		null()
		tags()
	}
	text(b.cluster)
	a = be.AppendUint32(a, 7)
	count(len(topics))
	for _, name := range topics {
		var numbers []int32
		for n := int32(0); b.leader(TopicPartition{name, n}) >= 0; n++ {
			numbers = append([]int32{n}, numbers...)
		}
		e := code
		if len(numbers) == 0 {
			e = 3
		}
		a = be.AppendUint16(a, uint16(e))
		text(name)
		if flexible {
			a = append(a, make([]byte, 15)...)
			if b.anonymous {
				a = append(a, 0)
			} else {
				a = append(a, b.ids[name])
			}
		}
		if strings.HasPrefix(name, "__") {
			a = append(a, 1)
		} else {
			a = append(a, 0)
		}
		count(len(numbers))
		for _, n := range numbers {
			a = append(a, 0, 0)
			a = be.AppendUint32(a, uint32(n))
			a = be.AppendUint32(a, 7+uint32(b.leader(TopicPartition{name, n})))
			if flexible {
				a = be.AppendUint32(a, 3)
			}
			for range 2 {
				count(1)
				a = be.AppendUint32(a, 7)
			}
			count(0)
			tags()
		}
		if flexible {
			a = be.AppendUint32(a, 0)
		}
		tags()
	}
	if version == 10 {
		a = be.AppendUint32(a, 0)
	}
	tags()
	return a
}

func (b *fakeBroker) offsets(a []byte, version, code int16, q *cursor) []byte {
	be := binary.BigEndian
	q.i32()
	committed := q.take(1)[0] == 1
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
			number := q.i32()
			if version >= 4 {
				q.i32()
			}
			which := q.i64()
			l := b.logs[TopicPartition{name, number}]
			if l == nil {
				l, code = &fakeLog{}, 3
			}
			offset := l.start
			switch {
			case which == -1:
				if offset = l.end; committed {
					offset = l.stable
				}
			case which >= 0:
				offset = l.since(which)
			}
			a = be.AppendUint32(a, uint32(number))
			a = be.AppendUint16(a, uint16(code))
			a = be.AppendUint64(a, 1<<64-1)
			a = be.AppendUint64(a, uint64(offset))
			if version >= 4 {
				a = be.AppendUint32(a, uint32(l.epoch))
			}
		}
	}
	return a
}
