package dstream_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/statemill/statemill/source"
)

// record is one record of a scripted source with its offset.
type record[T any] struct {
	offset int64
	value  T
}

// script is a source for tests: each plan takes one batch. A batch is split over
// the partitions as Spark's makeRDD does, or given as ranges with explicit
// offsets (to make duplicates and gaps). It can be told to fail.
type script[T any] struct {
	partitions int

	mu        sync.Mutex
	batches   [][]T
	next      []int64 // offset of each partition
	ranges    map[string][]record[T]
	explicit  []scripted[T]
	planFails int
	readFails int
	committed []source.Plan
	openErr   error
	closed    bool
	reads     int
}

// scripted is an explicit range.
type scripted[T any] struct {
	r       source.Range
	records []record[T]
}

func newScript[T any](partitions int, batches ...[]T) *script[T] {
	return &script[T]{partitions: partitions, batches: batches, next: make([]int64, partitions), ranges: map[string][]record[T]{}}
}

// explicitly plans one range per batch with exactly these records.
func explicitly[T any](ranges ...scripted[T]) *script[T] {
	s := newScript[T](1)
	s.explicit = ranges
	return s
}

func (s *script[T]) Open(context.Context, *source.Plan) error { return s.openErr }

func (s *script[T]) Plan(context.Context, source.Limits) (source.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planFails > 0 {
		s.planFails--
		return source.Plan{}, errors.New("no plan today")
	}
	if s.explicit != nil {
		if len(s.batches) >= len(s.explicit) { // batches counts the plans here
			return source.Plan{}, nil
		}
		e := s.explicit[len(s.batches)]
		s.batches = append(s.batches, nil)
		s.ranges[key(e.r)] = e.records
		return source.Plan{Ranges: []source.Range{e.r}}, nil
	}
	var batch []T
	if len(s.batches) > 0 {
		batch, s.batches = s.batches[0], s.batches[1:]
	}
	var p source.Plan
	n := len(batch)
	for i := range s.partitions {
		part := batch[i*n/s.partitions : (i+1)*n/s.partitions]
		r := source.Range{Partition: strconv.Itoa(i), From: s.next[i], Until: s.next[i] + int64(len(part))}
		var rows []record[T]
		for j, v := range part {
			rows = append(rows, record[T]{r.From + int64(j), v})
		}
		s.next[i] = r.Until
		s.ranges[key(r)] = rows
		p.Ranges = append(p.Ranges, r)
	}
	return p, nil
}

func key(r source.Range) string { return fmt.Sprintf("%s/%d/%d", r.Partition, r.From, r.Until) }

func (s *script[T]) Read(_ context.Context, r source.Range, emit func(int64, T) error) error {
	s.mu.Lock()
	rows := s.ranges[key(r)]
	s.reads++
	fail := s.readFails > 0
	if fail {
		s.readFails--
	}
	s.mu.Unlock()
	for i, row := range rows {
		if fail && i == len(rows)/2 {
			return errors.New("line is down")
		}
		if err := emit(row.offset, row.value); err != nil {
			return err
		}
	}
	return nil
}

func (s *script[T]) Committed(_ context.Context, p source.Plan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = append(s.committed, p)
	return nil
}

func (s *script[T]) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Done makes it a source that ends.
func (s *script[T]) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.explicit == nil && len(s.batches) == 0
}
