package dstream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/source"
)

// ErrNoRanges says that a dataset is not what a source gave in one batch, so that it has
// no ranges.
var ErrNoRanges = errors.New("the dataset is not the one of a source: ask the RDD of the source's own stream, before any step on it")

// SourceRanges gives what a batch reads, where r is the RDD of a source's stream (From,
// kafka.DirectStream …) in Transform or ForeachRDD: partition i of r holds the records of
// range i. In a batch that is redone after a crash the ranges are the same. A plan without
// ranges has one partition and none. The slice is the caller's.
//
// It holds for that RDD alone, as in Spark: what was made of it (Map, Filter, Repartition,
// Union, a window …) has no ranges, which is ErrNoRanges.
func SourceRanges[T any](r *rdd.RDD[T]) ([]source.Range, error) {
	if r == nil {
		return nil, errors.New("dstream: ranges of a nil RDD")
	}
	ranges, ok := r.Input().([]source.Range)
	if !ok {
		return nil, fmt.Errorf("dstream: ranges of %q: %w", r.Name(), ErrNoRanges)
	}
	return slices.Clone(ranges), nil
}
