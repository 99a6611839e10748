package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
)

func letterOf(r Record, operator string, err error) dstream.Letter[Record] {
	return dstream.Letter[Record]{Record: dstream.Some(r), Batch: dstream.Batch{Epoch: 2, Time: time.Unix(20, 0)},
		Source: "in", Partition: "in-3", Offset: r.Offset, Operator: operator, Err: err}
}

// The message is the record as it was, with its origin and the error behind its own
// headers; equal letters give equal rows.
func TestDeadLetterMessage(t *testing.T) {
	r := Record{Topic: "in", Partition: 3, Offset: 42, Key: []byte("k"), Value: nil, Headers: []Header{{"own", []byte("x")}}, Time: time.UnixMilli(5).UTC()}
	l := letterOf(r, "parse", errors.New("no number"))
	m, err := DeadLetterMessage(l)
	require.NoError(t, err)
	require.Equal(t, Message{Key: []byte("k"), Time: time.UnixMilli(5).UTC(), Headers: []Header{
		{"own", []byte("x")}, {HeaderTopic, []byte("in")}, {HeaderPartition, []byte("3")}, {HeaderOffset, []byte("42")},
		{HeaderBatchTime, []byte("1970-01-01T00:00:20Z")}, {HeaderOperator, []byte("parse")}, {HeaderError, []byte("no number")},
	}}, m)
	door := DeadLetters(NewSink("s", Brokers("x:1")), "dead")
	require.Equal(t, "dead", door.Target)
	one, err := door.Encode(nil, l)
	require.NoError(t, err)
	two, err := door.Encode(nil, letterOf(r, "parse", errors.New("no number")))
	require.NoError(t, err)
	require.Equal(t, one, two)
}

// A record without a time does not get that of the run, and texts of any length and
// bytes are taken.
func TestDeadLetterOfAnyRecord(t *testing.T) {
	m, err := DeadLetterMessage(letterOf(Record{}, "", nil))
	require.NoError(t, err)
	require.Equal(t, int64(0), m.Time.UnixMilli())
	require.False(t, m.Time.IsZero())
	m, err = DeadLetterMessage(letterOf(Record{Time: time.Unix(-9, 0)}, "", errors.New("\xff"+strings.Repeat("é", longestError))))
	require.NoError(t, err)
	_, err = appendMessage(nil, m)
	require.NoError(t, err)
	text := m.Headers[5].Value
	require.True(t, utf8.Valid(text))
	require.LessOrEqual(t, len(text), longestError+8)
	require.True(t, strings.HasSuffix(string(text), "é …"))
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
