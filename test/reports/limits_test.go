package reports

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

const manyPartitions = 200

// counted is a job that only counts; its input has 200 partitions.
func counted(t *testing.T, opts ...dstream.ContextOption) (*milltest.Kit, *milltest.In[int]) {
	t.Helper()
	kit := milltest.New(t, time.Second, func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.Count(dstream.From(ssc, "in", source.NewQueue[int](1))), 1, dstream.Name("out"))
		return nil
	}, opts...)
	return kit, milltest.Input[int](kit, "in")
}

// report 36: the cap holds from the first batch on, and no partition starves
// behind a great backlog.
func TestCapOfTheFirstBatch(t *testing.T) {
	t.Parallel()
	const backlog = 1_000_000
	kit, in := counted(t, dstream.WithMaxRecordsPerBatch(100))
	in.Backlog(17, make([]int, backlog)...)
	for p := range manyPartitions {
		if p != 17 {
			in.Backlog(p, 1)
		}
	}
	kit.Tick(10)
	require.NoError(t, kit.Err())
	read := map[string]int64{}
	for i, p := range kit.Progress() {
		assert.LessOrEqual(t, p.InputRows, int64(100), "batch %d", i+1)
		assert.NotZero(t, p.InputRows, "batch %d", i+1)
		for _, r := range p.Sources[0].Ranges {
			read[r.Partition] += r.InputRows
		}
	}
	for p, n := range read {
		assert.NotZero(t, n, "partition %s got nothing in ten batches", p)
	}
	assert.Len(t, read, manyPartitions)
}

// report 36: a limit below the number of partitions is no "no limit".
func TestLimitOfOneRecord(t *testing.T) {
	t.Parallel()
	kit, in := counted(t, dstream.WithMaxRecordsPerBatch(1))
	for p := range manyPartitions {
		in.Backlog(p, 1, 2)
	}
	kit.Tick(2 * manyPartitions)
	for i, batch := range milltest.Output[int64](kit, "out") {
		assert.Equal(t, []int64{1}, batch, "batch %d", i+1)
	}
	kit.Tick(1)
	assert.Equal(t, []int64{0}, milltest.Output[int64](kit, "out")[2*manyPartitions], "all was read, once")
}

// report 36: 0 is refused; who wants no limit says so in words.
func TestLimitOfZero(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, -2} {
		kit, _ := counted(t, dstream.WithMaxRecordsPerBatch(limit))
		require.ErrorIs(t, kit.Start(), dstream.ErrInvalid)
		assert.ErrorContains(t, kit.Err(), "Unlimited")
		assert.ErrorContains(t, kit.Err(), "limits_test.go")
	}
	kit, _ := counted(t, dstream.WithMaxRatePerPartition(0))
	require.ErrorIs(t, kit.Start(), dstream.ErrInvalid)
	_ = kit.Err()

	kit, in := counted(t, dstream.WithMaxRecordsPerBatch(dstream.Unlimited))
	in.Backlog(0, make([]int, 10_000)...)
	kit.Tick(1)
	assert.Equal(t, [][]int64{{10_000}}, milltest.Output[int64](kit, "out"))
}
