package kafka

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// The headers of a dead letter, behind those that the record had. Numbers are in
// decimal digits. Of a letter without a record there are those that are known.
const (
	HeaderTopic     = "statemill.topic"      // where the record is from
	HeaderPartition = "statemill.partition"  //
	HeaderOffset    = "statemill.offset"     //
	HeaderBatchTime = "statemill.batch-time" // of the batch that could not process it, RFC 3339 in UTC
	HeaderOperator  = "statemill.operator"   // whose function failed
	HeaderKey       = "statemill.key"        // of the state, as text; only of a stateful operator
	HeaderError     = "statemill.error"      // what it said
)

// longestError is how much of an error's text a dead letter takes along, and of a
// key's.
const longestError = 4 << 10

// DeadLetters is a door of an exactly-once sink to a topic of dead letters:
//
//	lines := kafka.DirectStream(ssc, "lines", …)
//	dstream.DeadLetters(lines, "dead", kafka.DeadLetters(out, "lines.dead"))
//
// Its messages are those of [DeadLetterMessage]. They become visible with the commit of
// the epoch that could not process them, and if they cannot be written the epoch is not
// committed.
func DeadLetters(s *Sink, topic string) sink.Sink[dstream.Letter[Record]] {
	return To(s, topic, DeadLetterMessage)
}

// DeadLetterMessage is the message of a dead letter: key, value, headers and time of the
// record, and the headers that say where it is from and what was wrong. A letter without
// a record has neither key nor value, and the time of its batch. It is a function for
// [To], and for Producer.Write in a dstream.ForeachDeadLetter.
func DeadLetterMessage(l dstream.Letter[Record]) (Message, error) {
	r, known := l.Record.Get()
	if !known {
		r.Time = l.Batch.Time
	}
	m := Message{Key: r.Key, Value: r.Value, Headers: make([]Header, 0, len(r.Headers)+7)}
	if r.Time.UnixMilli() >= 0 { // a record may have none that can be written
		m.Time = r.Time
	} else if !sabotage.On("dead-letter-time-of-run") {
		m.Time = time.UnixMilli(0)
	}
	m.Headers = append(m.Headers, r.Headers...)
	add := func(key, value string) { m.Headers = append(m.Headers, Header{key, []byte(value)}) }
	place := func(topic, partition string, offset int64) {
		add(HeaderTopic, topic)
		add(HeaderPartition, partition)
		add(HeaderOffset, strconv.FormatInt(offset, 10))
	}
	if known {
		place(r.Topic, strconv.FormatInt(int64(r.Partition), 10), r.Offset)
	} else if i := strings.LastIndexByte(l.Partition, '-'); i > 0 {
		place(l.Partition[:i], l.Partition[i+1:], l.Offset)
	}
	add(HeaderBatchTime, l.Batch.Time.UTC().Format(time.RFC3339Nano))
	add(HeaderOperator, l.Operator)
	if l.Key != nil {
		add(HeaderKey, headerText(fmt.Sprint(l.Key)))
	}
	add(HeaderError, headerText(l.Reason()))
	return m, nil
}

// headerText bounds a text, and makes it one.
func headerText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > longestError {
		s = strings.ToValidUTF8(s[:longestError], "") + " …"
	}
	return s
}
