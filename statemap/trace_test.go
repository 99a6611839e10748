package statemap

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// C4 for whole blocks: a key that comes and goes within one block leaves no
// delta entry behind, and no slot and index cell after the next Copy.
func TestBlockInsertAndDeleteLeavesNothing(t *testing.T) {
	m := newStrings[int64](t, Options[string]{})
	require.NoError(t, m.Put("stays", 1, 1))
	var b Block[string, int64]
	for e := range 5 {
		next := copyOf(t, m)
		m.Release()
		m = next
		keys := []string{fmt.Sprint("gone", e), "stays", fmt.Sprint("gone", e)}
		require.NoError(t, m.Resolve(&b, hashesOf(m, keys), keys))
		b.Set(0, 1, 1)
		b.Set(1, 2, 2)
		b.Delete(2)
		require.NoError(t, m.Apply(&b))
		require.Empty(t, b.Inserted())
		seq, err := m.Delta()
		require.NoError(t, err)
		require.Equal(t, []DeltaEntry[string, int64]{{Key: "stays", State: 2, Time: 2}}, slices.Collect(seq))
		require.LessOrEqual(t, m.ApproxSize(), 2)
	}
	next := copyOf(t, m)
	m.Release()
	require.Equal(t, 1, next.ApproxSize())
	require.NoError(t, verify(next))
}

func hashesOf(m *Map[string, int64], keys []string) (h []uint64) {
	for _, k := range keys {
		h = append(h, m.Hash(k))
	}
	return h
}

// A key that was removed, put back and removed again is pending twice; an
// iterator over the later list still needs its slot, or the tombstone would
// name another key.
func TestDeltaIteratorKeepsSlotsPendingFromBefore(t *testing.T) {
	key := func(i int) string { return fmt.Sprintf("k%04d", i) }
	v1 := newStrings[int64](t, Options[string]{})
	for i := range 2 * scanLen {
		require.NoError(t, v1.Put(key(i), 1, 1))
	}
	last := key(2*scanLen - 1)
	v2 := copyOf(t, v1)
	require.NoError(t, v2.Remove(last))
	v3 := copyOf(t, v2)
	require.NoError(t, v3.Put(last, 2, 2))
	v4 := copyOf(t, v3)
	for i := range 2 * scanLen {
		require.NoError(t, v4.Remove(key(i)))
	}
	for i := range 4 * scanLen { // so that the table is not made smaller
		require.NoError(t, v4.Put(fmt.Sprint("n", i), 1, 1))
	}
	delta, err := v4.Delta()
	require.NoError(t, err)
	want := slices.Collect(delta)
	var got []DeltaEntry[string, int64]
	for e := range delta {
		if got = append(got, e); len(got) == 1 {
			v1.Release()
			v2.Release()
			v3.Release()
			v5 := copyOf(t, v4)
			require.NoError(t, v5.Put("other", 3, 3))
		}
	}
	require.True(t, slices.Equal(want, got))
}

// A Copy while a sealed version is exported must not take away the list that
// the export reads the version before through.
func TestExportBesideCopy(t *testing.T) {
	m := newStrings[int64](t, Options[string]{})
	for i := range 4000 {
		require.NoError(t, m.Put(fmt.Sprint(i), 1, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e := range 60 {
		next := copyOf(t, m)
		m.Release()
		m = next
		for i := range 4000 {
			if i%3 == e%3 {
				require.NoError(t, m.Put(fmt.Sprint(i), int64(e), 2))
			}
		}
		m.Seal()
		done := make(chan Dump[string, int64], 1)
		go func() {
			d, err := m.Export()
			if err != nil {
				d.Count = -1
			}
			done <- d
		}()
		for range e * 20 { // another moment each time
			m.DeltaChainLength()
		}
		open := copyOf(t, m)
		select {
		case d := <-done:
			require.Equal(t, 4000, d.Count)
			require.True(t, len(d.Own) == 0 || len(d.Own) >= 1333, "%d changes", len(d.Own))
		case <-ctx.Done():
			require.Fail(t, "the export panicked under the lock")
		}
		open.Release()
	}
}
