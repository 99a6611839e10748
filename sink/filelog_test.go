package sink

import (
	"context"
	"io"
	"testing"

	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func put(t *testing.T, s vfs.Store, seq uint64) {
	require.NoError(t, s.PutIfAbsent(context.Background(), "u/r/"+seqName(seq), func(w io.Writer) error {
		_, err := w.Write([]byte{1})
		return err
	}))
}

// The end of a log is found with few questions, whatever its length.
func TestLastEntry(t *testing.T) {
	store := vfs.NewObjects()
	for n := uint64(0); n < 300; n++ {
		log := vfs.NewLog("", vfs.KindAll)
		got, err := lastEntry(t.Context(), vfs.WithStoreLog(store, log), "u/r/")
		require.NoError(t, err)
		require.Equal(t, n, got)
		require.LessOrEqual(t, log.Count(vfs.KindStat), 20)
		require.Equal(t, n == 0, log.Count(vfs.KindList) == 1)
		put(t, store, n+1)
	}
	// What has no number for a name is nothing.
	for _, name := range []string{"x", "01", "0", "-1", "18446744073709551616"} {
		store := vfs.NewObjects()
		require.NoError(t, store.PutIfAbsent(t.Context(), "u/r/manifests/"+name, func(io.Writer) error { return nil }))
		n, err := lastEntry(t.Context(), store, "u/r/")
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

// Somebody appends between any two questions: what is found was the end once since
// the search began, or is behind it, and is never a damage.
func TestLastEntryWhileItGrows(t *testing.T) {
	for n := uint64(0); n < 40; n++ {
		for every := range 4 {
			store := vfs.NewObjects()
			for seq := uint64(1); seq <= n; seq++ {
				put(t, store, seq)
			}
			var faults vfs.Faults
			newest, calls := n, 0
			faults.Do(vfs.Rule{Forever: true}, func(vfs.Call) {
				if calls++; calls < 60 && calls%(every+1) == 0 {
					newest++
					put(t, store, newest)
				}
			})
			got, err := lastEntry(t.Context(), vfs.WithStoreFaults(store, &faults), "u/r/")
			require.NoError(t, err, "%d entries at first, %d at last", n, newest)
			require.GreaterOrEqual(t, got, n)
			require.LessOrEqual(t, got, newest)
		}
	}
}

// A log whose end or beginning is missing is not taken for a shorter one.
func TestLastEntryHoles(t *testing.T) {
	for n := uint64(2); n < 40; n++ {
		for _, hole := range []uint64{1, n - 1} {
			store := vfs.NewObjects()
			for seq := uint64(1); seq <= n; seq++ {
				if seq != hole {
					put(t, store, seq)
				}
			}
			end, err := lastEntry(t.Context(), store, "u/r/")
			if err == nil { // the search jumped over the hole
				require.NotEqual(t, uint64(1), hole)
				require.Equal(t, n, end)
				continue
			}
			require.ErrorIs(t, err, ErrDamaged, "entry %d of %d is missing", hole, n)
			require.ErrorContains(t, err, "is missing")
		}
	}
	// Every question may fail.
	store := vfs.NewObjects()
	put(t, store, 1)
	put(t, store, 2)
	for k := 1; ; k++ {
		var faults vfs.Faults
		faults.Fail(vfs.Rule{K: k})
		_, err := lastEntry(t.Context(), vfs.WithStoreFaults(store, &faults), "u/r/")
		if faults.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, vfs.ErrInjected)
	}
}
