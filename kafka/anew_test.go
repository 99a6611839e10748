package kafka

import (
	"fmt"
	"testing"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// TestOffsetsAreOfTheFirstTopic: FromOffsets is for a first run, and for the topic that it
// was given for. What has its name later is read from its first offset, however long it is;
// in the same run, after another start, and when it comes back as another one. // report 22
func TestOffsetsAreOfTheFirstTopic(t *testing.T) {
	for _, records := range []int{3, 30} { // fewer than the start, and more
		for _, how := range []string{"same run", "restart", "restart, other partitions", "came back"} {
			t.Run(fmt.Sprintf("%s, %d records", how, records), func(t *testing.T) {
				b := newFake(t)
				b.log("t", 0, many(0, 1, 10, 10)...)
				b.log("t", 1, many(0, 1, 10, 10)...)
				opts := []SourceOption{ContinueOnLoss(), RefreshEvery(0), FromOffsets(map[TopicPartition]int64{{"t", 0}: 8, {"t", 1}: 8})}
				s := open(t, b, nil, opts...)
				last, got := readAll(t, s, source.Limits{})
				require.Len(t, got, 4)
				b.remove("t")
				if how == "came back" {
					readAll(t, s, source.Limits{})
				}
				b.log("t", 0, many(0, 1, records, 10)...)
				b.log("t", 1, many(0, 1, records, 10)...)
				switch how {
				case "restart":
					s = open(t, b, &last, opts...)
				case "restart, other partitions":
					last.Ranges = last.Ranges[1:]
					s = open(t, b, &last, opts...)
				}
				p, got := readAll(t, s, source.Limits{})
				require.Len(t, got, 2*records)
				require.Zero(t, p.Ranges[0].From)
				b.log("t", 2, batchtest.Values(0, "new")) // those that come later, too
				_, got = readAll(t, s, source.Limits{})
				require.Equal(t, []string{"2@0=new"}, got)
			})
		}
	}
}

// TestOffsetsOfWhatIsGone: that FromOffsets names partitions which the topic has no more,
// since it was made again, stops no start: the job has positions of it. // report 22
func TestOffsetsOfWhatIsGone(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b"))
	b.log("t", 1, batchtest.Values(0, "c", "d"))
	opts := []SourceOption{ContinueOnLoss(), RefreshEvery(0), FromOffsets(map[TopicPartition]int64{{"t", 0}: 1, {"t", 1}: 1})}
	last, _ := readAll(t, open(t, b, nil, opts...), source.Limits{})
	b.remove("t")
	b.log("t", 0, batchtest.Values(0, "e"))
	for _, want := range [][]string{{"0@0=e"}, nil} {
		var got []string
		last, got = readAll(t, open(t, b, &last, opts...), source.Limits{})
		require.Equal(t, want, got)
		require.Equal(t, []string{"t-0"}, names(last))
	}
	b.log("t", 1, batchtest.Values(0, "f", "g"))
	s := open(t, b, &last, opts...)
	_, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"1@1=g"}, got, "nobody knows any more that it was made again")
	says(t, s, `topic "t" partition 1`, "was not read before", "offset 1", "FromOffsets")
}

// TestFewerPartitions: a topic that was made again with fewer partitions than are named is
// read as it is, in the run and after each start, until it has them. // report 22
func TestFewerPartitions(t *testing.T) {
	b := newFake(t)
	for n := range int32(4) {
		b.log("t", n, batchtest.Values(0, "a"))
	}
	which := Partitions(TopicPartition{"t", 0}, TopicPartition{"t", 3})
	opts := []SourceOption{which, FromEarliest(), ContinueOnLoss(), RefreshEvery(0)}
	s := fresh(t, b, nil, opts...)
	last, got := readAll(t, s, source.Limits{})
	require.Len(t, got, 2)
	b.remove("t")
	b.log("t", 0, batchtest.Values(0, "b"))
	b.log("t", 1, batchtest.Values(0, "not mine"))
	_, got = readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@0=b"}, got)
	for _, want := range [][]string{{"0@0=b"}, nil} {
		s = fresh(t, b, &last, opts...)
		says(t, s, `topic "t" partition 3 does not exist`)
		last, got = readAll(t, s, source.Limits{})
		require.Equal(t, want, got)
		require.Equal(t, []string{"t-0"}, names(last))
	}
	err := NewSource(Brokers(b.addr()), which, RetryFor(0)).Open(t.Context(), &last)
	require.ErrorContains(t, err, "partition t-3 does not exist", "but by choice")
	err = NewSource(Brokers(b.addr()), which, ContinueOnLoss(), RetryFor(0)).Open(t.Context(), nil)
	require.ErrorContains(t, err, "partition t-3 does not exist", "in a first run it is a mistake")
	b.log("t", 2)
	b.log("t", 3, batchtest.Values(0, "c"))
	_, got = readAll(t, s, source.Limits{})
	require.Equal(t, []string{"3@0=c"}, got)
}
