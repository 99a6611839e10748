package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// A version that was loaded has no parents, however many made it: it is the first of a
// table of its own, so its delta is all that it has, and no read walks anywhere. On
// disk a snapshot cuts the line as well: nothing before it is read. // SR3
func TestLoadedVersionHasNoParents(t *testing.T) {
	const parts, versions = 2, 30
	w := begin(t, vfs.NewObjects(), parts, 1, withPolicy(store.EveryVersions(100)))
	w.run(versions)
	loaded := func(part int) store.LoadStats {
		m, stats, err := w.fresh().Load(context.Background(), part, versions, mapOf, nil)
		require.NoError(t, err)
		m.Seal()
		defer m.Release()
		want := w.want[versions][part]
		require.Equal(t, want, contents(m))
		require.Zero(t, m.DeltaChainLength())
		delta, err := m.Delta()
		require.NoError(t, err)
		all := model{}
		for e := range delta {
			require.False(t, e.Removed, "a tombstone of %q is for a parent", e.Key)
			all[e.Key] = val{e.State, e.Time}
		}
		require.Equal(t, want, all)
		return stats
	}
	for p := range parts {
		// The version that the run made by itself has parents: its delta is not all of it.
		require.Less(t, w.live[p].DeltaLen(), w.live[p].Len())
		stats := loaded(p)
		require.Greater(t, stats.Deltas, 20, "most versions changed something")
		require.Zero(t, stats.Head)
	}
	for p := range parts {
		_, err := w.op.Snapshot(context.Background(), p, versions, w.live[p])
		require.NoError(t, err)
		stats := loaded(p)
		require.Equal(t, 1, stats.Files)
		require.Zero(t, stats.Deltas)
		require.EqualValues(t, versions, stats.Head)
	}
}
