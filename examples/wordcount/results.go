package main

import (
	"context"
	"iter"
	"sync"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
)

// results are the outputs of the program.
type results struct {
	n, every int // show the n top words of every so many batches
	show     func(b dstream.Batch, top string)

	// newest is all totals after the newest batch. A batch's RDD is valid until
	// its output returns; this one is retained, so that the totals of the last
	// batch, whichever that will be, can be read after the run.
	newest *rdd.RDD[wordTotal]
}

// counts finds the top words of the batch. A batch that is not shown costs
// nothing here: an RDD is computed only when something asks for its records.
func (r *results) counts(ctx context.Context, b dstream.Batch, changed *rdd.RDD[wordTotal]) error {
	if r.n == 0 || b.Epoch%uint64(r.every) != 0 {
		return nil
	}
	top, err := topOf(ctx, r.n, changed)
	if err != nil || len(top.best) == 0 {
		return err
	}
	r.show(b, top.String())
	return nil
}

// totals keeps the state of the newest batch. It copies nothing: an RDD of the
// state is a view of one version of it.
func (r *results) totals(_ context.Context, _ dstream.Batch, all *rdd.RDD[wordTotal]) error {
	if err := all.Retain(); err != nil {
		return err
	}
	r.release()
	r.newest = all
	return nil
}

// final reads all totals after the run.
func (r *results) final(ctx context.Context) (map[string]int64, error) {
	totals := map[string]int64{}
	if r.newest == nil {
		return totals, nil
	}
	defer r.release()
	pairs, err := rdd.Collect(ctx, r.newest)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		totals[p.Key] = p.Value
	}
	return totals, nil
}

func (r *results) release() {
	if r.newest != nil {
		r.newest.Release()
		r.newest = nil
	}
}

// topOf finds the n top words of an RDD, in which a word may come many times.
func topOf(ctx context.Context, n int, words *rdd.RDD[wordTotal]) (*topWords, error) {
	var mu sync.Mutex // partitions run side by side; it protects top
	top := &topWords{n: n}
	err := rdd.ForeachPartition(ctx, words, func(_ context.Context, _ int, records iter.Seq[wordTotal]) error {
		part := topWords{n: n}
		for c := range records {
			part.add(c.Key, c.Value)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range part.best {
			top.add(c.word, c.total)
		}
		return nil
	})
	return top, err
}
