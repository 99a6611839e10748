package store

import (
	"context"
	"sync"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/statemap"
)

// LoadAll loads version n of all partitions, at most workers at a time (at
// least one). open is called from several goroutines. progress, which may be
// nil, is too, but not at once. If one partition fails, all maps are aborted and
// the error of the lowest one that failed is returned.
func (o *Operator[K, S]) LoadAll(ctx context.Context, n uint64, workers int, open func() (*statemap.Map[K, S], error), progress func(Progress)) ([]*statemap.Map[K, S], []LoadStats, error) {
	parts := o.c.Operator.Partitions
	maps := make([]*statemap.Map[K, S], parts)
	stats := make([]LoadStats, parts)
	var mu sync.Mutex
	tell := progress
	if progress != nil {
		tell = func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			progress(p)
		}
	}
	err := pool.Run(ctx, workers, parts, func(ctx context.Context, _, i int) (err error) {
		maps[i], stats[i], err = o.Load(ctx, i, n, open, tell)
		return err
	})
	if err == nil {
		return maps, stats, nil
	}
	for _, m := range maps {
		if m != nil {
			_ = m.Abort()
		}
	}
	return nil, nil, err
}
