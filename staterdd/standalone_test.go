package staterdd

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

// A Partition used alone gives what a whole version gives.
func TestPartitionAlone(t *testing.T) {
	op, err := NewOperator(countSpec().Timeout(5).NumPartitions(1), Options{BlockSize: 2})
	require.NoError(t, err)
	require.Equal(t, "mapWithState", op.Name())
	p, err := op.NewPartition()
	require.NoError(t, err)
	require.NoError(t, p.Begin(Batch{Time: at(1)}))
	require.ErrorIs(t, p.Begin(Batch{Time: at(1)}), ErrOverlap)
	require.NoError(t, p.Update([]string{"a", "b", "a"}, []int{1, 2, 3}))
	require.NoError(t, p.Expire())
	r := p.Seal()
	require.Equal(t, []rdd.Pair[string, int]{kv("a", 1), kv("b", 2), kv("a", 4)}, slices.Collect(r.Mapped.All()))
	require.Equal(t, Stats{Keys: 2, Calls: 3, Changed: 2, Inserted: 2, HeapBytes: r.Stats.HeapBytes}, r.Stats)
	p.Recycle(r)

	for range 2 { // aborted, it leaves nothing
		require.NoError(t, p.Begin(Batch{Time: at(7)}))
		require.NoError(t, p.Update([]string{"b", "c"}, []int{1, 1}))
		require.NoError(t, p.Expire())
		require.NoError(t, p.Abort())
	}
	require.NoError(t, p.Begin(Batch{Time: at(7)}))
	s := rdd.Shuffle(rdd.Parallelize([]rdd.Pair[string, int]{kv("b", 5)}, 1), op.Partitioner())
	require.NoError(t, rdd.Materialize(t.Context(), rdd.Local(1, nil), s.Stage()))
	require.NoError(t, p.UpdateRows(s.Blocks(0)[0]))
	require.NoError(t, p.Expire())
	r = p.Seal()
	require.Equal(t, []rdd.Pair[string, int]{kv("b", 7), kv("a", -4)}, slices.Collect(r.Mapped.All()))
	require.EqualValues(t, 1, r.Stats.Removed)
	for m := range r.Mapped.All() {
		require.Equal(t, "b", m.Key)
		break
	}
}

// The steady state allocates nothing per record.
func TestNoAllocationsPerRecord(t *testing.T) {
	op, err := NewOperator(countSpec().NumPartitions(1).Timeout(1<<40), Options{})
	require.NoError(t, err)
	p, err := op.NewPartition()
	require.NoError(t, err)
	keys, values := make([]string, 10_000), make([]int, 10_000)
	for i := range keys {
		keys[i] = string(rune('a'+i%26)) + string(rune('a'+i/26%26))
	}
	now := int64(0)
	batch := func() {
		now++
		require.NoError(t, p.Begin(Batch{Time: at(now)}))
		require.NoError(t, p.Update(keys, values))
		require.NoError(t, p.Expire())
		p.Recycle(p.Seal())
	}
	batch()
	batch()
	require.Less(t, testing.AllocsPerRun(10, batch), 100.0)
}

// Chunks: the first of a batch is small, free ones pin nothing and their number is bounded.
func TestChunks(t *testing.T) {
	pool := &chunkPool[*int]{}
	m := mapped[*int]{pool: pool}
	require.Empty(t, m.take())
	for i := range 3000 {
		m.push(&i)
	}
	c := Chunks[*int](m.take())
	require.Equal(t, 3000, c.Len())
	require.Equal(t, smallChunk, cap(c[0]))
	i := 0
	for p := range c.All() {
		require.Equal(t, i, *p)
		i++
	}
	pool.put(c)
	free := pool.get(largeChunk)[:largeChunk]
	for _, p := range free {
		require.Nil(t, p)
	}
	m.reserve(5)
	m.drop()
	require.Len(t, pool.small, 1)
	for range 2 * keptChunks {
		pool.put([][]*int{make([]*int, 0, smallChunk), make([]*int, 0, 3)})
	}
	require.Len(t, pool.small, keptChunks)
}
