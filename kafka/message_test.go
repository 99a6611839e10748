package kafka

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/statemill/statemill/sink"
	"github.com/stretchr/testify/require"
)

func TestMessageRows(t *testing.T) {
	for _, m := range []Message{
		{}, {Key: []byte{}}, {Value: []byte{}}, {Key: []byte("k"), Value: []byte("v"), Time: time.UnixMilli(1).UTC()},
		{Headers: []Header{{Key: "a"}, {Key: "", Value: []byte{}}, {Key: "a", Value: []byte("b")}}},
	} {
		row, err := appendMessage([]byte("before"), m)
		require.NoError(t, err)
		got, err := messageOf(row[len("before"):])
		require.NoError(t, err)
		require.Equal(t, m, got)
		for i := range len(row) - len("before") {
			cut, err := messageOf(row[len("before") : len("before")+i])
			if err == nil { // only what has no more to read
				require.NotEqual(t, m, cut)
			}
		}
		_, err = messageOf(append(bytes.Clone(row[len("before"):]), 0))
		require.ErrorIs(t, err, errRow)
	}
	_, err := appendMessage(nil, Message{Time: time.UnixMilli(-1)})
	require.ErrorContains(t, err, "1970")
}

// Kafka's times are milliseconds from 0 to the greatest signed number: rows
// carry all of them, and no other.
func TestMessageTimes(t *testing.T) {
	for _, ms := range []int64{0, 1, math.MaxInt64} {
		row, err := appendMessage(nil, Message{Time: time.UnixMilli(ms)})
		require.NoError(t, err)
		m, err := messageOf(row)
		require.NoError(t, err)
		require.Equal(t, ms, m.Time.UnixMilli())
	}
	for _, sec := range []int64{-1, math.MinInt64 / 1000, -1 << 58, math.MaxInt64/1000 + 1, 1 << 58} {
		_, err := appendMessage(nil, Message{Time: time.Unix(sec, 0)})
		require.ErrorContains(t, err, "1970", "%d seconds", sec)
	}
	for _, ms := range []uint64{math.MaxInt64 + 1, math.MaxUint64} {
		_, err := messageOf(binary.AppendUvarint([]byte{hasTime}, ms))
		require.ErrorIs(t, err, errRow)
	}
}

func FuzzMessageRow(f *testing.F) {
	row, err := appendMessage(nil, Message{Key: []byte("k"), Headers: []Header{{Key: "h"}}, Time: time.UnixMilli(5)})
	require.NoError(f, err)
	f.Add(row)
	f.Fuzz(func(t *testing.T, row []byte) {
		m, err := messageOf(row)
		if err != nil {
			return
		}
		again, err := appendMessage(nil, m)
		require.NoError(t, err)
		same, err := messageOf(again)
		require.NoError(t, err)
		require.Equal(t, m, same)
	})
}

// Faults of the options are told together, before anything is sent.
func TestSinkOptions(t *testing.T) {
	s := NewSink("", TransactionTimeout(time.Millisecond), ProduceBatchBytes(1), Compress("rar"), nil)
	s.Topic("")
	err := s.Fence(t.Context(), sink.Fence{Root: "r", Term: 1})
	for _, want := range []string{"no broker", "name", "TransactionTimeout is 1ms", "ProduceBatchBytes is 1,", `"rar"`, "option is nil", `topic ""`} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, NewSink("x", Brokers("localhost")).Fence(t.Context(), sink.Fence{}), "no topic is named")
	require.NoError(t, s.Close())
}

// The number after the greatest is 0, as brokers count.
func TestSequenceWraps(t *testing.T) {
	require.Equal(t, int32(12), nextSequence(2, 10))
	require.Equal(t, int32(0), nextSequence(1<<31-1, 1))
	require.Equal(t, int32(3), nextSequence(1<<31-2, 5))
}
