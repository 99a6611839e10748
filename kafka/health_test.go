package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// TestHealthOfAJob: a blocked fetch is told to the job's listener in the middle of its
// batch, and its context is unhealthy by that partition's name; when the fetch goes on
// all is clear. An idle topic raises no warning. // report 38
func TestHealthOfAJob(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "a"))
	b.log("t", 1, batchtest.Values(0, "b"))
	b.log("idle", 0)
	gate := make(chan struct{})
	b.mu.Lock()
	b.gate = func(_ int16, tp TopicPartition) chan struct{} {
		if tp == (TopicPartition{"t", 0}) {
			return gate
		}
		return nil
	}
	b.mu.Unlock()
	told, done := make(chan string, 20), make(chan dstream.Progress, 1000)
	ssc := dstream.New(20*time.Millisecond, dstream.WithListener(dstream.Listener{
		SourceNotice:   func(name string, n source.Notice) { told <- name + ": " + n.Text },
		BatchCompleted: func(p dstream.Progress) { done <- p },
	}))
	in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t", "idle"), FromEarliest(), ReadAhead(0), StallAfter(50*time.Millisecond),
		RequestTimeout(time.Hour), RetryFor(time.Hour))
	dstream.Foreach(in, func(context.Context, dstream.Batch, Record) error { return nil })
	require.NoError(t, ssc.Start())
	require.Contains(t, <-told, `in: topic "t" partition 0 is stalled`, "while the batch runs")
	err := ssc.Healthy()
	require.ErrorIs(t, err, dstream.ErrStalled)
	require.ErrorContains(t, err, `source "in": topic "t" partition 0 is stalled`)
	require.NotContains(t, err.Error(), "partition 1")
	require.NotContains(t, err.Error(), "idle")
	for _, p := range ssc.Health().Sources[0].Partitions {
		require.Equal(t, p.Partition == "t-0", p.Stalled, p.Partition)
	}
	close(gate)
	p := <-done
	require.NoError(t, ssc.Healthy(), "all clear")
	require.True(t, p.Sources[0].Reports)
	require.Zero(t, p.Sources[0].Lag)
	require.Empty(t, p.Sources[0].Warnings)
	for _, r := range p.Sources[0].Ranges {
		require.Equal(t, r.Until, r.End, r.Partition)
	}
	require.Contains(t, <-told, "moves again")
	require.NoError(t, ssc.Stop(context.Background()))
	require.ErrorIs(t, ssc.Healthy(), dstream.ErrNotReady)
}

// TestLossInProgress: what ContinueOnLoss passes over is told and counted in the batch's
// progress. // report 20
func TestLossInProgress(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, many(0, 10, 10, 10)...)
	told := make(chan source.Notice, 20)
	ssc := dstream.New(20*time.Millisecond, dstream.WithMaxRecordsPerBatch(10), dstream.WithListener(dstream.Listener{
		SourceNotice: func(_ string, n source.Notice) { told <- n },
	}))
	in := DirectStream(ssc, "in", Brokers(b.addr()), Topics("t"), FromEarliest(), ReadAhead(0), ContinueOnLoss())
	first := true
	dstream.Foreach(in, func(context.Context, dstream.Batch, Record) error {
		if first {
			first = false
			b.mu.Lock()
			defer b.mu.Unlock()
			l.batches, l.start = l.batches[5:], 50
		}
		return nil
	})
	require.NoError(t, ssc.Start())
	n := <-told
	require.Contains(t, n.Text, "are lost")
	require.NoError(t, ssc.Stop(context.Background()))
	p, ok := ssc.LastProgress()
	require.True(t, ok)
	require.NotZero(t, p.Sources[0].Counters["lost_records"])
}

// TestFaultsOfOptionsHaveTheirLine: with all other faults of a job, before a broker is
// asked.
func TestFaultsOfOptionsHaveTheirLine(t *testing.T) {
	ssc := dstream.New(time.Second)
	dstream.Print(DirectStream(ssc, "in", Topics("t"), MaxBatchBytes(0), ReadAhead(-1)), 1)
	err := ssc.Validate()
	for _, says := range []string{"MaxBatchBytes is 0", "ReadAhead is -1", "no broker is named"} {
		require.ErrorContains(t, err, says)
	}
}
