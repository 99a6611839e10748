package receiver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// The records in the log that are not committed are lag, in a new run too.
func TestReportOfTheLog(t *testing.T) {
	mem := vfs.NewMem()
	h := newHand()
	s := open(t, mem, h, nil)
	var _ source.Reporter = s
	log := func(s *receiver.Source[string]) source.PartitionReport {
		x := s.Report().Partitions[0]
		x.Progress = time.Time{}
		return x
	}
	require.NoError(t, h.store(records(0, 3)...))
	require.Equal(t, source.PartitionReport{Partition: "log", Next: -1, End: 3}, log(s))
	p := plan(t, s)
	require.Equal(t, source.PartitionReport{Partition: "log", Next: 0, End: 3, Lag: 3}, log(s))
	require.True(t, s.Report().Partitions[0].Progress.IsZero())
	read(t, s, p)
	require.False(t, s.Report().Partitions[0].Progress.IsZero())
	require.NoError(t, h.store(records(3, 7)...))
	require.Equal(t, map[string]int64{"stored": 7, "failures": 0}, s.Report().Counters)
	require.NoError(t, s.Close())
	require.Empty(t, s.Report().Partitions)

	s = open(t, mem, newHand(), &p)
	require.Equal(t, source.PartitionReport{Partition: "log", Next: 0, End: 7, Lag: 7}, log(s))
	require.EqualValues(t, 0, s.Report().Counters["stored"])
	require.NoError(t, s.Committed(t.Context(), p))
	require.Equal(t, source.PartitionReport{Partition: "log", Next: 3, End: 7, Lag: 4}, log(s))
}

// A receiver that fails is a warning while it pauses, and so is a log that is full.
func TestReportOfTheReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := clock.NewManual(time.Unix(0, 0).UTC())
		h := newHand()
		s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](h))
		s.Clock, s.FirstPause, s.SegmentBytes, s.MaxBytes = k, time.Second, 100, 150
		require.NoError(t, s.Open(t.Context(), nil))
		h.end <- errors.Join(errors.New("no line"), errors.New("no hope"))
		synctest.Wait()
		r := s.Report()
		require.Equal(t, []string{`receiver log "in": the receiver failed: no line; no hope; it is called again after 1s`}, r.Warnings)
		require.Equal(t, source.Notice{Seq: 1, Time: time.Unix(0, 0).UTC(), Text: r.Warnings[0]}, r.Notices[0])
		require.EqualValues(t, 1, r.Counters["failures"])
		k.Advance(time.Second)
		synctest.Wait()
		r = s.Report()
		require.Empty(t, r.Warnings)
		require.Equal(t, `receiver log "in": the receiver is called again`, r.Notices[1].Text)

		for i := range 2 { // segments of about 240 bytes
			require.NoError(t, h.store(records(20*i, 20*i+20)...))
		}
		r = s.Report()
		require.Len(t, r.Warnings, 1)
		require.Contains(t, r.Warnings[0], "it is full (150 bytes)")
		p := plan(t, s)
		require.NoError(t, s.Committed(t.Context(), p))
		p = plan(t, s)
		require.NoError(t, s.Committed(t.Context(), p))
		require.Empty(t, s.Report().Warnings)
		require.NoError(t, s.Close())
	})
}
