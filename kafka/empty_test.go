package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// emptied is a source with a plan of offsets 0 to 9, of which the log holds the first eight.
func emptied(t *testing.T) (*fakeBroker, *fakeLog, *kafkaSource, source.Range) {
	b, p := silentBroker(t)
	l := b.log("t", 0, batchtest.Values(0, "0", "1", "2", "3"), batchtest.Values(4, "4", "5", "6", "7"))
	l.end, l.stable = 10, 10
	s := NewSource(Brokers(b.addr()), Topics("t"), FromEarliest(), ReadAhead(0), p.dialer()).(*kafkaSource)
	require.NoError(t, s.Open(t.Context(), nil))
	plan, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	require.EqualValues(t, 10, plan.Ranges[0].Until)
	return b, l, s, plan.Ranges[0]
}

// TestEmptyAnswersAreNoHole: a broker that has to bring the bytes from tiered storage
// answers without one, and without an error, when that takes longer than it may; later
// they come. Nothing of them is passed over. // report 21, report 25
func TestEmptyAnswersAreNoHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l, s, r := emptied(t)
		defer s.Close()
		all := append(l.batches, batchtest.Values(8, "8", "9"))
		began := s.cfg.clock.Now()
		b.mu.Lock()
		b.fault = func(key int16, _ int) (int16, string) {
			if l.batches = all; key == 1 && s.cfg.clock.Now().Sub(began) < 5*time.Second {
				l.batches = nil
			}
			return 0, ""
		}
		b.mu.Unlock()
		var got []int64
		require.NoError(t, s.Read(t.Context(), r, func(o int64, _ Record) error { got = append(got, o); return nil }))
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got)
		require.Less(t, b.fetches, 20, "no busy loop")
		require.Zero(t, s.Report().Counters["assumed_holes"])
		require.Empty(t, s.Report().Notices)
	})
}

// TestHoleAtTheEnd: where compaction has removed all that was left of a log, the range is
// done by position, within the time that retries have, and that is told and counted. // report 21
func TestHoleAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, s, r := emptied(t)
		defer s.Close()
		n := 0
		read := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			n = 0
			return s.Read(ctx, r, func(int64, Record) error { n++; return nil })
		}
		spent := took(func() { require.NoError(t, read(time.Minute)) })
		require.Equal(t, 8, n)
		require.Equal(t, DefaultRetryFor, spent)
		require.Less(t, b.fetches, 20, "no busy loop")
		require.EqualValues(t, 2, s.Report().Counters["assumed_holes"])
		says(t, s, `topic "t" partition 0`, "offsets 8 to 9", "compaction", "RetryFor", "6s", "goes on at 10", "from offset 8 or before")
		require.Zero(t, s.Report().Partitions[0].Waiting, "it waits no more")

		require.Equal(t, time.Second, took(func() { require.ErrorIs(t, read(time.Second), context.DeadlineExceeded) }), "a stop ends the wait")
		require.Positive(t, s.Report().Partitions[0].Waiting, "it waits still, for what nobody has read")
	})
}
