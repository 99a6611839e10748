package kafka

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// settle waits until nothing is being fetched ahead.
func (a *ahead) settle() {
	for {
		a.mu.Lock()
		n := len(a.queue)
		a.mu.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
	}
}

// TestReadAhead: while a batch computes, the bytes of the next one come; it asks the
// broker for nothing more.
func TestReadAhead(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, many(0, 40, 10, 1000)...)
	b.log("t", 1, many(0, 40, 10, 1000)...)
	s := open(t, b, nil)
	readAll(t, s, source.Limits{Records: 200})
	s.ahead.settle()
	require.Positive(t, s.ahead.used)
	p, err := s.Plan(t.Context(), source.Limits{Records: 200})
	require.NoError(t, err)
	gate := make(chan struct{}) // the brokers answer no fetch any more
	b.mu.Lock()
	b.gate = func(int16, TopicPartition) chan struct{} { return gate }
	b.mu.Unlock()
	defer close(gate)
	for i, r := range p.Ranges {
		n := r.From
		require.NoError(t, s.Read(t.Context(), r, func(o int64, _ Record) error {
			require.Equal(t, n, o)
			n++
			return nil
		}))
		require.Equal(t, r.Until, n, "range %d", i)
	}
	require.Positive(t, s.Report().Counters["read_ahead"])
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Read(ctx, p.Ranges[0], func(int64, Record) error { return nil }), context.DeadlineExceeded,
		"a read of the same range, again, asks the broker: what lies ahead is not for it")
	require.NoError(t, s.Close()) // while fetches wait
}

// TestReadAheadIsBounded: over all partitions.
func TestReadAheadIsBounded(t *testing.T) {
	b := newFake(t)
	for n := range int32(8) {
		b.log("t", n, many(0, 30, 10, 5000)...)
	}
	const budget = 300 << 10
	s := open(t, b, nil, ReadAhead(budget))
	records := 0
	for epoch := uint64(0); ; epoch++ {
		_, got := readAll(t, s, source.Limits{Records: 500, Epoch: epoch})
		s.ahead.settle()
		s.ahead.mu.Lock()
		used, kept := s.ahead.used, int64(0)
		for _, k := range s.ahead.parts {
			for _, c := range k.chunks {
				kept += c.size
			}
		}
		s.ahead.mu.Unlock()
		require.LessOrEqual(t, used, int64(budget))
		require.Equal(t, kept, used)
		if records += len(got); len(got) == 0 {
			break
		}
	}
	require.Equal(t, 8*300, records)
	require.Positive(t, s.Report().Counters["read_ahead"])
	off := open(t, b, nil, ReadAhead(0))
	readAll(t, off, source.Limits{Records: 500})
	require.Nil(t, off.ahead)
}

// TestReadAheadOfAnotherLeader: an unclean election takes nothing that was read, and what
// was only fetched ahead has others in its place: those are read. // report 22
func TestReadAheadOfAnotherLeader(t *testing.T) {
	b := newFake(t)
	l := b.log("t", 0, many(0, 4, 10, 1000)...)
	s := open(t, b, nil)
	readAll(t, s, source.Limits{Records: 10})
	s.ahead.settle()
	require.Positive(t, s.ahead.used)
	b.mu.Lock()
	l.epoch, l.ends = 1, []int64{10}
	for i, from := range []int64{10, 20, 30} {
		var values []string
		for n := range int64(10) {
			values = append(values, fmt.Sprint("new", from+n))
		}
		l.batches[i+1] = batchtest.Values(from, values...)
		l.batches[i+1].Leader = 1
	}
	b.mu.Unlock()
	_, got := readAll(t, s, source.Limits{Records: 10})
	require.Len(t, got, 10)
	for i, text := range got {
		require.Equal(t, fmt.Sprintf("0@%d=new%d", i+10, i+10), text)
	}
}

// TestReadAheadFails: nobody hears of it.
func TestReadAheadFails(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, many(0, 100, 10, 1000)...)
	s := open(t, b, nil)
	for i := range 10 {
		b.mu.Lock()
		fetches := 0
		b.fault = func(key int16, _ int) (int16, string) {
			if key != 1 {
				return 0, ""
			}
			if fetches++; fetches%2 == 0 {
				return []int16{1, 6, 0, 0}[i%4], []string{"", "", "close", "half"}[i%4]
			}
			return 0, ""
		}
		b.mu.Unlock()
		_, got := readAll(t, s, source.Limits{Records: 100})
		require.Len(t, got, 100)
		require.True(t, strings.HasPrefix(got[0], fmt.Sprintf("0@%d=", i*100)))
	}
}

// TestReadAheadIsNoPlan: whatever the limits, faults, repeated reads and transactions,
// each plan gives the records of its range, as without it.
func TestReadAheadIsNoPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newFake(t)
		defer b.close()
		want, l := transactions(rt, b)
		l.stable = l.end
		s := made(b, ReadAhead(rapid.SampledFrom([]int64{8 << 10, 100 << 10, 1 << 20}).Draw(rt, "budget")), FetchMaxBytes(16<<10))
		require.NoError(rt, s.Open(t.Context(), nil))
		defer s.Close()
		for epoch, next := uint64(0), 0; ; epoch++ {
			records := rapid.Int64Range(1, 300).Draw(rt, "records")
			p, err := s.Plan(t.Context(), source.Limits{Records: records, Epoch: epoch})
			require.NoError(rt, err)
			r := p.Ranges[0]
			if r.From == r.Until {
				require.Equal(rt, len(want), next)
				return
			}
			if rapid.Bool().Draw(rt, "wait") {
				s.ahead.settle()
			}
			var got []string
			for range rapid.IntRange(1, 2).Draw(rt, "reads") {
				got = nil
				require.NoError(rt, s.Read(t.Context(), r, func(o int64, v Record) error { got = append(got, v.Text()[:7]); return nil }))
			}
			require.LessOrEqual(rt, next+len(got), len(want))
			if len(got) > 0 {
				require.Equal(rt, want[next:next+len(got)], got)
			}
			next += len(got)
		}
	})
}

// transactions makes a log of two producers' transactions, some of them aborted, and
// gives the first bytes of the values that count.
func transactions(t *rapid.T, b *fakeBroker) (want []string, l *fakeLog) {
	var batches []batchtest.Batch
	var aborted [][2]int64
	offset := int64(0)
	add := func(x batchtest.Batch, n int64) {
		batches = append(batches, x)
		offset += n
	}
	type txn struct {
		first int64
		abort bool
		live  bool
	}
	open := map[int64]*txn{7: {}, 8: {}}
	for range rapid.IntRange(1, 60).Draw(t, "batches") {
		producer := rapid.Int64Range(6, 8).Draw(t, "producer")
		x := open[producer]
		if x != nil && x.live && rapid.IntRange(0, 2).Draw(t, "end") == 0 {
			if x.abort {
				aborted = append(aborted, [2]int64{producer, x.first})
			}
			add(batchtest.Marker(offset, producer, !x.abort), 1)
			x.live = false
			continue
		}
		n := rapid.IntRange(1, 20).Draw(t, "n")
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf("%07d", offset+int64(i))+strings.Repeat("x", 100))
		}
		y := batchtest.Values(offset, values...)
		if x != nil {
			if !x.live {
				*x = txn{offset, rapid.Bool().Draw(t, "abort"), true}
			}
			y.Producer, y.Txn = producer, true
		}
		if x == nil || !x.abort {
			for _, v := range values {
				want = append(want, v[:7])
			}
		}
		add(y, int64(n))
	}
	for producer, x := range open {
		if x.live {
			if x.abort {
				aborted = append(aborted, [2]int64{producer, x.first})
			}
			add(batchtest.Marker(offset, producer, !x.abort), 1)
		}
	}
	l = b.log("t", 0, batches...)
	l.aborted = aborted
	return want, l
}
