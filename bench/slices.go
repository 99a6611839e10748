package main

import (
	"context"
	"strconv"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// A slab is a piece of input in memory that can be cut.
type slab[B, T any] interface {
	len() int
	slice(from, to int) B
	each(from int64, emit func(int64, T) error) error
}

func (r records) each(from int64, emit func(int64, dstream.Pair[string, int64]) error) error {
	for i, k := range r.keys {
		if err := emit(from+int64(i), dstream.KV(k, r.values[i])); err != nil {
			return err
		}
	}
	return nil
}

// sliceSource is a source of slabs: each plan takes the slab that was put and splits it over the partitions.
type sliceSource[B slab[B, T], T any] struct {
	waiting B
	reading B
	from    []int64 // of each partition
}

func newSliceSource[B slab[B, T], T any](partitions int) *sliceSource[B, T] {
	return &sliceSource[B, T]{from: make([]int64, partitions)}
}

// put gives the next batch. It must not be called while a batch runs.
func (s *sliceSource[B, T]) put(in B) { s.waiting = in }

// Open starts where the last plan ended, or at offset 0.
func (s *sliceSource[B, T]) Open(_ context.Context, last *source.Plan) error {
	if last != nil {
		for i, r := range last.Ranges {
			s.from[i] = r.Until
		}
	}
	return nil
}

// Plan takes the waiting slab.
func (s *sliceSource[B, T]) Plan(context.Context, source.Limits) (source.Plan, error) {
	var none B
	s.reading, s.waiting = s.waiting, none
	var p source.Plan
	for i, from := range s.from {
		p.Ranges = append(p.Ranges, source.Range{Partition: strconv.Itoa(i), From: from, Until: from + int64(s.cut(i+1)-s.cut(i))})
	}
	return p, nil
}

func (s *sliceSource[B, T]) cut(i int) int { return s.reading.len() * i / len(s.from) }

// Read pushes a range of the slab.
func (s *sliceSource[B, T]) Read(_ context.Context, r source.Range, emit func(int64, T) error) error {
	part, err := strconv.Atoi(r.Partition)
	if err != nil {
		return err
	}
	return s.reading.slice(s.cut(part), s.cut(part+1)).each(r.From, emit)
}

// Committed moves the source past the slab.
func (s *sliceSource[B, T]) Committed(_ context.Context, p source.Plan) error {
	for i, r := range p.Ranges {
		s.from[i] = r.Until
	}
	var none B
	s.reading = none
	return nil
}

// Close does nothing.
func (s *sliceSource[B, T]) Close() error { return nil }
