package kafka

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// heldAt is a log of which readers of committed records see what lies before an offset.
func (b *fakeBroker) heldAt(l *fakeLog, stable, end int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.stable, l.end = stable, end
}

// passes lets a watch look at its source, again and again, and have its answers.
func passes(t *testing.T, s *kafkaSource, m *clock.Manual, d time.Duration) {
	t.Helper()
	const step = DefaultStallAfter / 4
	looked := func() {
		require.NoError(t, m.BlockUntil(t.Context(), 1))
		for w := s.watch; ; runtime.Gosched() {
			w.mu.Lock()
			asking := len(w.asking)
			w.mu.Unlock()
			if asking == 0 || t.Context().Err() != nil {
				return
			}
		}
	}
	for end := m.Now().Add(d); m.Now().Before(end); {
		looked()
		m.Advance(step)
	}
	looked()
}

// TestHangingTransaction: a transaction that nobody ends is told, by place, offsets, time
// and what to do; one that advances is not, and neither is a log without news. // report 38, report 26
func TestHangingTransaction(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, batchtest.Values(0, "a", "b", "c", "d", "e"))
	b.log("t", 1, batchtest.Values(0, "a"))
	l.stable = 2
	m, mon, told := manual(), &Monitor{}, make(chan source.Notice, 10)
	s := open(t, b, nil, at(m), Watch(mon), OnNotice(func(n source.Notice) { told <- n }))
	_, got := readAll(t, s, source.Limits{})
	require.Equal(t, []string{"0@0=a", "0@1=b", "1@0=a"}, got)
	passes(t, s, m, DefaultHangAfter-DefaultStallAfter)
	require.NoError(t, mon.Healthy(), "not yet")
	r := mon.Report().Partitions[0]
	require.Equal(t, []int64{2, 2, 0, 5}, []int64{r.Next, r.End, r.Lag, r.Written}, "nobody can read what is behind it")
	require.Greater(t, r.Held, DefaultHangAfter/2)

	b.heldAt(l, 3, 9) // it ended, the next one is open: that is no news
	readAll(t, s, source.Limits{})
	require.Zero(t, mon.Report().Partitions[0].Held)
	passes(t, s, m, DefaultHangAfter-DefaultStallAfter)
	require.NoError(t, mon.Healthy(), "it advances")
	b.heldAt(l, 4, 12) // seen by the watch alone
	passes(t, s, m, DefaultHangAfter-DefaultStallAfter)
	require.NoError(t, mon.Healthy(), "it advances")
	require.Empty(t, told)
	b.heldAt(l, 4, 15)
	passes(t, s, m, 3*DefaultStallAfter)
	n := <-told
	require.Empty(t, told)
	err := mon.Healthy()
	for _, says := range []string{
		`topic "t" partition 0: committed records end at offset 4 (the last stable offset)`, "goes on to offset 15 (the high watermark)", "2m", "or longer",
		`"kafka-transactions.sh --bootstrap-server ` + b.addr() + ` find-hanging --topic t --partition 0"`,
		`"kafka-transactions.sh --bootstrap-server ` + b.addr() + ` abort --topic t --partition 0 --start-offset 4"`,
	} {
		require.ErrorContains(t, err, says)
		require.Contains(t, n.Text, says)
	}
	require.NotContains(t, err.Error(), "partition 1")
	require.EqualValues(t, 1, mon.Report().Counters["hanging_transactions"])

	b.heldAt(l, 15, 15)
	readAll(t, s, source.Limits{Records: 1})
	require.NoError(t, mon.Healthy(), "all clear at once")
	passes(t, s, m, DefaultStallAfter)
	require.Contains(t, (<-told).Text, `topic "t" partition 0: the transaction is over, committed records go on to offset 15`)
	r = mon.Report().Partitions[0]
	require.Equal(t, []int64{15, 15}, []int64{r.End, r.Written})
	passes(t, s, m, 2*DefaultHangAfter)
	require.Empty(t, told, "an idle topic is healthy")
	require.NoError(t, mon.Healthy())
}

// TestNoHangOfUncommitted: who reads all has nothing to wait for. // report 26
func TestNoHangOfUncommitted(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, batchtest.Values(0, "a", "b"))
	l.stable = 1
	m, mon := manual(), &Monitor{}
	s := open(t, b, nil, at(m), Watch(mon), ReadUncommitted())
	readAll(t, s, source.Limits{})
	passes(t, s, m, 2*DefaultHangAfter)
	require.NoError(t, mon.Healthy())
	r := mon.Report().Partitions[0]
	require.Equal(t, []int64{2, 2}, []int64{r.End, r.Written})
}

// TestShorterLogHangsNot: what a log has lost is no open transaction.
func TestShorterLogHangsNot(t *testing.T) {
	p := newPart(TopicPartition{"t", 0}, "")
	now := time.Unix(0, 0)
	p.sees(5, 9, now)
	p.endsAt(4, now.Add(time.Hour))
	require.Equal(t, held{high: 4}, held{high: p.held.high, since: p.held.since})
	p.sees(4, 4, now.Add(2*time.Hour))
	require.Zero(t, p.held.waits())
	p.sees(3, 9, now.Add(3*time.Hour)) // from before
	require.EqualValues(t, 4, p.end)
	require.Zero(t, p.held.waits())
}

// TestHangOfAJob: the job's context is unhealthy by it, its listener hears of it, and the
// progress has the numbers. // report 26
func TestHangOfAJob(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, batchtest.Values(0, "a", "b", "c"))
	l.stable = 2
	told := make(chan string, 20)
	ssc := dstream.New(20*time.Millisecond, dstream.WithListener(dstream.Listener{
		SourceNotice: func(name string, n source.Notice) { told <- name + ": " + n.Text },
	}))
	in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t"), FromEarliest(), HangAfter(50*time.Millisecond))
	dstream.Foreach(in, func(context.Context, dstream.Batch, Record) error { return nil })
	require.NoError(t, ssc.Start())
	require.Contains(t, <-told, `in: topic "t" partition 0: committed records end at offset 2`)
	err := ssc.Healthy()
	require.ErrorIs(t, err, dstream.ErrStalled)
	require.ErrorContains(t, err, `source "in": topic "t" partition 0: committed records end at offset 2`)
	require.NoError(t, ssc.Stop(context.Background()))
	p, ok := ssc.LastProgress()
	require.True(t, ok)
	require.EqualValues(t, 3, p.Sources[0].Ranges[0].Written)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var out struct {
		Sources []struct {
			Uncommitted map[string]int64
			HeldMs      map[string]float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &out))
	require.Equal(t, map[string]int64{"t-0": 1}, out.Sources[0].Uncommitted)
	require.GreaterOrEqual(t, out.Sources[0].HeldMs["t-0"], 0.0)
}
