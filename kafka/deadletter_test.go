package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batch"
)

func letterOf(r Record, operator string, err error) dstream.Letter[Record] {
	return dstream.Letter[Record]{Record: dstream.Some(r), Batch: dstream.Batch{Epoch: 2, Time: time.Unix(20, 0)},
		Source: "in", Partition: "in-3", Offset: r.Offset, Operator: operator, Err: err}
}

// The message is the record as it was, with its origin and the error behind its own
// headers, and the time of the batch: a broker would refuse a record's time that lies days
// ahead, for ever. Equal letters give equal rows.
func TestDeadLetterMessage(t *testing.T) {
	r := Record{Topic: "in", Partition: 3, Offset: 42, Key: []byte("k"), Value: nil, Headers: []Header{{"own", []byte("x")}}, Time: time.UnixMilli(5).UTC()}
	l := letterOf(r, "parse", errors.New("no number"))
	m, err := DeadLetterMessage(l)
	require.NoError(t, err)
	require.Equal(t, Message{Key: []byte("k"), Time: time.Unix(20, 0), Headers: []Header{
		{"own", []byte("x")}, {HeaderTopic, []byte("in")}, {HeaderPartition, []byte("3")}, {HeaderOffset, []byte("42")},
		{HeaderTimestamp, []byte("1970-01-01T00:00:00.005Z")}, {HeaderBatchTime, []byte("1970-01-01T00:00:20Z")}, {HeaderOperator, []byte("parse")}, {HeaderError, []byte("no number")},
	}}, m)
	door := DeadLetters(NewSink("s", Brokers("x:1")), "dead")
	require.Equal(t, "dead", door.Target)
	one, err := door.Encode(nil, l)
	require.NoError(t, err)
	two, err := door.Encode(nil, letterOf(r, "parse", errors.New("no number")))
	require.NoError(t, err)
	require.Equal(t, one, two)
}

// No record gets the time of the run, whatever its own, and texts of any length and bytes
// are taken.
func TestDeadLetterOfAnyRecord(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(-9, 0), time.Unix(1<<40, 0)} {
		m, err := DeadLetterMessage(letterOf(Record{Time: at}, "", errors.New("\xff"+strings.Repeat("é", longestError))))
		require.NoError(t, err)
		require.Equal(t, time.Unix(20, 0), m.Time)
		_, err = appendMessage(nil, m)
		require.NoError(t, err)
		text := m.Headers[len(m.Headers)-1].Value
		require.True(t, utf8.Valid(text))
		require.LessOrEqual(t, len(text), longestError+8)
		require.True(t, strings.HasSuffix(string(text), "é …"))
	}
	early := letterOf(Record{}, "", nil)
	early.Batch.Time = time.Unix(-9, 0)
	m, err := DeadLetterMessage(early)
	require.NoError(t, err)
	require.Equal(t, int64(0), m.Time.UnixMilli())
	require.False(t, m.Time.IsZero())
}

// The error's text makes room for a large record: what a broker takes by default is not
// exceeded by what a letter adds.
func TestLargeDeadLetter(t *testing.T) {
	const limit = 1048588 // max.message.bytes by default
	for _, size := range []int{0, 1<<20 - 6<<10, 1<<20 - 3<<10, 1<<20 - 1<<10, 1 << 20} {
		m, err := DeadLetterMessage(letterOf(Record{Topic: "in", Value: make([]byte, size)}, "parse", errors.New(strings.Repeat("x", 10<<10))))
		require.NoError(t, err)
		var b batch.Builder
		b.Add(0, m.Key, m.Value, keyValues(m.Headers))
		text := len(m.Headers[len(m.Headers)-1].Value)
		require.GreaterOrEqual(t, text, shortestError)
		if size == 0 {
			require.Greater(t, text, longestError)
		}
		if size <= 1<<20-1<<10 {
			require.LessOrEqual(t, b.Size(), limit, "a record of %d bytes", size)
		}
	}
}

// A letter without a record says what is known: the place, or the key of a call that
// was for no record.
func TestDeadLetterWithoutRecord(t *testing.T) {
	batch := dstream.Batch{Epoch: 2, Time: time.Unix(20, 0).UTC()}
	m, err := DeadLetterMessage(dstream.Letter[Record]{Batch: batch, Source: "in", Partition: "a-b-12", Offset: 7, Operator: "sum", Err: errors.New("x")})
	require.NoError(t, err)
	require.Equal(t, Message{Time: batch.Time, Headers: []Header{
		{HeaderTopic, []byte("a-b")}, {HeaderPartition, []byte("12")}, {HeaderOffset, []byte("7")},
		{HeaderBatchTime, []byte("1970-01-01T00:00:20Z")}, {HeaderOperator, []byte("sum")}, {HeaderError, []byte("x")},
	}}, m)
	m, err = DeadLetterMessage(dstream.Letter[Record]{Batch: batch, Operator: "sum", Key: 5, Err: errors.New("x")})
	require.NoError(t, err)
	require.Equal(t, []Header{{HeaderBatchTime, []byte("1970-01-01T00:00:20Z")}, {HeaderOperator, []byte("sum")},
		{HeaderKey, []byte("5")}, {HeaderError, []byte("x")}}, m.Headers)
}
