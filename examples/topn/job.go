package main

import (
	"cmp"
	"context"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// count is how often a term was searched for.
type count = dstream.Pair[string, int]

// order compares by count; of equal counts the term that comes first in the
// alphabet is the greater one, so that a chart never depends on chance.
func order(a, b count) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Key, a.Key))
}

// job gives show the n greatest counts of the terms of the last window, the
// greatest first, in every batch; of a window without searches an empty chart.
func job(searches source.Source[string], n int, window, interval time.Duration, show func(b dstream.Batch, chart []count) error) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		terms := dstream.From(ssc, "searches", searches)
		ones := dstream.MapPair(terms, func(term string) (string, int) { return term, 1 })
		counts := dstream.ReduceByKeyAndWindowInverse(ones,
			func(a, b int) int { return a + b },         // a batch comes
			func(a, b int) int { return a - b },         // a batch leaves
			func(_ string, n int) bool { return n > 0 }, // else a term would stay with 0
			window, interval, dstream.Name("counts"), dstream.NumPartitions(4))
		charts := dstream.Transform(counts, func(_ time.Time, r *dstream.RDD[count]) (*dstream.RDD[count], error) {
			top, err := rdd.Top(context.Background(), r, n, order)
			return rdd.Parallelize(top, 1), err
		})
		dstream.ForeachRDD(charts, func(ctx context.Context, b dstream.Batch, r *dstream.RDD[count]) error {
			chart, err := rdd.Collect(ctx, r)
			if err != nil {
				return err
			}
			return show(b, chart)
		}, dstream.Name("chart"))
		return nil
	}
}
