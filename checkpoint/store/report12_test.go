package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// twenty gives a root with deltas 1..20 and snapshots at 10 and 20 of one
// partition in which every version changes something.
func twenty(t *testing.T) (*world, *vfs.Objects) {
	s := vfs.NewObjects()
	w := begin(t, s, 1, 1)
	for n := uint64(1); n <= 20; n++ {
		w.epoch(change{"always": set(int64(n)), "k": set(7)})
		w.round()
	}
	require.Contains(t, w.names(0), "10.1.snapshot")
	require.Contains(t, w.names(0), "20.1.snapshot")
	return w, s
}

func flip(t *testing.T, s vfs.Store, name string, at int) {
	b := read(t, s, name)
	b[at%len(b)] ^= 0x10
	replace(t, s, name, b)
}

// Report 12 (i)–(iii): a snapshot that is flipped, empty or deleted.
func TestReport12BadSnapshot(t *testing.T) {
	for how, damage := range map[string]func(t *testing.T, s vfs.Store, name string){
		"flipped": func(t *testing.T, s vfs.Store, name string) { flip(t, s, name, 40) },
		"empty":   func(t *testing.T, s vfs.Store, name string) { replace(t, s, name, nil) },
		"deleted": func(t *testing.T, s vfs.Store, name string) { require.NoError(t, s.Delete(context.Background(), name)) },
	} {
		t.Run(how, func(t *testing.T) {
			w, s := twenty(t)
			damage(t, s, snapshot(0, 20, 1))

			again := begin(t, s, 1, 2)
			again.want = w.want
			require.Equal(t, w.want[20][0], contents(again.live[0]))
			st := again.stats[0]
			require.EqualValues(t, 10, st.Head)
			require.Equal(t, 10, st.Deltas)
			require.Equal(t, 1, st.Repaired, "counter snapshot_repaired")
			if how != "deleted" {
				require.Len(t, st.Bad, 1)
				require.Equal(t, snapshot(0, 20, 1), st.Bad[0].File)
			}
			// The bad name stays as it is; a later version gets a good one (P4).
			again.round()
			require.NotContains(t, again.names(0), "20.2.snapshot")
			again.epoch(change{"always": set(21)})
			again.round()
			require.Contains(t, again.names(0), "21.2.snapshot")
			require.EqualValues(t, 1, again.maint.Stats().Repaired)
			require.Equal(t, store.NoticeSnapshotBad, again.notices[0].Kind)
			if how == "empty" {
				require.Empty(t, read(t, s, snapshot(0, 20, 1)))
			}
			third := begin(t, s, 1, 3)
			require.EqualValues(t, 21, third.stats[0].Head)
			require.Zero(t, third.stats[0].Repaired)
			require.Equal(t, again.want[21][0], contents(third.live[0]))
		})
	}
}

// Report 12 (iv): a bad delta below a good snapshot is never looked at.
func TestReport12BadDeltaBelowSnapshot(t *testing.T) {
	w, s := twenty(t)
	flip(t, s, delta(0, 15), 30)
	w.check(20)
	require.NoError(t, s.Delete(context.Background(), delta(0, 12)))
	w.check(20)
}

// Report 12 (v): bad delta and bad snapshot.
func TestReport12NothingPartial(t *testing.T) {
	w, s := twenty(t)
	flip(t, s, delta(0, 15), 30)
	flip(t, s, snapshot(0, 20, 1), 40)
	m, _, err := w.fresh().Load(context.Background(), 0, 20, mapOf, nil)
	require.Nil(t, m)
	var e *store.LoadError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, store.ErrNotLoadable)
	require.Equal(t, delta(0, 15), e.File)
	require.EqualValues(t, 20, e.Version)
	require.EqualValues(t, 15, e.At)
	require.Zero(t, e.Partition)
	for _, part := range []string{"counts", "partition 0", "version 20", delta(0, 15), snapshot(0, 20, 1)} {
		require.ErrorContains(t, err, part)
	}
	_, _, err = w.fresh().LoadAll(context.Background(), 20, 2, mapOf, nil)
	require.ErrorIs(t, err, store.ErrNotLoadable)
	// What does not need either is there.
	w.check(14)
}
