package kafka

import (
	"fmt"
	"time"
	"unsafe"
)

// Record is one record of a topic.
//
// Its bytes are read-only: they are the ones that came from the broker, shared with
// other records. They stay valid as long as they are referenced, but a record that
// is kept keeps its whole fetch buffer (a mebibyte or so) in memory: state should
// hold a copy (bytes.Clone, strings.Clone). Keys of state are copied by the engine.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// Key and Value are nil where Kafka has null (a null value is a tombstone), and
	// empty, not nil, where it has "".
	Key, Value []byte
	// Headers are in the order of the producer; nil if there are none.
	Headers []Header
	// Time is the producer's or, if the topic says so, the broker's, in UTC and
	// milliseconds; zero if the record has none.
	Time time.Time
}

// Header is one header of a record. A null Value is nil.
type Header struct {
	Key   string
	Value []byte
}

// Text is the value as a string, without a copy: it shares the record's bytes.
// Tombstones and empty values are both "".
func (r Record) Text() string { return view(r.Value) }

// KeyText is the key as a string, without a copy. A null and an empty key are both
// "".
func (r Record) KeyText() string { return view(r.Key) }

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Tombstone says that the value is null: in a compacted topic, that the key was
// deleted.
func (r Record) Tombstone() bool { return r.Value == nil }

// Header gives the value of the last header with that key, which is the one that
// counts.
func (r Record) Header(key string) (value []byte, ok bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}

// String names the record's place and sizes.
func (r Record) String() string {
	return fmt.Sprintf("%s-%d@%d (key %d bytes, value %d bytes)", r.Topic, r.Partition, r.Offset, len(r.Key), len(r.Value))
}
