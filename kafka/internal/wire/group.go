package wire

import (
	"context"
	"encoding/binary"
)

// The requests of groups.
const (
	keyOffsetCommit = 8
	keyListGroups   = 16
)

// OffsetCommit writes offsets of a group that has no members, at its coordinator;
// those of one topic stand together. A group with members answers UnknownMember or
// IllegalGeneration. What the broker refuses of some partitions is a RefusedError.
func (c *Conn) OffsetCommit(ctx context.Context, group string, offsets []GroupOffset) error {
	version, err := c.version(keyOffsetCommit, 2, 5, "OffsetCommit")
	if err != nil {
		return err
	}
	be := binary.BigEndian
	b := appendText(c.begin(keyOffsetCommit, version, false), group)
	b = be.AppendUint32(b, 1<<32-1) // no generation
	b = appendText(b, "")           // no member
	if version < 5 {
		b = be.AppendUint64(b, 1<<64-1) // kept for as long as the broker keeps them
	}
	partitions := make([]TopicPartition, len(offsets))
	for i, o := range offsets {
		partitions[i] = o.TopicPartition
	}
	b = appendTopics(b, partitions, func(b []byte, i int) []byte {
		return appendText(be.AppendUint64(b, uint64(offsets[i].Offset)), offsets[i].Metadata)
	})
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return err
	}
	r := &reader{b: answer}
	if version >= 3 {
		r.i32() // throttle
	}
	return c.partitionFault(r, "OffsetCommit")
}

// ListGroups names the groups that this broker coordinates, and that this client may
// see.
func (c *Conn) ListGroups(ctx context.Context) ([]string, error) {
	version, err := c.version(keyListGroups, 0, 2, "ListGroups")
	if err != nil {
		return nil, err
	}
	answer, err := c.call(ctx, c.begin(keyListGroups, version, false), smallAnswer)
	if err != nil {
		return nil, err
	}
	r := &reader{b: answer}
	if version >= 1 {
		r.i32() // throttle
	}
	fault := code(r.i16())
	var out []string
	for n := r.count(4); n > 0; n-- {
		out = append(out, r.text())
		r.text() // kind
	}
	switch {
	case r.bad:
		return nil, c.cut("ListGroups")
	case fault != nil:
		return nil, fault
	}
	return out, nil
}
