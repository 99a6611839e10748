package kafka

import (
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// The headers of a dead letter, behind those that the record had. Numbers are in
// decimal digits.
const (
	HeaderTopic     = "statemill.topic"     // where the record is from
	HeaderPartition = "statemill.partition" //
	HeaderOffset    = "statemill.offset"    //
	HeaderOperator  = "statemill.operator"  // whose function refused it
	HeaderError     = "statemill.error"     // what it said
)

// longestError is how much of an error's text a dead letter takes along.
const longestError = 4 << 10

// DeadLetter is a record that could not be processed, as it came, and why.
type DeadLetter struct {
	Record
	// Operator is the name of the operator whose function refused it; "" if it is
	// not known.
	Operator string
	// Reason is what the function said. An epoch that is computed again must give
	// the same bytes, so it must not depend on the run: no addresses, stacks or times.
	Reason string
}

// NewDeadLetter makes the dead letter of a record; a nil error leaves the reason
// empty.
func NewDeadLetter(r Record, operator string, err error) DeadLetter {
	d := DeadLetter{Record: r, Operator: operator}
	if err != nil {
		d.Reason = err.Error()
	}
	return d
}

// Message is the message of a dead letter: key, value, headers and time of the record,
// and the headers that say where it is from and what was wrong.
func (d DeadLetter) Message() (Message, error) {
	reason := strings.ToValidUTF8(d.Reason, "\uFFFD")
	if len(reason) > longestError {
		reason = strings.ToValidUTF8(reason[:longestError], "") + " …"
	}
	m := Message{Key: d.Key, Value: d.Value, Headers: make([]Header, 0, len(d.Headers)+5)}
	if d.Time.UnixMilli() >= 0 { // a record may have none that can be written
		m.Time = d.Time
	} else if !sabotage.On("dead-letter-time-of-run") {
		m.Time = time.UnixMilli(0)
	}
	m.Headers = append(m.Headers, d.Headers...)
	m.Headers = append(m.Headers,
		Header{HeaderTopic, []byte(d.Topic)},
		Header{HeaderPartition, strconv.AppendInt(nil, int64(d.Partition), 10)},
		Header{HeaderOffset, strconv.AppendInt(nil, d.Offset, 10)},
		Header{HeaderOperator, []byte(d.Operator)},
		Header{HeaderError, []byte(reason)},
	)
	return m, nil
}

// DeadLetters is a door of an exactly-once sink to the topic of dead letters: they
// become visible with the commit of the epoch that could not process them, and if
// they cannot be written the epoch is not committed.
func DeadLetters(s *Sink, topic string) sink.Sink[DeadLetter] {
	return To(s, topic, DeadLetter.Message)
}
