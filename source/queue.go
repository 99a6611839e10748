package source

import (
	"context"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"sync"
)

// Queue is a source of scripted batches: each plan takes the next one. Partition
// i of n gets the records [i·len/n, (i+1)·len/n) of a batch. It keeps all batches
// and can be opened again at any plan: a source for tests and examples.
//
// When limits are given, a plan takes what they allow of the batch and later
// plans the rest of it. When no batch is waiting a plan is empty. All methods may
// be called from any goroutine.
//
// Within a partition the records are numbered from 0. An empty batch takes one
// number of partition 0 without a record, so that a plan tells how many batches
// were taken.
type Queue[T any] struct {
	// SizeOf says how many bytes a record counts for Limits.Bytes. Nil: text and
	// byte slices count by their length, other types by their size in memory without
	// what they point to; each record counts at least 1.
	SizeOf func(T) int64

	mu       sync.Mutex
	parts    []queuePart[T]
	ends     [][]int64 // per batch: where it ends in each partition
	taken    int       // batches begun
	pos      []int64   // where the last plan ended
	open     bool
	finished bool
}

type queuePart[T any] struct {
	offsets []int64
	values  []T
	sums    []int64 // bytes of the values up to each, as far as they were asked for
	next    int64
}

// bytes are those of the records with offsets in [from, until).
func (p *queuePart[T]) bytes(from, until int64, size func(T) int64) int64 {
	sum := func(offset int64) int64 {
		k := sort.Search(len(p.offsets), func(k int) bool { return p.offsets[k] >= offset })
		for i := len(p.sums); i < k; i++ {
			before := int64(0)
			if i > 0 {
				before = p.sums[i-1]
			}
			p.sums = append(p.sums, before+max(size(p.values[i]), 1))
		}
		if k == 0 {
			return 0
		}
		return p.sums[k-1]
	}
	return sum(until) - sum(from)
}

// sizeInMemory is what a record counts without SizeOf.
func sizeInMemory[T any](v T) int64 {
	switch v := any(v).(type) {
	case string:
		return int64(len(v))
	case []byte:
		return int64(len(v))
	}
	return int64(reflect.TypeFor[T]().Size())
}

// NewQueue returns a queue of n partitions holding the batches. A nil batch is an
// empty one. n below 1 is an error of Open.
func NewQueue[T any](n int, batches ...[]T) *Queue[T] {
	q := &Queue[T]{parts: make([]queuePart[T], max(n, 0))}
	q.Push(batches...)
	return q
}

// Push appends batches; it may be called while the queue is being read. The
// records are copied, not cloned. After Finish it does nothing.
func (q *Queue[T]) Push(batches ...[]T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.parts)
	if n == 0 || q.finished {
		return
	}
	for _, b := range batches {
		end := make([]int64, n)
		for i := range q.parts {
			p := &q.parts[i]
			for _, v := range b[i*len(b)/n : (i+1)*len(b)/n] {
				p.offsets = append(p.offsets, p.next)
				p.values = append(p.values, v)
				p.next++
			}
			if len(b) == 0 && i == 0 {
				p.next++
			}
			end[i] = p.next
		}
		q.ends = append(q.ends, end)
	}
}

// Finish says that no more batches will come: after the last one the queue is
// Done. Without it a queue never is.
func (q *Queue[T]) Finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished = true
}

// Open implements Source.
func (q *Queue[T]) Open(ctx context.Context, last *Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.parts) == 0 {
		return fmt.Errorf("queue source: the number of partitions must be at least 1")
	}
	pos := make([]int64, len(q.parts))
	if last != nil {
		for _, r := range last.Ranges {
			i, err := q.part(r)
			if err != nil {
				return err
			}
			pos[i] = r.Until
		}
	}
	// A batch is begun if any of its records was planned.
	q.taken = sort.Search(len(q.ends), func(b int) bool {
		for i := range pos {
			begin := int64(0)
			if b > 0 {
				begin = q.ends[b-1][i]
			}
			if pos[i] > begin {
				return false
			}
		}
		return true
	})
	q.pos, q.open = pos, true
	return nil
}

// Plan implements Source.
func (q *Queue[T]) Plan(ctx context.Context, l Limits) (Plan, error) {
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open {
		return Plan{}, fmt.Errorf("queue source: %w", ErrNotOpen)
	}
	lags, records := q.lags()
	if !records && q.taken < len(q.ends) {
		q.taken++
		lags, records = q.lags()
	}
	if records {
		size := q.SizeOf
		if size == nil {
			size = sizeInMemory[T]
		}
		lags = ShareSized(lags, l, func(i int, n int64) int64 { return q.parts[i].bytes(q.pos[i], q.pos[i]+n, size) })
	}
	var p Plan
	for i, n := range lags {
		p.Ranges = append(p.Ranges, Range{Partition: strconv.Itoa(i), From: q.pos[i], Until: q.pos[i] + n})
		q.pos[i] += n
	}
	return p, nil
}

// lags is what the batches begun have left; records is false if that is nothing
// or the number of an empty batch, which no limit holds back.
func (q *Queue[T]) lags() (lags []int64, records bool) {
	lags = make([]int64, len(q.parts))
	if q.taken == 0 {
		return lags, false
	}
	for i, end := range q.ends[q.taken-1] {
		lags[i] = end - q.pos[i]
		p := q.parts[i]
		k := sort.Search(len(p.offsets), func(k int) bool { return p.offsets[k] >= q.pos[i] })
		records = records || k < len(p.offsets) && p.offsets[k] < end
	}
	return lags, records
}

// Read implements Source.
func (q *Queue[T]) Read(ctx context.Context, r Range, emit func(offset int64, v T) error) error {
	q.mu.Lock()
	i, err := q.part(r)
	if err != nil || !q.open {
		q.mu.Unlock()
		if err == nil {
			err = fmt.Errorf("queue source: %w", ErrNotOpen)
		}
		return err
	}
	p := q.parts[i] // appends of Push do not change what this sees
	q.mu.Unlock()
	k := sort.Search(len(p.offsets), func(k int) bool { return p.offsets[k] >= r.From })
	for ; k < len(p.offsets) && p.offsets[k] < r.Until; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(p.offsets[k], p.values[k]); err != nil {
			return err
		}
	}
	return nil
}

// part checks a range and returns its partition's number.
func (q *Queue[T]) part(r Range) (int, error) {
	i, err := strconv.Atoi(r.Partition)
	if err != nil || i < 0 || i >= len(q.parts) {
		return 0, &RangeError{Source: "queue source", Range: r, Why: fmt.Sprintf("the queue has partitions 0 to %d", len(q.parts)-1)}
	}
	if r.From < 0 || r.Until < r.From || r.Until > q.parts[i].next {
		return 0, &RangeError{Source: "queue source", Range: r, Why: fmt.Sprintf("the partition has offsets [0, %d)", q.parts[i].next)}
	}
	return i, nil
}

// Committed implements Source.
func (q *Queue[T]) Committed(ctx context.Context, _ Plan) error { return ctx.Err() }

// Done implements Bounded.
func (q *Queue[T]) Done() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.finished || !q.open || q.taken < len(q.ends) {
		return false
	}
	for i := range q.parts {
		if q.pos[i] < q.parts[i].next {
			return false
		}
	}
	return true
}

// Close implements Source. A closed queue can be opened again.
func (q *Queue[T]) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = false
	return nil
}
