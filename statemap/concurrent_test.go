package statemap

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// One writer, readers of older versions on other goroutines, detaching in the
// background, releases from anywhere. The race detector checks the locking; the
// readers check that each version stays what it was: every key of version v
// holds v or, if it was not due yet, what it held before.
func TestReadersAndWriter(t *testing.T) {
	defer goleak.VerifyNone(t)
	const keys, versions = 3000, 60
	var wg sync.WaitGroup
	m := newStrings[int64](t, Options[string]{DeltaChainThreshold: 4, Background: func(f func()) { wg.Go(f) }})
	name := func(i int) string { return fmt.Sprintf("user-%07d", i) }
	for i := range keys {
		require.NoError(t, m.Put(name(i), int64(i%10), 0))
	}
	sum := func(v int) (s int64) { // of the states of version v
		for i := range keys {
			s += int64(i % 10)
		}
		return s + int64(v)*keys/10
	}
	reader := func(h *Map[string, int64], v int, done <-chan struct{}) {
		for range 3 {
			var got int64
			n := 0
			for k, e := range h.All() {
				got += e.State
				if n++; n%97 == 0 {
					s, ok, err := h.Get(k)
					if err != nil || !ok || s != e.State {
						t.Errorf("version %d key %s: %d %v %v, iterator says %d", v, k, s, ok, err, e.State)
					}
				}
			}
			if got != sum(v) || n != keys {
				t.Errorf("version %d sums to %d in %d keys, want %d", v, got, n, sum(v))
			}
		}
		if v%5 == 0 {
			if err := h.Compact(); err != nil {
				t.Error(err)
			}
		}
		<-done // the writer may still abort and copy this version again
		h.Release()
	}
	var b Block[string, int64]
	ks, hs := make([]string, 0, BlockSize), make([]uint64, 0, BlockSize)
	for v := 1; v <= versions; v++ {
		old := m
		var err error
		m, err = old.Copy()
		require.NoError(t, err)
		done := make(chan struct{})
		wg.Go(func() { reader(old, v-1, done) })
		for attempt := range 2 {
			for i := v % 10; i < keys; {
				ks, hs = ks[:0], hs[:0]
				for ; i < keys && len(ks) < BlockSize; i += 10 {
					ks = append(ks, name(i))
					hs = append(hs, m.Hash(name(i)))
				}
				require.NoError(t, m.Resolve(&b, hs, ks))
				for j := range ks {
					s, _, _ := b.Load(j)
					b.Set(j, s+1, int64(v))
				}
				require.NoError(t, m.Apply(&b))
			}
			if attempt == 0 && v%7 == 0 { // R4, while others read
				require.NoError(t, m.Put("extra", 1, 1))
				prev := m
				require.NoError(t, m.Abort())
				require.ErrorIs(t, prev.Err(), ErrReleased)
				m = copyOf(t, old)
				continue
			}
			break
		}
		close(done)
	}
	wg.Wait()
	require.NoError(t, verify(m))
}
