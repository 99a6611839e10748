package kafka

import (
	"math"
	"time"

	"github.com/statemill/statemill/kafka/internal/wire"
)

// start is where a first run begins.
type start struct {
	at      int64 // wire.Latest, wire.Earliest, or a time in milliseconds
	given   int   // how often at was set
	offsets map[TopicPartition]int64
}

func startAt(at int64) SourceOption {
	return sourceOption(func(c *config) { c.at, c.given = at, c.given+1 })
}

// FromEarliest starts a first run at the oldest record of each partition. A run
// that has positions goes on from them, whatever the start options say; partitions that
// are new since then are read from their first offset.
func FromEarliest() SourceOption { return startAt(wire.Earliest) }

// FromLatest starts a first run at the end of each partition as it is when the
// first batch is planned. It is the default.
func FromLatest() SourceOption { return startAt(wire.Latest) }

// FromTime starts a first run at the first record of each partition whose time is t or
// later; at the end where there is none. Times from before 1970 are as 1970; one that is
// too far ahead for Kafka's 64 bits of milliseconds is a fault.
func FromTime(t time.Time) SourceOption {
	if s := t.Unix(); s < 0 {
		return startAt(0)
	} else if s >= math.MaxInt64/1000 {
		return sourceOption(func(c *config) {
			c.fault("FromTime: the time, %d seconds after 1970, is beyond what Kafka can ask for: use FromLatest", s)
			c.given++
		})
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++ // Kafka's times are whole ones
	}
	return startAt(ms)
}

// FromOffsets starts a first run at the given offsets. Partitions that are not
// named start as FromEarliest, FromLatest or FromTime says.
func FromOffsets(offsets map[TopicPartition]int64) SourceOption {
	return sourceOption(func(c *config) {
		if c.offsets == nil {
			c.offsets = map[TopicPartition]int64{}
		}
		for p, o := range offsets {
			if o < 0 {
				c.fault("FromOffsets: partition %v: offset %d is negative: use FromEarliest or FromLatest", p, o)
			}
			c.offsets[p] = o
		}
	})
}

func (t *start) check(c *config) {
	if t.given > 1 {
		c.fault("FromEarliest, FromLatest and FromTime are given %d times in all: give one", t.given)
	}
	for p := range t.offsets {
		if !c.covers(p) {
			c.fault("FromOffsets: partition %v is of a topic that is not read", p)
		}
	}
}
