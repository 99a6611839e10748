package wire

import (
	"context"
	"encoding/binary"
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Which offset to ask for; a number that is not negative is a time in milliseconds
// since 1970 and asks for the first record of that time or later, -1 if there is none.
const (
	Latest   int64 = -1 // the end: the high watermark, or the last stable offset
	Earliest int64 = -2 // the first that is there
)

// OffsetAnswer is one partition's offset, or an error of the broker.
type OffsetAnswer struct {
	TopicPartition
	Offset int64
	// Epoch is the leader's when it answered; -1 from brokers that tell none.
	Epoch int32
	Err   error // an Error, or nil
}

// ListOffsets asks this broker, the leader of the partitions, for their earliest
// or latest offsets, or for that of a time; partitions of one topic stand together.
// With committed the latest is the last stable one.
func (c *Conn) ListOffsets(ctx context.Context, which int64, committed bool, partitions []TopicPartition) ([]OffsetAnswer, error) {
	version, err := c.version(keyListOffsets, 2, 4, "ListOffsets")
	if err != nil {
		return nil, err
	}
	b := c.begin(keyListOffsets, version, false)
	b = binary.BigEndian.AppendUint32(b, 1<<32-1) // no replica
	b = append(b, isolation(committed))
	b = appendTopics(b, partitions, func(b []byte, _ int) []byte {
		if version >= 4 {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1) // any leader epoch
		}
		return binary.BigEndian.AppendUint64(b, uint64(which))
	})
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return nil, err
	}
	r := &reader{b: answer}
	r.i32() // throttle
	var out []OffsetAnswer
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(22); k > 0; k-- {
			a := OffsetAnswer{TopicPartition: TopicPartition{topic, r.i32()}, Err: code(r.i16()), Epoch: -1}
			r.i64() // time
			a.Offset = r.i64()
			if version >= 4 {
				a.Epoch = r.i32()
			}
			out = append(out, a)
		}
	}
	if r.bad {
		return nil, c.cut("ListOffsets")
	}
	return out, nil
}

func isolation(committed bool) byte {
	if committed {
		return 1
	}
	return 0
}
