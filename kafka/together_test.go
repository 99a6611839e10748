package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// manyParts is a topic of many partitions, each with n batches of 10 records.
func manyParts(t *testing.T, partitions, n int) *fakeBroker {
	b := newFake(t)
	for i := range int32(partitions) {
		b.log("t", i, many(0, n, 10, 10)...)
	}
	return b
}

func (b *fakeBroker) fetched() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, b.fetches = b.fetches, 0
	return n
}

// TestRangesComeTogether: a plan of many small ranges costs a few requests and not one for
// each, however many tasks there are: the first reads find them under way. // report 29
func TestRangesComeTogether(t *testing.T) {
	const partitions = 128
	b := manyParts(t, partitions, 3)
	s := open(t, b, nil)
	for range 3 {
		p, err := s.Plan(t.Context(), source.Limits{Records: partitions}) // so few are not sampled
		require.NoError(t, err)
		require.Len(t, p.Ranges, partitions)
		for _, r := range p.Ranges {
			n := 0
			require.NoError(t, s.Read(t.Context(), r, func(int64, Record) error { n++; return nil }))
			require.Equal(t, 1, n)
		}
		require.LessOrEqual(t, b.fetched(), 4)
		require.NoError(t, s.Committed(t.Context(), p))
	}
}

// TestSamplesComeTogether: neither does what a plan must know of the records' sizes.
func TestSamplesComeTogether(t *testing.T) {
	const partitions = 64
	b := manyParts(t, partitions, 100)
	s := open(t, b, nil, ReadAhead(0))
	for i := range 4 {
		p, err := s.Plan(t.Context(), source.Limits{Records: 20 * partitions, Epoch: uint64(i)})
		require.NoError(t, err)
		n := b.fetched()
		require.Less(t, n, partitions/2)
		if i > 1 {
			require.LessOrEqual(t, n, 2, "where the sizes are known")
		}
		for _, r := range p.Ranges {
			require.NoError(t, s.Read(t.Context(), r, func(int64, Record) error { return nil }))
		}
		b.fetched()
	}
}

// TestRangesComeTogetherAreExact: whatever the sizes, limits and faults, each range gives
// each of its records once, and what is kept stays within the budget.
func TestRangesComeTogetherAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newFake(t)
		defer b.close()
		partitions := rapid.IntRange(2, 12).Draw(rt, "partitions")
		for i := range int32(partitions) {
			var batches []batchtest.Batch
			at := int64(0)
			for range rapid.IntRange(0, 12).Draw(rt, "batches") {
				n := rapid.IntRange(1, 8).Draw(rt, "records")
				values := make([]string, n)
				for k := range values {
					values[k] = fmt.Sprintf("%d/%d/", i, at+int64(k)) + strings.Repeat("x", rapid.SampledFrom([]int{1, 200, 5000}).Draw(rt, "size"))
				}
				batches = append(batches, batchtest.Values(at, values...))
				at += int64(n)
			}
			b.log("t", i, batches...)
		}
		fails := rapid.SampledFrom([]int{0, 0, 13}).Draw(rt, "one of so many requests fails, 0: none")
		fetches := 0
		b.mu.Lock()
		b.fault = func(key int16, _ int) (int16, string) {
			if fetches++; key == 1 && fails > 0 && fetches%fails == 0 {
				return 0, "close"
			}
			return 0, ""
		}
		b.mu.Unlock()
		budget := rapid.SampledFrom([]int64{4 << 10, 20 << 10, 1 << 20}).Draw(rt, "budget")
		s := made(b, ReadAhead(budget), FetchMaxBytes(rapid.SampledFrom([]int{4 << 10, 64 << 10}).Draw(rt, "fetch")))
		require.NoError(rt, s.Open(t.Context(), nil))
		defer s.Close()
		next := make([]int64, partitions)
		for epoch := uint64(0); ; epoch++ {
			p, err := s.Plan(t.Context(), source.Limits{Records: rapid.Int64Range(20, 200).Draw(rt, "limit"), Epoch: epoch})
			require.NoError(rt, err)
			left := 0
			for _, i := range rapid.Permutation(seq(partitions)).Draw(rt, "order") {
				r := p.Ranges[i]
				require.Equal(rt, next[i], r.From)
				left += int(r.Until - r.From)
				for range rapid.IntRange(1, 2).Draw(rt, "reads") {
					next[i] = r.From
					require.NoError(rt, s.Read(t.Context(), r, func(o int64, v Record) error {
						require.Equal(rt, next[i], o)
						require.True(rt, strings.HasPrefix(v.Text(), fmt.Sprintf("%d/%d/", i, o)))
						next[i]++
						return nil
					}))
					require.Equal(rt, r.Until, next[i])
				}
			}
			s.ahead.settle()
			s.ahead.mu.Lock()
			used, kept := s.ahead.used, int64(0)
			for _, k := range s.ahead.parts {
				for _, c := range k.chunks {
					kept += c.size
				}
			}
			s.ahead.mu.Unlock()
			require.Equal(rt, kept, used)
			require.LessOrEqual(rt, used, budget)
			if left == 0 {
				return
			}
		}
	})
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
