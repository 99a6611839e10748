package store_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/vfs"
)

// Report 16: 64 partitions, 1000 batches a second apart, a snapshot every 10,
// two kept, and one partition whose uploads take 30 s: files and chains stay
// bounded, nobody else waits, nothing is listed.
func TestReport16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts, interval, keep, slow = 64, 10, 2, 17
		batches := uint64(1000)
		if testing.Short() {
			batches = 200
		}
		log := vfs.NewLog("", vfs.KindAll)
		ctx, cancel := context.WithCancel(context.Background())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		sys := clock.System() // that of the bubble
		w := begin(t, vfs.WithStoreLog(vfs.NewObjects(), log), parts, 1, withPolicy(store.EveryVersions(interval)),
			withConfig(func(c *store.MaintainerConfig) { c.Clock = sys }))
		w.upload = func(ctx context.Context, part int, _ uint64) error {
			if part != slow {
				return nil
			}
			timer := sys.NewTimer(30 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		go func() { _ = w.maint.Run(ctx) }()

		waited := 0
		for n := uint64(1); n <= batches; n++ {
			changes := make([]change, parts)
			for p := range changes {
				if p%16 != 3 || n < 5 { // some are idle
					changes[p] = change{fmt.Sprint("k", n%3): set(int64(n))}
				}
			}
			if n == 2 {
				log.Reset() // the kit's own reader has found the first commit
			}
			before := sys.Now()
			w.epoch(changes...)
			if sys.Now().After(before) {
				waited++
			}
			tick := sys.NewTimer(time.Second)
			<-tick.C()
			synctest.Wait()
			s := w.maint.Stats()
			require.LessOrEqual(t, s.ChainMax, uint64(2*interval), "batch %d", n)
			for id, v := range s.Last {
				if id.Partition != slow {
					require.LessOrEqual(t, n-v, uint64(interval+interval/2), "partition %d at batch %d is starved by the slow one", id.Partition, n)
				}
			}
		}
		require.Zero(t, log.Count(vfs.KindList), "lists in steady state")
		s := w.maint.Stats()
		require.Positive(t, waited, "the slow partition makes some commit wait")
		require.LessOrEqual(t, waited, int(batches)/8)
		require.Zero(t, s.Failed)
		for p := range parts {
			require.LessOrEqual(t, len(w.names(p)), 2*keep*interval+keep, "partition %d", p)
		}
		require.LessOrEqual(t, len(list(t, w.store, "commits/")), 2*keep*interval+keep)
		w.checkKept(s.Oldest)
	})
}

func list(t tester, s vfs.Store, folder string) []vfs.Object {
	objects, err := s.List(context.Background(), folder)
	require.NoError(t, err)
	return objects
}
