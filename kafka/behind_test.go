package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// openAt is a log of 30 records with a transaction that is open from an offset on.
func openAt(b *fakeBroker, stable int64) *fakeLog {
	l := b.log("t", 0, many(0, 30, 1, 10)...)
	b.heldAt(l, stable, 30)
	return l
}

// TestPositionBehindAnOpenTransaction: a position that lies behind the last stable offset,
// for it was read to with ReadUncommitted, or is where a run is to start, is one of the same
// log: the partition waits there, its transaction is told, and it goes on when that is over. // report 26, report 38
func TestPositionBehindAnOpenTransaction(t *testing.T) {
	for _, how := range []string{"read before", "start", "read before, epochs unknown"} {
		t.Run(how, func(t *testing.T) {
			b := newFake(t)
			l := openAt(b, 10)
			b.log("t", 1, batchtest.Values(0, "other"))
			m, mon := manual(), &Monitor{}
			opts := []SourceOption{at(m), Watch(mon)}
			var last *source.Plan
			if how == "start" {
				opts = append(opts, FromOffsets(map[TopicPartition]int64{{"t", 0}: 20}))
			} else {
				dirty := open(t, b, nil, ReadUncommitted())
				p, got := readAll(t, dirty, source.Limits{Records: 21})
				require.Len(t, got, 21)
				last = &p
				require.EqualValues(t, 20, last.Ranges[0].Until)
				l.unwritten = how != "read before"
			}
			s := open(t, b, last, opts...)
			for i := range 3 {
				p, got := readAll(t, s, source.Limits{})
				require.Equal(t, source.Range{Partition: "t-0", From: 20, Until: 20, Epoch: p.Ranges[0].Epoch, Mark: "0"}, p.Ranges[0])
				require.Equal(t, how == "start" && i == 0, len(got) == 1, "the other one is read")
			}
			require.Zero(t, mon.Report().Partitions[0].Lag)
			passes(t, s, m, 2*DefaultHangAfter)
			require.ErrorContains(t, mon.Healthy(), `topic "t" partition 0: committed records end at offset 10 (the last stable offset)`)
			b.heldAt(l, 30, 30)
			_, got := readAll(t, s, source.Limits{})
			require.Len(t, got, 10)
			require.NoError(t, mon.Healthy())
		})
	}
}

// TestPositionBehindTheLog: one that no record has yet is the error that it was, told with
// where the log really ends.
func TestPositionBehindTheLog(t *testing.T) {
	b := newFake(t)
	openAt(b, 10)
	_, err := open(t, b, nil, FromOffsets(map[TopicPartition]int64{{"t", 0}: 31})).Plan(t.Context(), source.Limits{})
	require.ErrorContains(t, err, "offset 31 is beyond the end 30 (available 0..30)")
	require.False(t, passing(err))
}

// TestRangeBehindAnOpenTransaction: a range that was planned by a run that read everything,
// and is read again by one that does not, gives what is committed of it when its transaction
// is over, however long that takes. // report 26
func TestRangeBehindAnOpenTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, pipe := silentBroker(t)
		l := openAt(b, 10)
		s := NewSource(Brokers(b.addr()), Topics("t"), pipe.dialer(), StallAfter(10*time.Second)).(*kafkaSource)
		last := source.Plan{Ranges: []source.Range{{Partition: "t-0", From: 5, Until: 20}}}
		require.NoError(t, s.Open(t.Context(), &last))
		defer func() { require.NoError(t, s.Close()) }()
		ctx, cancel := context.WithCancel(t.Context())
		read := func(ctx context.Context) (n int, err error) {
			err = s.Read(ctx, last.Ranges[0], func(int64, Record) error { n++; return nil })
			return n, err
		}
		later := func(f func()) {
			go func() {
				if clock.Wait(t.Context(), clock.System(), time.Hour) == nil { // of the bubble
					f()
				}
			}()
		}
		later(cancel)
		n, err := read(ctx)
		require.ErrorIs(t, err, context.Canceled, "it waits as long as it may")
		require.Equal(t, 5, n)
		r := s.Report()
		require.Len(t, r.Warnings, 1)
		require.Contains(t, r.Warnings[0], "committed records end at offset 10")
		require.False(t, r.Partitions[0].Stalled, "the broker answers")

		later(func() { b.heldAt(l, 30, 30) })
		n, err = read(t.Context())
		require.NoError(t, err)
		require.Equal(t, 15, n)
		require.Zero(t, s.Report().Counters["assumed_holes"])
	})
}

// TestRDDBehindAnOpenTransaction: a dataset of given ranges waits for nothing, and says
// what it would have to wait for.
func TestRDDBehindAnOpenTransaction(t *testing.T) {
	b := newFake(t)
	openAt(b, 10)
	r, err := RDD([]OffsetRange{{TopicPartition{"t", 0}, 5, 20}}, Brokers(b.addr()), RetryFor(50*time.Millisecond))
	require.NoError(t, err)
	_, err = rdd.Collect(t.Context(), r)
	require.ErrorContains(t, err, "committed records end at offset 10 (the last stable offset), before a transaction that is open; the log goes on to offset 30, and the range to 20")
	require.NotContains(t, err.Error(), "unclean")
}
