package wire

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strconv"
)

// Metadata is who leads what.
type Metadata struct {
	Cluster string           // its id, "" if it tells none
	Brokers map[int32]string // node to "host:port"
	Topics  []Topic
}

// Topic is one topic of a Metadata, or why there is none.
type Topic struct {
	Name string
	ID   string // hexadecimal; "" from brokers before Kafka 2.8
	Err  error  // an Error, or nil
	// Internal: it is one of the broker's own.
	Internal bool
	// Partitions are in no order.
	Partitions []Partition
}

// Partition is one partition of a topic.
type Partition struct {
	Number int32
	Leader int32 // node; -1 when there is none
	Err    error // an Error, or nil
}

// The forms of the request that are spoken: the oldest one, and those that tell topic ids,
// of which the first asks for rights on the cluster, too.
const (
	metadataPlain  = 5
	metadataIDs    = 10
	metadataLatest = 12
)

// Metadata asks for topics, nil means all. None is created.
func (c *Conn) Metadata(ctx context.Context, topics []string) (*Metadata, error) {
	version, err := c.version(keyMetadata, metadataPlain, metadataLatest, "Metadata")
	if err != nil {
		return nil, err
	}
	if version < metadataIDs {
		version = metadataPlain
	}
	flexible, rights := version >= metadataIDs, version == metadataIDs
	b := c.begin(keyMetadata, version, flexible)
	switch {
	case flexible && topics == nil:
		b = append(b, 0) // the rest is as below
	case flexible:
		b = binary.AppendUvarint(b, uint64(len(topics)+1))
		for _, t := range topics {
			b = append(b, make([]byte, 16)...) // no id: by name
			b = binary.AppendUvarint(b, uint64(len(t)+1))
			b = append(b, t...)
			b = append(b, 0)
		}
	case topics == nil:
		b = append(b, 0xff, 0xff, 0xff, 0xff, 0)
	default:
		b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
		for _, t := range topics {
			b = appendText(b, t)
		}
		b = append(b, 0)
	}
	if flexible {
		b = append(b, make([]byte, 3)...) // create none, tell no rights, no tags
	}
	if rights {
		b = append(b, 0)
	}
	answer, err := c.call(ctx, b, smallAnswer)
	if err != nil {
		return nil, err
	}
	r := &reader{b: answer}
	m := &Metadata{Brokers: map[int32]string{}}
	if flexible {
		m.flexible(r, rights)
	} else {
		m.plain(r)
	}
	if r.bad {
		return nil, c.cut("Metadata")
	}
	return m, nil
}

func (m *Metadata) plain(r *reader) {
	r.i32() // throttle
	for n := r.count(12); n > 0; n-- {
		node, host, port := r.i32(), r.text(), r.i32()
		r.text() // rack
		m.Brokers[node] = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	m.Cluster = r.text()
	r.i32() // controller
	for n := r.count(9); n > 0; n-- {
		t := Topic{Err: code(r.i16()), Name: r.text(), Internal: r.i8() != 0}
		for k := r.count(22); k > 0; k-- {
			t.Partitions = append(t.Partitions, Partition{Err: code(r.i16()), Number: r.i32(), Leader: r.i32()})
			for range 3 { // replicas, in sync, offline
				r.take(4 * r.count(4))
			}
		}
		m.Topics = append(m.Topics, t)
	}
}

func (m *Metadata) flexible(r *reader, rights bool) {
	r.tags() // of the header
	r.i32()  // throttle
	for n := r.compactCount(11); n > 0; n-- {
		node, host, port := r.i32(), r.compactText(), r.i32()
		r.compactText() // rack
		r.tags()
		m.Brokers[node] = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	m.Cluster = r.compactText()
	r.i32() // controller
	for n := r.compactCount(26); n > 0; n-- {
		t := Topic{Err: code(r.i16()), Name: r.compactText()}
		if id := r.take(16); id != nil && [16]byte(id) != [16]byte{} {
			t.ID = hex.EncodeToString(id)
		}
		t.Internal = r.i8() != 0
		for k := r.compactCount(18); k > 0; k-- {
			t.Partitions = append(t.Partitions, Partition{Err: code(r.i16()), Number: r.i32(), Leader: r.i32()})
			r.i32()       // leader epoch
			for range 3 { // replicas, in sync, offline
				r.take(4 * r.compactCount(4))
			}
			r.tags()
		}
		r.i32() // rights
		r.tags()
		m.Topics = append(m.Topics, t)
	}
	if rights {
		r.i32()
	}
	r.tags()
}

// code makes an error of a code; 0 is none.
func code(c int16) error {
	if c == 0 {
		return nil
	}
	return Error(c)
}
