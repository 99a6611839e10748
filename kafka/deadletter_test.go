package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The message is the record as it was, with its origin and the error behind its own
// headers; equal letters give equal rows.
func TestDeadLetterMessage(t *testing.T) {
	r := Record{Topic: "in", Partition: 3, Offset: 42, Key: []byte("k"), Value: nil, Headers: []Header{{"own", []byte("x")}}, Time: time.UnixMilli(5).UTC()}
	m, err := NewDeadLetter(r, "parse", errors.New("no number")).Message()
	require.NoError(t, err)
	require.Equal(t, Message{Key: []byte("k"), Time: time.UnixMilli(5).UTC(), Headers: []Header{
		{"own", []byte("x")}, {HeaderTopic, []byte("in")}, {HeaderPartition, []byte("3")}, {HeaderOffset, []byte("42")},
		{HeaderOperator, []byte("parse")}, {HeaderError, []byte("no number")},
	}}, m)
	door := DeadLetters(NewSink("s", Brokers("x:1")), "dead")
	require.Equal(t, "dead", door.Target)
	one, err := door.Encode(nil, NewDeadLetter(r, "parse", errors.New("no number")))
	require.NoError(t, err)
	two, err := door.Encode(nil, NewDeadLetter(r, "parse", errors.New("no number")))
	require.NoError(t, err)
	require.Equal(t, one, two)
}

// A record without a time does not get that of the run, and texts of any length and
// bytes are taken.
func TestDeadLetterOfAnyRecord(t *testing.T) {
	m, err := NewDeadLetter(Record{}, "", nil).Message()
	require.NoError(t, err)
	require.Equal(t, int64(0), m.Time.UnixMilli())
	require.False(t, m.Time.IsZero())
	m, err = NewDeadLetter(Record{Time: time.Unix(-9, 0)}, "", errors.New("\xff"+strings.Repeat("é", longestError))).Message()
	require.NoError(t, err)
	_, err = appendMessage(nil, m)
	require.NoError(t, err)
	text := m.Headers[4].Value
	require.True(t, utf8.Valid(text))
	require.LessOrEqual(t, len(text), longestError+8)
	require.True(t, strings.HasSuffix(string(text), "é …"))
}
