package main

import (
	"context"
	"iter"
	"maps"
	"sync"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// wordTotal is what the job emits for every word it sees: the word and how
// often it has been seen so far.
type wordTotal = dstream.Pair[string, int64]

// job counts the words of the lines of text. That is the whole of it; the rest
// of this program finds text, shows results and checks them.
func job(text source.Source[string], partitions int, out outputs) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		lines := dstream.From(ssc, "text", text)
		words := dstream.FlatMapEmit(lines, func(line string, emit func(string)) error {
			eachWord(line, emit)
			return nil
		})
		ones := dstream.MapPair(words, func(word string) (string, int64) { return word, 1 })
		counts := dstream.MapWithState(ones, dstream.Function(
			func(word string, one dstream.Option[int64], state *dstream.State[int64]) wordTotal {
				total := state.OrElse(0) + one.OrElse(0)
				state.Update(total)
				return dstream.KV(word, total)
			}).Named("counts").NumPartitions(partitions))
		dstream.ForeachRDD(counts, out.counts, dstream.Name("top words"))
		dstream.ForeachRDD(counts.StateSnapshots(), out.totals, dstream.Name("totals"))
		return nil
	}
}

// outputs are the job's two outputs: the totals that a batch changed, and all
// totals after it.
type outputs interface {
	counts(ctx context.Context, b dstream.Batch, changed *rdd.RDD[wordTotal]) error
	totals(ctx context.Context, b dstream.Batch, all *rdd.RDD[wordTotal]) error
}

// results are the outputs of the program.
type results struct {
	n, every int         // show the n top words of every so many batches
	last     func() bool // the running batch is the last one
	show     func(b dstream.Batch, top string)

	final map[string]int64 // the totals after the last batch
}

// counts finds the top words of the batch. A batch that is not shown costs
// nothing here: an RDD is computed only when something asks for its records.
func (r *results) counts(ctx context.Context, b dstream.Batch, changed *rdd.RDD[wordTotal]) error {
	if r.n == 0 || (b.Epoch%uint64(r.every) != 0 && !r.last()) {
		return nil
	}
	var mu sync.Mutex // partitions run side by side; it protects top
	top := topWords{n: r.n}
	err := rdd.ForeachPartition(ctx, changed, func(_ context.Context, _ int, records iter.Seq[wordTotal]) error {
		part := topWords{n: r.n}
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
	if err != nil {
		return err
	}
	r.show(b, top.String())
	return nil
}

// totals takes the whole state, after the last batch only.
func (r *results) totals(ctx context.Context, _ dstream.Batch, all *rdd.RDD[wordTotal]) error {
	if !r.last() {
		return nil
	}
	pairs, err := rdd.Collect(ctx, all)
	if err != nil {
		return err
	}
	r.final = maps.Collect(func(yield func(string, int64) bool) {
		for _, p := range pairs {
			if !yield(p.Key, p.Value) {
				return
			}
		}
	})
	return nil
}
