package source_test

import (
	"context"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// report 36: a limit of bytes is kept, but for one record that is larger; whatever is
// allowed, something goes; nobody starves.
func TestShareSized(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "partitions")
		lags, sizes := make([]int64, n), make([]int64, n)
		waiting := int64(0)
		for i := range lags {
			lags[i] = rapid.Int64Range(0, 50).Draw(t, "lag")
			sizes[i] = rapid.Int64Range(1, 30).Draw(t, "size")
			waiting += lags[i]
		}
		bytes := func(i int, n int64) int64 { return n * sizes[i] }
		l := source.Limits{Bytes: rapid.Int64Range(1, 500).Draw(t, "bytes"), Records: rapid.SampledFrom([]int64{source.NoLimit, 1, 7}).Draw(t, "records")}
		for l.Epoch = 0; l.Epoch < uint64(n); l.Epoch++ {
			take := source.ShareSized(lags, l, bytes)
			sum, records := int64(0), int64(0)
			for i, k := range take {
				require.LessOrEqual(t, k, lags[i])
				require.GreaterOrEqual(t, k, int64(0))
				sum, records = sum+bytes(i, k), records+k
			}
			require.True(t, sum <= l.Bytes || records == 1, "%d bytes of %d in %d records", sum, l.Bytes, records)
			require.Equal(t, waiting > 0, records > 0)
			if l.Records != source.NoLimit {
				require.LessOrEqual(t, records, l.Records)
			}
			l.Bytes = max(l.Bytes-1, 1) // another one each time
		}
	})
	bytes := func(_ int, n int64) int64 { return 10 * n }
	lags := []int64{5, 5}
	require.Equal(t, lags, source.ShareSized(lags, source.Limits{}, nil), "no limit asks for no sizes")
	require.Equal(t, lags, source.ShareSized(lags, source.Limits{Bytes: 100}, bytes))
	require.EqualValues(t, 9, sum(source.ShareSized(lags, source.Limits{Bytes: 99}, bytes)))
	require.EqualValues(t, 0, sum(source.ShareSized(lags, source.Limits{Bytes: -1}, bytes)))
	require.EqualValues(t, 0, sum(source.ShareSized(lags, source.Limits{Bytes: 5, Records: -1}, bytes)))
	served := make([]int64, 2)
	for epoch := range uint64(2) { // each record is larger than the limit
		for i, n := range source.ShareSized(lags, source.Limits{Bytes: 5, Epoch: epoch}, bytes) {
			served[i] += n
		}
	}
	require.Equal(t, []int64{1, 1}, served)
}

// What a queue's record counts without SizeOf.
func TestQueueSizes(t *testing.T) {
	for name, c := range map[string]struct {
		s interface {
			Open(ctx context.Context, last *source.Plan) error
			Plan(ctx context.Context, l source.Limits) (source.Plan, error)
		}
		most, want int64
	}{
		"texts":   {source.NewQueue(1, []string{"four", "", "four"}), 8, 2},
		"numbers": {source.NewQueue(1, []int64{1, 2, 3}), 17, 2},
		"bytes":   {source.NewQueue(1, [][]byte{{1, 2}, nil, {3}}), 4, 3},
	} {
		require.NoError(t, c.s.Open(t.Context(), nil))
		p, err := c.s.Plan(t.Context(), source.Limits{Bytes: c.most})
		require.NoError(t, err)
		require.Equal(t, c.want, p.Ranges[0].Until, name)
	}
}
