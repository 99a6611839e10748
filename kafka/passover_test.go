package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// rotten is a log of the offsets 0 to 11, of which the batch of 5 to 7 is damaged at a byte.
func rotten(b *fakeBroker, at int) {
	l := b.log("t", 0, batchtest.Values(0, "0", "1", "2", "3", "4"), batchtest.Values(5, "5", "6", "7"), batchtest.Values(8, "8", "9", "10", "11"))
	l.damaged = map[int64]int{5: at}
}

// TestPassOver: a batch that is damaged ends a job with an error that has the option which
// goes on without it; on the same checkpoint it does, and each offset is counted and told. // report 20
func TestPassOver(t *testing.T) {
	for name, at := range map[string]int{"records": 70, "checksum": 17, "magic": 16, "length": 11} {
		t.Run(name, func(t *testing.T) {
			b := newFake(t)
			rotten(b, at)
			root := vfs.NewObjects()
			var got []string
			var m Monitor
			run := func(opts ...SourceOption) error {
				got = nil
				return dstream.Run(t.Context(), time.Millisecond, func(ssc *dstream.StreamingContext) error {
					in := DirectStream(ssc, "in", append([]SourceOption{Brokers(b.addr()), Topics("t"), FromEarliest(), StopAtEnd(), RetryFor(0), Watch(&m)}, opts...)...)
					dstream.Foreach(in, func(_ context.Context, _ dstream.Batch, r Record) error { got = append(got, r.Text()); return nil })
					return nil
				}, dstream.WithStopWhenDone(), dstream.WithCheckpointStore(root), dstream.WithIORetry(10*time.Millisecond), dstream.WithMaxRecordsPerBatch(7))
			}
			err := run()
			var bad *RecordError
			require.ErrorAs(t, err, &bad)
			require.EqualValues(t, 5, bad.Offset)
			way := `PassOver(TopicPartition{"t", 0}, 5, `
			if name == "records" || name == "checksum" {
				way += "8)"
			}
			require.ErrorContains(t, err, way)
			require.NoError(t, run(PassOver(TopicPartition{"t", 0}, 5, 8)))
			require.Equal(t, strings.Split("0 1 2 3 4 8 9 10 11", " "), slices.Compact(got))
			require.EqualValues(t, 3, m.Report().Counters["lost_records"])
			require.Contains(t, fmt.Sprint(m.Report().Notices), `topic "t" partition 0: offsets 5 to 6 are passed over, as PassOver says: 2 records are lost, reading goes on at 7`)
		})
	}
}

// TestPassOverTooLarge: nothing at the offsets is asked for, so size does not matter; and
// what is good around them is read, whatever the option leaves out.
func TestPassOverTooLarge(t *testing.T) { // report 29
	b := newFake(t)
	bomb := batchtest.Values(1, strings.Repeat("\x00", 4<<20))
	bomb.Codec = batchtest.Zstd
	b.log("t", 0, batchtest.Values(0, "a"), bomb, batchtest.Values(2, "b", "c", "d"))
	tp := TopicPartition{"t", 0}
	for _, opt := range []SourceOption{PassOver(tp, 1, 2), Group("unused")} {
		s := open(t, b, nil, MaxBatchBytes(1<<20), opt)
		p, err := s.Plan(t.Context(), source.Limits{})
		for err == nil && p.Ranges[0].From < p.Ranges[0].Until {
			if err = read(t, s, p.Ranges[0]); err == nil {
				p, err = s.Plan(t.Context(), source.Limits{})
			}
		}
		if s.cfg.passed == nil {
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorContains(t, err, `PassOver(TopicPartition{"t", 0}, 1, 2)`)
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Report().Counters["lost_records"])
	}
	_, got := readAll(t, open(t, b, nil, PassOver(tp, 4, 9), PassOver(tp, 0, 2)), source.Limits{})
	require.Equal(t, []string{"0@2=b", "0@3=c"}, got)
	require.ErrorContains(t, made(b, PassOver(tp, 3, 3)).Open(t.Context(), nil), "PassOver: there can be no offsets [3, 3) of t-0")
}
