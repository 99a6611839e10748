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
	Batches              []byte // nobody else uses the buffer
}

// Fetch asks for batches. The error is not the partition's own, which is in the
// answer.
func (c *Conn) Fetch(ctx context.Context, q FetchRequest) (FetchAnswer, error) {
	version, err := c.version(keyFetch, 4, 11, "Fetch")
	if err != nil {
		return FetchAnswer{}, err
	}
	c.expect = min(q.MaxBytes, mostAtOnce) + atOnce
	answer, err := c.call(ctx, c.fetchRequest(version, q), q.MaxAnswer)
	if err != nil {
		return FetchAnswer{}, err
	}
	a := FetchAnswer{Missing: true, LogStart: -1}
	r := &reader{b: answer}
	a.Throttle = time.Duration(max(r.i32(), 0)) * time.Millisecond
	if version >= 7 {
		if e := r.i16(); e != 0 {
			return a, fmt.Errorf("broker %s: fetch: %w", c.addr, Error(e))
		}
		r.i32() // session
	}
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(22); k > 0; k-- {
			a.partition(r, version, topic, q.TopicPartition)
		}
	}
	if r.bad {
		return a, c.cut("Fetch")
	}
	return a, nil
}

func (c *Conn) fetchRequest(version int16, q FetchRequest) []byte {
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
	b = be.AppendUint32(b, 1)
	b = appendText(b, q.Topic)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, uint32(q.Partition))
	if version >= 9 {
		b = be.AppendUint32(b, 1<<32-1) // any leader epoch
	}
	b = be.AppendUint64(b, uint64(q.Offset))
	if version >= 5 {
		b = be.AppendUint64(b, 1<<64-1) // log start: for followers
	}
	b = be.AppendUint32(b, uint32(q.MaxBytes))
	if version >= 7 {
		b = be.AppendUint32(b, 0) // nothing forgotten
	}
	if version >= 11 {
		b = appendText(b, "") // rack
	}
	return b
}

func (a *FetchAnswer) partition(r *reader, version int16, topic string, want TopicPartition) {
	number, failed := r.i32(), code(r.i16())
	hw, lso, start := r.i64(), r.i64(), int64(-1)
	if version >= 5 {
		start = r.i64()
	}
	var aborted []batch.Aborted
	for n := r.count(16); n > 0; n-- {
		aborted = append(aborted, batch.Aborted{Producer: r.i64(), First: r.i64()})
	}
	if version >= 11 {
		r.i32() // preferred replica
	}
	var batches []byte
	if size := int(r.i32()); size != -1 {
		batches = r.take(size)
	}
	if r.bad || topic != want.Topic || number != want.Partition {
		return
	}
	a.Missing, a.Err = false, failed
	a.HighWatermark, a.LastStable, a.LogStart = hw, lso, start
	a.Aborted, a.Batches = aborted, batches
}
