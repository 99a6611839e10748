package oracle

import (
	"context"
	"fmt"
	"strconv"

	"github.com/statemill/statemill/source"
)

// perBatch is how many offsets each batch of a Script has in each partition.
const perBatch = 1 << 20

// Script is a source that outlives runs: batch i has the offsets from i*perBatch on
// in every partition, so a position says which batch is next, of empty ones too. A
// run that goes on from a position gets the batches after it, and one that redoes a
// plan those of the plan, whatever other runs were given before. Records of a batch
// are spread as those of Spark's makeRDD: partition p of n has [p*len/n, (p+1)*len/n).
type Script[T any] struct {
	Batches    [][]T
	Partitions int

	next int64 // the batch of the next plan
}

var _ source.Source[int] = (*Script[int])(nil)

// Open implements source.Source.
func (s *Script[T]) Open(_ context.Context, last *source.Plan) error {
	s.next = 0
	if last != nil && len(last.Ranges) > 0 {
		s.next = last.Ranges[0].Until / perBatch
	}
	return nil
}

// Plan implements source.Source: the next batch, whole; after the last one, empty
// batches.
func (s *Script[T]) Plan(context.Context, source.Limits) (plan source.Plan, err error) {
	for p := range s.Partitions {
		plan.Ranges = append(plan.Ranges, source.Range{
			Partition: strconv.Itoa(p), From: s.next * perBatch, Until: (s.next + 1) * perBatch,
		})
	}
	s.next++
	return plan, nil
}

// Read implements source.Source. It changes nothing, so that runs may share a Script
// one after the other.
func (s *Script[T]) Read(ctx context.Context, r source.Range, emit func(offset int64, v T) error) error {
	p, err := strconv.Atoi(r.Partition)
	if err != nil {
		return fmt.Errorf("oracle: no partition %q", r.Partition)
	}
	for i := r.From / perBatch; i < r.Until/perBatch && i < int64(len(s.Batches)); i++ {
		all := s.Batches[i]
		for j := p * len(all) / s.Partitions; j < (p+1)*len(all)/s.Partitions; j++ {
			if err := emit(i*perBatch+int64(j), all[j]); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// Committed implements source.Source.
func (s *Script[T]) Committed(context.Context, source.Plan) error { return nil }

// Close implements source.Source.
func (s *Script[T]) Close() error { return nil }

// Sparse says that gaps between offsets mean nothing.
func (s *Script[T]) Sparse() bool { return true }
