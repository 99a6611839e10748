package milltest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/statemill/statemill/source"
)

// script is the source behind an input: batches queued by the test, and
// behind them a backlog that is taken by the engine's limits. Everything ever
// given stays, so any range can be read again.
type script[T any] struct {
	name string

	mu      sync.Mutex
	parts   []*partition[T]
	batches int // scripted batches still queued
	plan    int // so many scripted batches were planned
	made    []made
	sent    []T  // the records of all scripted batches, for Repeat
	ended   bool // the test said that nothing more will come
	reads   faults
	plans   faults

	pieces []piece // the memory of the records, see pins
	looked int     // at so many records, for it
	walk   textWalk
}

// partition is the log of one partition. Offsets grow by one a record, more
// where the test left a gap.
type partition[T any] struct {
	offsets []int64
	values  []T
	end     int64   // offset after the newest record
	planned int64   // up to where plans have gone
	cuts    []int64 // scripted batches end here, by their number
	// rewind says, by the offset at which a read starts, how many records
	// before it are sent again at their old offsets.
	rewind map[int64]int
}

// faults are errors to come: the next n calls fail with err, reads only after
// they have given `after` records.
type faults struct {
	n, after int
	err      error
}

func (f *faults) take() (after int, err error) {
	if f.n == 0 {
		return 0, nil
	}
	f.n--
	return f.after, f.err
}

func (s *script[T]) partition(i int) *partition[T] {
	for len(s.parts) <= i {
		// It has nothing in the batches that are queued already.
		s.parts = append(s.parts, &partition[T]{cuts: make([]int64, s.plan+s.batches), rewind: map[int64]int{}})
	}
	return s.parts[i]
}

// add appends a record. Its texts become the record's own, as far as they can be
// copied in place: then a state that refers to one has it from the record. mu is
// held.
func (s *script[T]) add(part int, v T) {
	p := s.parts[part]
	p.offsets = append(p.offsets, p.end)
	p.values = append(p.values, v)
	if s.looked < pinLimit {
		s.looked++
		s.walk.left = walkLimit
		s.walk.visit = func(_ reflect.Value, at unsafe.Pointer, n int, own bool) bool {
			begin := uintptr(at)
			s.pieces = append(s.pieces, piece{begin: begin, end: begin + uintptr(n), own: own, input: s.name, part: part, offset: p.end})
			return false
		}
		s.walk.walk(reflect.ValueOf(&p.values[len(p.values)-1]).Elem(), 0, true)
	}
	p.end++
}

// newPieces gives the memory of the records added since the last call.
func (s *script[T]) newPieces() []piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.pieces
	s.pieces = nil
	return fresh
}

// push queues one batch, cut into n partitions as evenly as can be: partition i
// has records [i*len/n, (i+1)*len/n).
func (s *script[T]) push(records []T, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		s.partition(i)
		for _, v := range records[i*len(records)/n : (i+1)*len(records)/n] {
			s.add(i, v)
		}
	}
	for _, p := range s.parts {
		p.cuts = append(p.cuts, p.end)
	}
	s.batches++
	s.sent = append(s.sent, records...)
}

// made is a plan that was made: of which epoch, how many scripted batches were
// planned before it, and where it began. A run that crashes may have planned an epoch and not
// have written that down; then the next run is to get the same batch.
type made struct {
	epoch  uint64
	before int
	from   []int64
}

// Open implements source.Source. A kit's script starts where the plan ends; which
// scripted batch comes next, the first Plan tells by its epoch.
func (s *script[T]) Open(_ context.Context, last *source.Plan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		p.planned = 0
	}
	if last == nil {
		return nil
	}
	for _, r := range last.Ranges {
		i, err := s.index(r.Partition)
		if err != nil {
			return err
		}
		s.parts[i].planned = r.Until
	}
	if len(s.made) == 0 {
		s.skipDelivered()
	}
	return nil
}

// skipDelivered passes over the scripted batches that lie below where the plan
// ends: the checkpoint is that of another kit, which had the same batches.
func (s *script[T]) skipDelivered() {
	for ; s.batches > 0; s.batches, s.plan = s.batches-1, s.plan+1 {
		for _, p := range s.parts {
			if s.plan < len(p.cuts) && p.cuts[s.plan] > p.planned {
				return
			}
		}
	}
}

// Plan implements source.Source: one scripted batch whole, whatever the
// limits; when none is queued, the backlog by the limits.
func (s *script[T]) Plan(_ context.Context, l source.Limits) (source.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.plans.take(); err != nil {
		return source.Plan{}, err
	}
	s.rewind(l.Epoch)
	begin := made{epoch: l.Epoch, before: s.plan}
	for _, p := range s.parts {
		begin.from = append(begin.from, p.planned)
	}
	s.made = append(s.made, begin)
	if s.batches == 0 {
		return s.planBacklog(l), nil
	}
	s.batches--
	n := s.plan
	s.plan++
	var plan source.Plan
	for i, p := range s.parts {
		from, until := p.planned, p.planned
		if n < len(p.cuts) {
			until = p.cuts[n]
		}
		p.planned = max(from, until)
		plan.Ranges = append(plan.Ranges, source.Range{Partition: partitionName(i), From: from, Until: p.planned})
	}
	return plan, nil
}

// rewind takes back the plans of this epoch and later ones: they were lost.
func (s *script[T]) rewind(epoch uint64) {
	for n := len(s.made); n > 0 && s.made[n-1].epoch >= epoch; n-- {
		lost := s.made[n-1]
		s.batches += s.plan - lost.before
		s.plan, s.made = lost.before, s.made[:n-1]
		for i, at := range lost.from {
			s.parts[i].planned = at
		}
	}
}

func (s *script[T]) planBacklog(l source.Limits) source.Plan {
	lags := make([]int64, len(s.parts))
	for i, p := range s.parts {
		lags[i] = p.end - p.planned
	}
	var plan source.Plan
	for i, n := range source.Share(lags, l) {
		p := s.parts[i]
		plan.Ranges = append(plan.Ranges, source.Range{Partition: partitionName(i), From: p.planned, Until: p.planned + n})
		p.planned += n
	}
	return plan
}

// Done implements source.Bounded.
func (s *script[T]) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.batches > 0 {
		return false
	}
	for _, p := range s.parts {
		if p.planned < p.end {
			return false
		}
	}
	return true
}

// Read implements source.Source.
func (s *script[T]) Read(ctx context.Context, r source.Range, emit func(offset int64, v T) error) error {
	s.mu.Lock()
	i, err := s.index(r.Partition)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	p := s.parts[i]
	// Both are only ever appended to, so they can be read without the lock.
	offsets, values := p.offsets, p.values
	rewind := p.rewind[r.From]
	after, fault := s.reads.take()
	s.mu.Unlock()

	first, _ := slices.BinarySearch(offsets, r.From)
	last, _ := slices.BinarySearch(offsets, r.Until)
	for j := max(0, first-rewind); j < last; j++ {
		if fault != nil && j-first >= after {
			return fault
		}
		if err := emit(offsets[j], values[j]); err != nil {
			return err
		}
	}
	if fault != nil {
		return fault
	}
	return ctx.Err()
}

// Committed implements source.Source.
func (s *script[T]) Committed(context.Context, source.Plan) error { return nil }

// Close implements source.Source.
func (s *script[T]) Close() error { return nil }

func partitionName(i int) string { return strconv.Itoa(i) }

func (s *script[T]) index(partition string) (int, error) {
	i, err := strconv.Atoi(partition)
	if err != nil || i < 0 || i >= len(s.parts) {
		return 0, fmt.Errorf("milltest: input %q has no partition %q", s.name, partition)
	}
	return i, nil
}
