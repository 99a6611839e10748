package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// P5, CE6, CE7, CE19: maintenance of an older run is frozen before each of its
// calls, a newer run goes on for some epochs and cleans up, and then the older
// one wakes up. It takes nothing away, and its snapshots harm nobody.
func TestZombieMaintenance(t *testing.T) {
	prepare := func(f *vfs.Faults) (*world, *vfs.Objects) {
		s := vfs.NewObjects()
		w := begin(t, vfs.WithStoreFaults(s, f), 2, 1, withPolicy(store.EveryVersions(3)))
		for w.newest() < 8 {
			w.run(w.newest() + 1)
			w.round()
		}
		w.run(10) // now there is something to write and to delete
		return w, s
	}
	var clean vfs.Faults
	w, _ := prepare(&clean)
	before := clean.Calls()
	w.round()
	calls := clean.Calls() - before
	require.Greater(t, calls, 5)

	for k := 1; k <= calls; k++ {
		var f vfs.Faults
		old, s := prepare(&f)
		frozen := f.Freeze(vfs.Rule{K: k})
		done := make(chan error)
		go func() { done <- old.maint.Round(context.Background()) }()
		<-frozen.Reached()

		young := begin(t, s, 2, 2, withPolicy(store.EveryVersions(3)))
		young.want = old.want
		kept := old.maint.Stats().Oldest
		young.round()
		goOn := func(n uint64) {
			for young.newest() < n {
				young.run(young.newest() + 1)
				young.round()
			}
			kept = max(kept, young.maint.Stats().Oldest)
			young.checkKept(kept)
		}
		goOn(13)
		frozen.Thaw()
		require.NoError(t, <-done)
		young.checkKept(kept)
		goOn(20)
		again := begin(t, s, 2, 3, withPolicy(store.EveryVersions(3)))
		again.want = young.want
		again.round()
		again.checkKept(kept)
		require.Zero(t, again.stats[0].Repaired)
	}
}
