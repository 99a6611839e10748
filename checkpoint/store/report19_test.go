package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// Report 19: a load tells how far it is, by partition, files, bytes and keys.
func TestReport19Progress(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 4, 1, withPolicy(store.EveryVersions(6)))
	for n := uint64(1); n <= 10; n++ {
		var list []change
		for p := range 4 {
			c := change{}
			for i := range 50 {
				c[fmt.Sprintf("key %d of %d", i, n)] = set(int64(p))
			}
			list = append(list, c)
		}
		w.epoch(list...)
		w.round()
	}
	last := map[int]store.Progress{}
	events := map[int]int{}
	maps, stats, err := w.fresh().LoadAll(context.Background(), 10, 3, mapOf, func(p store.Progress) {
		before := last[p.Partition]
		require.False(t, before.Done)
		require.Equal(t, "counts", p.Operator)
		require.GreaterOrEqual(t, p.Files, before.Files)
		require.GreaterOrEqual(t, p.Bytes, before.Bytes)
		require.GreaterOrEqual(t, p.Keys, before.Keys)
		require.LessOrEqual(t, p.Files, p.FilesTotal)
		require.LessOrEqual(t, p.Bytes, p.BytesTotal)
		last[p.Partition] = p
		events[p.Partition]++
	})
	require.NoError(t, err)
	for p := range 4 {
		require.True(t, last[p].Done)
		require.Equal(t, 5, last[p].Files, "a snapshot and four deltas")
		require.Equal(t, last[p].BytesTotal, last[p].Bytes)
		require.EqualValues(t, 500, last[p].Keys)
		require.Equal(t, 6, events[p])
		require.Equal(t, 5, stats[p].Files)
		require.Equal(t, 4, stats[p].Deltas)
		require.EqualValues(t, 6, stats[p].Head)
		require.Equal(t, last[p].Bytes, stats[p].Bytes)
		require.Equal(t, store.Partition{Operator: 1, Partition: p}, stats[p].Partition)
		require.Equal(t, w.want[10][p], contents(maps[p]))
		require.False(t, maps[p].Sealed())
	}
}

// A large file is told of while it is read.
func TestReport19LargeFile(t *testing.T) {
	s := vfs.NewObjects()
	w := begin(t, s, 1, 1)
	m, err := mapOf()
	require.NoError(t, err)
	const keys = 1_000_000
	for i := range keys {
		require.NoError(t, m.Put(benchKey(i), int64(i), 1))
	}
	w.live[0] = m
	w.want[1] = []model{{}}
	next, err := m.Copy()
	require.NoError(t, err)
	pc, err := w.op.WriteDelta(context.Background(), 0, 1, 1e9, checkpoint.PartitionCommit{}, next, true)
	require.NoError(t, err)
	w.commitAs(1, pc)

	events := 0
	before := heap()
	loaded, _, err := w.fresh().Load(context.Background(), 0, 1, mapOf, func(p store.Progress) {
		events++
		require.LessOrEqual(t, p.Bytes, p.BytesTotal)
	})
	require.NoError(t, err)
	require.Equal(t, keys, loaded.Len())
	require.GreaterOrEqual(t, events, 4, "about every 8 MiB")
	peak := loaded.HeapBytes()
	require.LessOrEqual(t, heap()-before, peak*3/2, "memory of the load at most 1.5 times the state")
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// One that fails takes all others back.
func TestLoadAllGivesNothingPartial(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 3, 1)
	w.run(6)
	flip(t, w.store, delta(1, 3), 60)
	var maps []*statemap.Map[string, int64]
	_, _, err := w.fresh().LoadAll(context.Background(), 6, 1, func() (*statemap.Map[string, int64], error) {
		m, err := mapOf()
		maps = append(maps, m)
		return m, err
	}, nil)
	var e *store.LoadError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Partition)
	require.NotEmpty(t, maps)
	for _, m := range maps {
		require.ErrorIs(t, m.Err(), statemap.ErrReleased)
	}
	_, _, err = w.fresh().LoadAll(context.Background(), 6, 2, func() (*statemap.Map[string, int64], error) {
		return nil, errors.New("no memory")
	}, nil)
	require.EqualError(t, err, "no memory")
}
