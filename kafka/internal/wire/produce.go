package wire

import (
	"context"
	"encoding/binary"
	"time"
)

// Produce writes one record batch to a partition of which this broker is the
// leader, and waits until it is on all replicas in sync. txn is the transactional
// id, "" for none. The error may be an Error.
func (c *Conn) Produce(ctx context.Context, txn string, p TopicPartition, batch []byte, timeout time.Duration) error {
	version, err := c.version(keyProduce, 3, 8, "Produce")
	if err != nil {
		return err
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
	b = be.AppendUint32(b, 1)
	b = appendText(b, p.Topic)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, uint32(p.Partition))
	b = be.AppendUint32(b, uint32(len(batch)))
	answer, err := c.call(ctx, append(b, batch...), smallAnswer)
	if err != nil {
		return err
	}
	r := &reader{b: answer}
	var fault error
	found := false
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
			if topic == p.Topic && number == p.Partition {
				found, fault = true, code(e)
			}
		}
	}
	if r.bad || !found {
		return c.cut("Produce")
	}
	return fault
}
