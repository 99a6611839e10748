package wire

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"
)

// Batch is one record batch for a partition.
type Batch struct {
	TopicPartition
	Bytes []byte
}

// Produce writes one record batch to each of some partitions of which this broker is the
// leader, and waits until they are on all replicas in sync. txn is the transactional id,
// "" for none. faults has an Error or nil for each batch.
func (c *Conn) Produce(ctx context.Context, txn string, batches []Batch, timeout time.Duration) (faults []error, err error) {
	version, err := c.version(keyProduce, 3, 8, "Produce")
	if err != nil {
		return nil, err
	}
	order := make([]int, len(batches)) // those of one topic together
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(batches[i].Topic, batches[j].Topic) })
	partitions := make([]TopicPartition, len(batches))
	index := make(map[TopicPartition]int, len(batches))
	for k, i := range order {
		partitions[k] = batches[i].TopicPartition
		index[partitions[k]] = i
	}
	be := binary.BigEndian
	b := c.begin(keyProduce, version, false)
	if txn == "" {
		b = be.AppendUint16(b, 1<<16-1)
	} else {
		b = appendText(b, txn)
	}
	b = be.AppendUint16(b, 1<<16-1) // all in sync
	b = be.AppendUint32(b, uint32(timeout/time.Millisecond))
	b = appendTopics(b, partitions, func(b []byte, k int) []byte {
		data := batches[order[k]].Bytes
		return append(be.AppendUint32(b, uint32(len(data))), data...)
	})
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return nil, err
	}
	r := &reader{b: answer}
	faults = make([]error, len(batches))
	for n := r.count(6); n > 0; n-- {
		topic := r.text()
		for k := r.count(22); k > 0; k-- {
			number, e := r.i32(), r.i16()
			r.i64() // offset
			r.i64() // time
			if version >= 5 {
				r.i64() // log start
			}
			if version >= 8 {
				for j := r.count(6); j > 0; j-- {
					r.i32()
					r.text()
				}
				r.text()
			}
			at := TopicPartition{topic, number}
			if i, ok := index[at]; ok {
				faults[i] = code(e)
				delete(index, at)
			}
		}
	}
	if r.bad || len(index) > 0 {
		return nil, c.cut("Produce")
	}
	c.throttled(r)
	return faults, nil
}
