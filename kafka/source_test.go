package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/sourcetest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a source on the broker and closes it after the test.
func open(t *testing.T, b *fakeBroker, last *source.Plan, opts ...SourceOption) *kafkaSource {
	t.Helper()
	s := made(b, opts...)
	require.NoError(t, s.Open(t.Context(), last))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func made(b *fakeBroker, opts ...SourceOption) *kafkaSource {
	all := append([]SourceOption{Brokers(b.addr()), Topics("t"), FromEarliest(), RetryFor(300 * time.Millisecond)}, opts...)
	switch s := NewSource(all...).(type) {
	case ending:
		return s.kafkaSource
	case *kafkaSource:
		return s
	}
	panic("a new kind")
}

// readAll plans once and reads every range, as "partition@offset=value".
func readAll(t *testing.T, s *kafkaSource, l source.Limits) (source.Plan, []string) {
	t.Helper()
	p, err := s.Plan(t.Context(), l)
	require.NoError(t, err)
	var out []string
	for _, r := range p.Ranges {
		require.NoError(t, s.Read(t.Context(), r, func(offset int64, v Record) error {
			require.Equal(t, offset, v.Offset)
			require.Equal(t, r.Partition, fmt.Sprintf("%s-%d", v.Topic, v.Partition))
			out = append(out, fmt.Sprintf("%d@%d=%s", v.Partition, offset, v.Text()))
			return nil
		}))
	}
	require.NoError(t, s.Committed(t.Context(), p))
	return p, out
}

func TestAcceptance(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old broker %t", old), func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
				b := newFake(t)
				b.old = old
				b.log("t", 0, batchtest.Values(3, "a", "b", "c"), batchtest.Empty(6, 9), batchtest.Values(10, "d"))
				b.log("t", 1)
				b.log("t", 2, batchtest.Values(0, "e"), batchtest.Values(1, "f", "g", "h"), batchtest.Marker(4, 9, true))
				b.log("u", 0, batchtest.Values(1<<40, "i", "j"))
				var more []string
				again := func() source.Source[string] {
					return &texts{made(b, Topics("u"))}
				}
				return sourcetest.Case[string]{
					Source: again(), Again: again,
					Want: strings.Split("abcdefghij", ""),
					Size: func(v string) int64 { return int64(len(v)) }, Judged: true,
					More: func() []string {
						more = append(more, fmt.Sprint("more ", len(more)))
						b.log("t", 1, batchtest.Values(0, more...))
						return more[len(more)-1:]
					},
				}
			})
		})
	}
}

// texts is a source of the records' values.
type texts struct{ *kafkaSource }

func (s *texts) Read(ctx context.Context, r source.Range, emit func(int64, string) error) error {
	return s.kafkaSource.Read(ctx, r, func(o int64, v Record) error { return emit(o, v.Text()) })
}

// TestCompacted: the shapes of compaction, to the end and without a busy loop. // report 25
func TestCompacted(t *testing.T) {
	for name, c := range map[string]struct {
		batches []batchtest.Batch
		want    []string
		until   int64
	}{
		"i":   {[]batchtest.Batch{batchtest.Empty(100, 109)}, nil, 110},
		"ii":  {[]batchtest.Batch{batchtest.Empty(100, 109), batchtest.Empty(110, 119), batchtest.Empty(120, 129), batchtest.Values(130, "x")}, []string{"0@130=x"}, 131},
		"iii": {[]batchtest.Batch{batchtest.Values(100, "x"), batchtest.Empty(101, 109), batchtest.Empty(110, 119), batchtest.Values(120, "y", "z")}, []string{"0@100=x", "0@120=y", "0@121=z"}, 122},
	} {
		for _, codec := range []int{batchtest.None, batchtest.Zstd} {
			t.Run(fmt.Sprintf("%s codec %d", name, codec), func(t *testing.T) {
				for i := range c.batches {
					if len(c.batches[i].Records) > 0 {
						c.batches[i].Codec = codec
					}
				}
				b := newFake(t)
				b.log("t", 0, c.batches...)
				s := open(t, b, nil)
				p, got := readAll(t, s, source.Limits{})
				require.Equal(t, c.want, got)
				require.Equal(t, []source.Range{{Partition: "t-0", From: 100, Until: c.until, Epoch: p.Ranges[0].Epoch, Mark: "0"}}, p.Ranges)
				require.LessOrEqual(t, b.fetches, 3)
			})
		}
	}
}

// TestEndIsAPosition: a range is done by position, whatever stands at its end. // report 21
func TestEndIsAPosition(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(90, "data"), batchtest.Marker(91, 5, true))
	s := open(t, b, nil)
	p, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@90=data"}, got)
	require.EqualValues(t, 92, p.Ranges[0].Until)

	l := b.log("t", 0) // both removed; that only the marker is, see TestHoleAtTheEnd
	l.start, l.end, l.stable = 92, 92, 92
	err := s.Read(t.Context(), p.Ranges[0], func(int64, Record) error { return nil })
	var gone *OffsetRangeError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, OffsetRangeError{"t", 0, 90, 92, 92}, *gone)
}

func TestReadCommitted(t *testing.T) { // report 26
	txn := func(base, producer int64, v string) batchtest.Batch {
		x := batchtest.Values(base, v)
		x.Producer, x.Txn = producer, true
		return x
	}
	b := newFake(t)
	l := b.log("t", 0, txn(0, 7, "a"), batchtest.Marker(1, 7, false), txn(2, 7, "b"), batchtest.Marker(3, 7, true), txn(4, 7, "c"))
	l.stable, l.aborted = 4, [][2]int64{{7, 0}}
	p, got := readAll(t, open(t, b, nil), source.Limits{})
	require.Equal(t, []string{"0@2=b"}, got)
	require.EqualValues(t, 4, p.Ranges[0].Until, "the position stops before the open transaction")
	p, got = readAll(t, open(t, b, nil, ReadUncommitted()), source.Limits{})
	require.Equal(t, []string{"0@0=a", "0@2=b", "0@4=c"}, got)
	require.EqualValues(t, 5, p.Ranges[0].Until)
}

func TestStarts(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(5, "a", "b", "c"))
	b.log("t", 1, batchtest.Values(0, "d", "e"))
	_, got := readAll(t, open(t, b, nil, FromOffsets(map[TopicPartition]int64{{"t", 0}: 6})), source.Limits{})
	require.Equal(t, []string{"0@6=b", "0@7=c", "1@0=d", "1@1=e"}, got)

	latest := made(b, sourceOption(func(c *config) { c.at = wire.Latest }))
	require.NoError(t, latest.Open(t.Context(), nil))
	defer latest.Close()
	p, got := readAll(t, latest, source.Limits{})
	require.Empty(t, got)
	require.EqualValues(t, 8, p.Ranges[0].From, "the position is fixed by the first plan")
	b.log("t", 0, batchtest.Values(5, "a", "b", "c", "new"))
	_, got = readAll(t, latest, source.Limits{})
	require.Equal(t, []string{"0@8=new"}, got)

	last := source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 5, Until: 7}}}
	_, got = readAll(t, open(t, b, &last, FromOffsets(map[TopicPartition]int64{{"t", 0}: 5})), source.Limits{})
	require.Equal(t, []string{"0@7=c", "0@8=new", "1@0=d", "1@1=e"}, got, "positions beat the start options; a partition without one starts by them")
}

func TestStopAtEnd(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a", "b", "c"))
	s := NewSource(Brokers(b.addr()), Topics("t"), FromEarliest(), StopAtEnd()).(ending)
	require.NoError(t, s.Open(t.Context(), nil))
	defer s.Close()
	require.False(t, s.Done())
	_, got := readAll(t, s.kafkaSource, source.Limits{Records: 2})
	require.Len(t, got, 2)
	require.False(t, s.Done())
	b.log("t", 0, batchtest.Values(0, "a", "b", "c", "later"))
	_, got = readAll(t, s.kafkaSource, source.Limits{})
	require.Equal(t, []string{"0@2=c"}, got)
	require.True(t, s.Done())
	_, bounded := NewSource(Brokers("x:1"), Topics("t")).(source.Bounded)
	require.False(t, bounded)
}

func TestOptionFaults(t *testing.T) {
	s := NewSource(Brokers("a:b:c"), Topics("", "x", "x"), FromEarliest(), FromLatest(), MaxBatchBytes(0), FetchMaxBytes(-1), RequestTimeout(0),
		RetryFor(-1), Dialer(nil), FromOffsets(map[TopicPartition]int64{{"y", 1}: -5}), ClientID(strings.Repeat("x", 40000)), nil)
	err := s.Open(t.Context(), nil)
	for _, says := range []string{"a:b:c", `topic ""`, "named twice", "2 times", "MaxBatchBytes is 0", "FetchMaxBytes is -1", "RequestTimeout is 0s",
		"RetryFor is -1ns", "Dialer is nil", "y-1 is of a topic that is not read", "-5 is negative", "40000 bytes", "option is nil"} {
		require.ErrorContains(t, err, says)
	}
	err = NewSource().Open(t.Context(), nil)
	require.ErrorContains(t, err, "no broker is named")
	require.ErrorContains(t, err, "no topic is named")
	require.Equal(t, []string{"h:9092", "[::1]:9092", "k:1", "l:2"}, newConfig([]SourceOption{Brokers("h", "[::1]", " k:1, l:2")}).brokers)
}
