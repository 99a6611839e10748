package source_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func report(s any) source.Report { return s.(source.Reporter).Report() }

// at is what is known of partitions: name, next, end and lag.
func at(r source.Report) (out []string) {
	for _, x := range r.Partitions {
		out = append(out, fmt.Sprintf("%s %d..%d lag %d", x.Partition, x.Next, x.End, x.Lag))
	}
	return out
}

func TestNotices(t *testing.T) {
	var n source.Notices
	require.Empty(t, n.All())
	for i := range 40 {
		require.EqualValues(t, i+1, n.Add(time.Unix(int64(i), 0), fmt.Sprint("notice ", i)).Seq)
	}
	all := n.All()
	require.Len(t, all, 32)
	require.Equal(t, source.Notice{Seq: 9, Time: time.Unix(8, 0), Text: "notice 8"}, all[0])
	n.Reset()
	require.Empty(t, n.All())
	require.EqualValues(t, 1, n.Add(time.Unix(0, 0).UTC(), "again").Seq)
}

// Lines that wait are lag until their epoch is committed; a reader that failed is told.
func TestLinesReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.Lines("x", failing{strings.NewReader("a\nb\n"), errRefused})
		require.Empty(t, report(s).Partitions)
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		require.Equal(t, []string{"x -1..2 lag 0"}, at(report(s)))
		_, p := step(t, s)
		require.Equal(t, []string{"x 0..2 lag 2"}, at(report(s)))
		require.False(t, report(s).Partitions[0].Progress.IsZero())
		require.NoError(t, s.Committed(t.Context(), p))
		r := report(s)
		require.Equal(t, []string{"x 2..2 lag 0"}, at(r))
		require.EqualValues(t, 2, r.Counters["lines"])
		require.Len(t, r.Warnings, 1)
		require.Contains(t, r.Warnings[0], "refused")
		require.Equal(t, r.Warnings[0], r.Notices[0].Text)
		require.NoError(t, s.Close())
		require.Empty(t, report(s).Warnings)

		s = source.Lines("x", strings.NewReader(""))
		require.NoError(t, s.Open(t.Context(), &source.Plan{Ranges: []source.Range{{Partition: "x", From: 5, Until: 7}}}))
		synctest.Wait()
		require.Equal(t, []string{"x 7..7 lag 0"}, at(report(s)))
		require.True(t, report(s).Partitions[0].Progress.IsZero())
		step(t, s)
		require.False(t, report(s).Partitions[0].Progress.IsZero(), "nothing is left to read")
		require.Empty(t, report(s).Warnings)
		require.NoError(t, s.Close())
	})
}

// A socket that is not connected is a warning by name, until it is connected again.
func TestSocketReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{next: []func(net.Conn){says("one\n"), nil, func(net.Conn) {}}}
		manual := clock.NewManual(time.Unix(0, 0).UTC())
		s := source.Socket("host:1")
		s.Dial, s.Clock, s.FirstPause = n.dial, manual, time.Second
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		r := report(s)
		require.Len(t, r.Warnings, 1)
		require.Contains(t, r.Warnings[0], `socket "host:1": the connection was lost: EOF`)
		manual.Advance(time.Second)
		synctest.Wait()
		r = report(s)
		require.Empty(t, r.Warnings)
		require.Len(t, r.Notices, 2)
		require.Equal(t, source.Notice{Seq: 2, Time: time.Unix(1, 0).UTC(), Text: `socket "host:1": connected again`}, r.Notices[1])
		require.NoError(t, s.Close())
	})
}

// Bytes of files that were not read are lag, of those in no plan yet too.
func TestFilesReport(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "a", "one\ntwo\n")
	write(t, fsys, "b", "three\n")
	s := source.TextFiles(fsys, "a", "b")
	s.Partitions, s.MaxBytesPerBatch = 2, 8
	require.NoError(t, s.Open(t.Context(), nil))
	require.Empty(t, report(s).Partitions)
	_, p := step(t, s)
	require.Equal(t, []string{"0 0..4 lag 4", "1 4..14 lag 10"}, at(report(s)))
	require.NoError(t, s.Committed(t.Context(), p))
	require.Equal(t, []string{"0 4..4 lag 0", "1 8..14 lag 6"}, at(report(s)))
	require.False(t, report(s).Partitions[0].Progress.IsZero())
	_, p = step(t, s)
	require.NoError(t, s.Committed(t.Context(), p))
	for _, x := range report(s).Partitions {
		require.Zero(t, x.Lag)
	}
	require.NoError(t, s.Close())
}

// Files in reading are partitions; those that wait for their turn, or to be complete, are
// one together.
func TestDirectoryReport(t *testing.T) {
	fsys := vfs.NewMem()
	write(t, fsys, "in/a", "one\ntwo\n")
	write(t, fsys, "in/b", "three\n")
	s := source.Dir(fsys, "in")
	s.MaxBytesPerBatch, s.MaxFilesPerBatch = 4, 1
	require.NoError(t, s.Open(t.Context(), nil))
	commit := func(p source.Plan) { require.NoError(t, s.Committed(t.Context(), p)) }
	_, p := step(t, s)
	require.Equal(t, []string{". 0..0 lag 0", "/ 0..14 lag 14"}, at(report(s)), "not settled")
	commit(p)
	_, p = step(t, s)
	require.Equal(t, []string{". 0..0 lag 0", "a 0..8 lag 8", "/ 0..6 lag 6"}, at(report(s)))
	commit(p)
	require.Equal(t, []string{". 0..0 lag 0", "a 4..8 lag 4", "/ 0..6 lag 6"}, at(report(s)))
	require.Equal(t, map[string]int64{"files_found": 2, "files_read": 0}, report(s).Counters)
	for range 2 {
		_, p = step(t, s)
		require.False(t, report(s).Partitions[1].Progress.IsZero())
		commit(p)
	}
	require.Equal(t, []string{". 1..1 lag 0", "b 6..6 lag 0"}, at(report(s)))
	require.Equal(t, map[string]int64{"files_found": 2, "files_read": 2}, report(s).Counters)
	write(t, fsys, "in/c", "four\n")
	for range 4 {
		_, p = step(t, s)
		commit(p)
	}
	require.Equal(t, map[string]int64{"files_found": 3, "files_read": 3}, report(s).Counters)
	require.NoError(t, s.Close())
}
