package kafka

import (
	"strings"
	"testing"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// many is n batches of k records of a size, from an offset on.
func many(from int64, n, k, size int) (out []batchtest.Batch) {
	for i := range n {
		values := make([]string, k)
		for j := range values {
			values[j] = strings.Repeat("v", size)
		}
		out = append(out, batchtest.Values(from+int64(i*k), values...))
	}
	return out
}

// epochs reads until nothing is left and gives the bytes of each batch.
func epochs(t *testing.T, s *kafkaSource, l source.Limits) (sizes []int) {
	t.Helper()
	for {
		l.Epoch++
		_, got := readAll(t, s, l)
		if len(got) == 0 {
			return sizes
		}
		n := 0
		for _, v := range got {
			n += len(v)
		}
		sizes = append(sizes, n)
	}
}

// TestBytesAreCappedFromTheFirstBatchOn: nothing is known of the sizes, and large
// records come behind small ones. // report 29, report 36
func TestBytesAreCappedFromTheFirstBatchOn(t *testing.T) {
	for name, batches := range map[string][]batchtest.Batch{
		"large":            many(0, 60, 4, 100<<10),
		"small":            many(0, 100, 3000, 100),
		"large after some": append(many(0, 2, 500, 20), many(1000, 60, 4, 100<<10)...),
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake(t)
			b.log("t", 0, batches...)
			b.log("t", 1, many(0, 5, 10, 10)...)
			const most = 2 << 20
			check := func(l source.Limits, opts ...SourceOption) {
				sizes := epochs(t, open(t, b, nil, opts...), l)
				require.Greater(t, len(sizes), 2)
				for i, n := range sizes {
					require.LessOrEqual(t, n, most*3/2, "batch %d of %v", i, sizes)
				}
			}
			check(source.Limits{}, MaxBatchBytes(most))
			check(source.Limits{Bytes: most})
			check(source.Limits{Bytes: 2 * most}, MaxBatchBytes(most))
		})
	}
}

// TestLargeRecordsAfterManySmallOnes: what was read before tells nothing of a burst of
// large records. // report 29
func TestLargeRecordsAfterManySmallOnes(t *testing.T) {
	b := newFake(t)
	small := many(0, 20, 1000, 10)
	b.log("t", 0, small...)
	const most = 2 << 20
	s := open(t, b, nil, MaxBatchBytes(most))
	require.Len(t, epochs(t, s, source.Limits{}), 1)
	b.log("t", 0, append(small, many(20000, 200, 3, 20<<10)...)...)
	sizes := epochs(t, s, source.Limits{})
	require.Greater(t, len(sizes), 4)
	for i, n := range sizes {
		require.LessOrEqual(t, n, most*3/2, "batch %d of %v", i, sizes)
	}
}

// TestSmallInputIsNotSampled: what cannot matter costs no request.
func TestSmallInputIsNotSampled(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, many(0, 1, 10, 10)...)
	s := open(t, b, nil)
	_, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	require.Zero(t, b.fetches)
}

// TestFetchesAskForWhatIsLeft: a small range does not fetch a mebibyte once the
// records' size is known.
func TestFetchesAskForWhatIsLeft(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, many(0, 200, 10, 100)...)
	s := open(t, b, nil)
	readAll(t, s, source.Limits{Records: 10})
	x := &reading{s: s, p: s.parts[0], next: 10, until: 20}
	require.Less(t, x.size(), 20<<10)
	x.until = 1 << 40
	require.Equal(t, DefaultFetchMaxBytes, x.size())
}

func TestCapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "partitions")
		lags, sizes := make([]int64, n), make([]float64, n)
		for i := range lags {
			lags[i] = rapid.Int64Range(0, 1<<30).Draw(t, "lag")
			sizes[i] = rapid.Float64Range(1, 1<<20).Draw(t, "size")
		}
		l := source.Limits{Records: rapid.SampledFrom([]int64{0, 1, 100, 1 << 20, -1}).Draw(t, "records"), Epoch: rapid.Uint64().Draw(t, "epoch")}
		budget := rapid.Int64Range(1<<10, 1<<30).Draw(t, "budget")
		l.Bytes = budget
		take := capped(lags, sizes, l)
		sum := int64(0)
		for i, k := range take {
			sum += k
			if k < 0 || k > lags[i] {
				t.Fatalf("%d of %d", k, lags[i])
			}
		}
		if l.Records != 0 && sum > max(l.Records, 0) {
			t.Fatalf("%d records, the limit is %d", sum, l.Records)
		}
		if bytesOf(take, sizes) > float64(budget)+float64(n) && sum > 1 {
			t.Fatalf("%v bytes of %d", bytesOf(take, sizes), budget)
		}
		if waiting := source.Share(lags, l); sum == 0 && bytesOf(waiting, sizes) > 0 {
			t.Fatal("nothing moves")
		}
	})
}

// TestOneOfManyPartitions: a limit is a limit with many partitions. // report 36
func TestOneOfManyPartitions(t *testing.T) {
	b := newFake(t)
	const partitions = 200
	b.log("t", 0, many(0, 10, 1000, 5)...)
	for i := int32(1); i < partitions; i++ {
		b.log("t", i, batchtest.Values(0, "x"))
	}
	s := open(t, b, nil)
	seen := map[string]bool{}
	for epoch := range uint64(10) {
		p, got := readAll(t, s, source.Limits{Records: 100, Epoch: epoch})
		require.Len(t, p.Ranges, partitions)
		require.LessOrEqual(t, len(got), 100)
		for _, v := range got {
			seen[v[:strings.Index(v, "@")]] = true
		}
	}
	require.Len(t, seen, partitions, "nobody starves for more than 10 batches")
	_, got := readAll(t, open(t, b, nil), source.Limits{Records: 1})
	require.Len(t, got, 1)
}
