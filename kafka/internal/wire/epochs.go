package wire

import (
	"context"
	"encoding/binary"
)

const keyEpochEnd = 23

// EpochQuestion asks where the log of a leader epoch ends.
type EpochQuestion struct {
	TopicPartition
	Epoch int32
}

// EpochEnd says that what was written under Epoch or before goes up to End: Epoch is
// the greatest that the leader knows and that is not above the one asked for. Both
// are -1 where it knows none that is as late: then it has never led, or followed,
// that log.
type EpochEnd struct {
	TopicPartition
	Epoch int32
	End   int64
	Err   error // an Error, or nil
}

// TellsEpochs says that the broker answers EpochEnds, which clients may ask since
// Kafka 2.3.
func (c *Conn) TellsEpochs() bool {
	v, ok := c.versions[keyEpochEnd]
	return ok && v[0] <= 3 && v[1] >= 3
}

// EpochEnds asks this broker, the leader of the partitions, for the ends of epochs
// (OffsetForLeaderEpoch); partitions of one topic stand together.
func (c *Conn) EpochEnds(ctx context.Context, questions []EpochQuestion) ([]EpochEnd, error) {
	version, err := c.version(keyEpochEnd, 3, 3, "OffsetForLeaderEpoch")
	if err != nil {
		return nil, err
	}
	be := binary.BigEndian
	b := c.begin(keyEpochEnd, version, false)
	b = be.AppendUint32(b, 1<<32-1) // no replica
	partitions := make([]TopicPartition, len(questions))
	for i, q := range questions {
		partitions[i] = q.TopicPartition
	}
	b = appendTopics(b, partitions, func(b []byte, i int) []byte {
		b = be.AppendUint32(b, 1<<32-1) // any current epoch
		return be.AppendUint32(b, uint32(questions[i].Epoch))
	})
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return nil, err
	}
	out, ok := epochEnds(&reader{b: answer})
	if !ok {
		return nil, c.cut("OffsetForLeaderEpoch")
	}
	return out, nil
}

func epochEnds(r *reader) (out []EpochEnd, ok bool) {
	r.i32() // throttle
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(18); k > 0; k-- {
			e := EpochEnd{Err: code(r.i16())}
			e.TopicPartition = TopicPartition{topic, r.i32()}
			e.Epoch, e.End = r.i32(), r.i64()
			out = append(out, e)
		}
	}
	return out, !r.bad
}
