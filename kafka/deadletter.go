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
	HeaderPartition = "statemill.partition"  // its partition there
	HeaderOffset    = "statemill.offset"     // and its offset in that
	HeaderTimestamp = "statemill.timestamp"  // the record's own time, RFC 3339 in UTC
	HeaderBatchTime = "statemill.batch-time" // of the batch that could not process it, RFC 3339 in UTC
	HeaderOperator  = "statemill.operator"   // whose function failed
	HeaderKey       = "statemill.key"        // of the state, as text; only of a stateful operator
	HeaderError     = "statemill.error"      // what it said
)

// longestError is how much of an error's text a dead letter takes along, and of a
// key's; shortestError is how much at least, where the record leaves no more room below
// what brokers take by default (1 MiB with what a batch adds).
const (
	longestError  = 4 << 10
	shortestError = 256
	longestLetter = 1<<20 - 1<<10
)

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

// DeadLetterMessage is the message of a dead letter: key, value and headers of the record,
// and the headers that say where it is from and what was wrong. Its time is that of the
// batch: brokers refuse times that lie too far ahead or back, which may be what is wrong
// with the record. A letter without a record has neither key nor value. It is a function
// for [To], and for Producer.Write in a dstream.ForeachDeadLetter.
//
// The headers add some hundred bytes, and the error's text up to 4 KiB: it is cut shorter,
// to 256 bytes, where the record leaves less of 1 MiB. A topic for letters should take a
// kilobyte more than the record's own (max.message.bytes).
func DeadLetterMessage(l dstream.Letter[Record]) (Message, error) {
	r, known := l.Record.Get()
	m := Message{Key: r.Key, Value: r.Value, Headers: make([]Header, 0, len(r.Headers)+8)}
	if !sabotage.On("dead-letter-time-of-run") {
		m.Time = l.Batch.Time
		if m.Time.UnixMilli() < 0 { // a clock of a test
			m.Time = time.UnixMilli(0)
		}
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
	if known && !r.Time.IsZero() {
		add(HeaderTimestamp, r.Time.UTC().Format(time.RFC3339Nano))
	}
	add(HeaderBatchTime, l.Batch.Time.UTC().Format(time.RFC3339Nano))
	add(HeaderOperator, l.Operator)
	if l.Key != nil {
		add(HeaderKey, headerText(fmt.Sprint(l.Key), longestError))
	}
	add(HeaderError, headerText(l.Reason(), min(max(longestLetter-m.takes(), shortestError), longestError)))
	return m, nil
}

// headerText bounds a text, and makes it one.
func headerText(s string, longest int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + " …"
	}
	return s
}
