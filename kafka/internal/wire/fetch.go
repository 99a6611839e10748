package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/statemill/statemill/kafka/internal/batch"
)

// FetchRequest asks for one partition's batches.
type FetchRequest struct {
	TopicPartition
	Offset    int64
	Committed bool
	// MaxBytes is where the broker stops; the first batch comes whole.
	MaxBytes int
	// Wait is how long the broker may wait for bytes, at most half of the
	// connection's timeout.
	Wait time.Duration
	// MaxAnswer bounds the answer, which one large batch may make larger than
	// MaxBytes.
	MaxAnswer int
}

// FetchAnswer is what came.
type FetchAnswer struct {
	Throttle time.Duration // the broker wants to be left alone for so long
	Missing  bool          // the partition is not in the answer, as when throttled

	Err                  error // an Error, or nil
	HighWatermark        int64
	LastStable, LogStart int64 // LogStart is -1 from old brokers
	Aborted              []batch.Aborted
	Batches              []byte // nobody else uses the buffer, but the parts of FetchAll
}

// FetchPart is one of several partitions of a request.
type FetchPart struct {
	TopicPartition
	Offset   int64
	MaxBytes int // of this one
}

// Fetch asks for batches. The error is not the partition's own, which is in the
// answer.
func (c *Conn) Fetch(ctx context.Context, q FetchRequest) (FetchAnswer, error) {
	all, err := c.FetchAll(ctx, q, []FetchPart{{q.TopicPartition, q.Offset, q.MaxBytes}})
	if len(all) == 0 {
		return FetchAnswer{}, err
	}
	return all[0], err
}

// FetchAll asks for batches of several partitions, in the place of the request's own, at
// most MaxBytes of all. Brokers serve them in the order of the request (those of a topic
// together), and the first that has bytes gets a batch at least. There is an answer for
// each part, and their Batches share one buffer.
func (c *Conn) FetchAll(ctx context.Context, q FetchRequest, parts []FetchPart) ([]FetchAnswer, error) {
	version, err := c.version(keyFetch, 4, 11, "Fetch")
	if err != nil {
		return nil, err
	}
	c.expect = min(q.MaxBytes, mostAtOnce) + atOnce
	answer, err := c.call(ctx, c.fetchRequest(version, q, parts), q.MaxAnswer)
	if err != nil {
		return nil, err
	}
	r := &reader{b: answer}
	throttle := time.Duration(max(r.i32(), 0)) * time.Millisecond
	all, index := make([]FetchAnswer, len(parts)), make(map[TopicPartition]int, len(parts))
	for i, p := range parts {
		all[i] = FetchAnswer{Throttle: throttle, Missing: true, LogStart: -1}
		index[p.TopicPartition] = i
	}
	if version >= 7 {
		if e := r.i16(); e != 0 {
			return all, fmt.Errorf("broker %s: fetch: %w", c.addr, Error(e))
		}
		r.i32() // session
	}
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(22); k > 0; k-- {
			number, a := fetchedPart(r, version)
			if i, wanted := index[TopicPartition{topic, number}]; wanted && !r.bad {
				a.Throttle, a.Missing = throttle, false
				all[i] = a
			}
		}
	}
	if r.bad {
		return all, c.cut("Fetch")
	}
	return all, nil
}

func (c *Conn) fetchRequest(version int16, q FetchRequest, parts []FetchPart) []byte {
	byTopic := map[string][]FetchPart{}
	var topics []string
	for _, p := range parts {
		if byTopic[p.Topic] == nil {
			topics = append(topics, p.Topic)
		}
		byTopic[p.Topic] = append(byTopic[p.Topic], p)
	}
	be := binary.BigEndian
	b := c.begin(keyFetch, version, false)
	b = be.AppendUint32(b, 1<<32-1) // no replica
	b = be.AppendUint32(b, uint32(min(q.Wait, c.timeout/2)/time.Millisecond))
	b = be.AppendUint32(b, 1) // any byte ends the wait
	b = be.AppendUint32(b, uint32(q.MaxBytes))
	b = append(b, isolation(q.Committed))
	if version >= 7 { // no session
		b = be.AppendUint32(b, 0)
		b = be.AppendUint32(b, 1<<32-1)
	}
	b = be.AppendUint32(b, uint32(len(topics)))
	for _, topic := range topics {
		b = appendText(b, topic)
		b = be.AppendUint32(b, uint32(len(byTopic[topic])))
		for _, p := range byTopic[topic] {
			b = be.AppendUint32(b, uint32(p.Partition))
			if version >= 9 {
				b = be.AppendUint32(b, 1<<32-1) // any leader epoch
			}
			b = be.AppendUint64(b, uint64(p.Offset))
			if version >= 5 {
				b = be.AppendUint64(b, 1<<64-1) // log start: for followers
			}
			b = be.AppendUint32(b, uint32(p.MaxBytes))
		}
	}
	if version >= 7 {
		b = be.AppendUint32(b, 0) // nothing forgotten
	}
	if version >= 11 {
		b = appendText(b, "") // rack
	}
	return b
}

// fetchedPart reads what an answer has of one partition.
func fetchedPart(r *reader, version int16) (number int32, a FetchAnswer) {
	number, a.Err = r.i32(), code(r.i16())
	a.HighWatermark, a.LastStable, a.LogStart = r.i64(), r.i64(), -1
	if version >= 5 {
		a.LogStart = r.i64()
	}
	for n := r.count(16); n > 0; n-- {
		a.Aborted = append(a.Aborted, batch.Aborted{Producer: r.i64(), First: r.i64()})
	}
	if version >= 11 {
		r.i32() // preferred replica
	}
	if size := int(r.i32()); size != -1 {
		a.Batches = r.take(size)
	}
	return number, a
}
