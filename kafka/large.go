package kafka

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
)

// takes is how many bytes a message takes in a batch, at most.
func (m *Message) takes() int {
	n := len(m.Key) + len(m.Value) + 64
	if sabotage.On("headers-weigh-nothing") {
		return n
	}
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value) + 10 // two lengths
	}
	return n
}

// origin is where a message is from.
type origin struct {
	part, row int // partition of the output, and row in it; row -1: no output
	key       []byte
	null      bool // the key
	size      int
}

func originOf(part, row int, m *Message) origin {
	return origin{part: part, row: row, key: bytes.Clone(m.Key[:min(len(m.Key), longestRow+1)]), null: m.Key == nil, size: m.takes()}
}

func (o *origin) String() string {
	key := "without a key"
	if !o.null {
		key = "with key " + shown(fmt.Sprintf("%q", o.key))
	}
	if o.row < 0 {
		return fmt.Sprintf("a message of about %d bytes %s", o.size, key)
	}
	return fmt.Sprintf("the message of partition %d, row %d, of about %d bytes, %s", o.part, o.row, o.size, key)
}

// tooLargeFor says what to do about a batch that a topic does not take; nil if err is
// something else.
func tooLargeFor(err error, at wire.TopicPartition, p *produced, batchBytes int) error {
	if !errors.Is(err, wire.MessageTooLarge) && !errors.Is(err, wire.BatchTooLarge) {
		return nil
	}
	if p.b.Len() == 1 {
		return fmt.Errorf("%w: %v is more than topic %q takes: raise the topic's max.message.bytes, or write less", err, &p.first, at.Topic)
	}
	return fmt.Errorf("%w: %d messages, of which the first is %v: lower ProduceBatchBytes (%d) or raise max.message.bytes of topic %q", err, p.b.Len(), &p.first, batchBytes, at.Topic)
}
