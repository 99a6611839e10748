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
	Err    error // an Error, or nil
}

// ListOffsets asks this broker, the leader of the partitions, for their earliest
// or latest offsets, or for that of a time; partitions of one topic stand together. With committed the
// latest is the last stable one.
func (c *Conn) ListOffsets(ctx context.Context, which int64, committed bool, partitions []TopicPartition) ([]OffsetAnswer, error) {
	const version = 2
	if _, err := c.version(keyListOffsets, version, version, "ListOffsets"); err != nil {
		return nil, err
	}
	b := c.begin(keyListOffsets, version, false)
	b = binary.BigEndian.AppendUint32(b, 1<<32-1) // no replica
	b = append(b, isolation(committed))
	runs := 0 // of one topic
	for i := range partitions {
		if i == 0 || partitions[i].Topic != partitions[i-1].Topic {
			runs++
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(runs))
	for i := 0; i < len(partitions); {
		end := i + 1
		for end < len(partitions) && partitions[end].Topic == partitions[i].Topic {
			end++
		}
		b = appendText(b, partitions[i].Topic)
		b = binary.BigEndian.AppendUint32(b, uint32(end-i))
		for ; i < end; i++ {
			b = binary.BigEndian.AppendUint32(b, uint32(partitions[i].Partition))
			b = binary.BigEndian.AppendUint64(b, uint64(which))
		}
	}
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
			a := OffsetAnswer{TopicPartition: TopicPartition{topic, r.i32()}, Err: code(r.i16())}
			r.i64() // time
			a.Offset = r.i64()
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
