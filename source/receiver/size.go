package receiver

import (
	"context"
	"errors"
	"sort"

	"github.com/statemill/statemill/source"
)

// fitting is how many records of the log [from, until) keep within most bytes as they
// are stored, at least one. Whole blocks are told by their size; of the one in which
// the limit lies the lengths of the records are looked at.
func (s *Source[T]) fitting(ctx context.Context, j *journal, from, until, most int64) (int64, error) {
	switch {
	case most == source.NoLimit:
		return until - from, nil
	case most < 0:
		return 0, nil
	}
	n, left, p := j.fitting(from, until, most)
	if p.path == "" {
		return n, nil
	}
	one := p
	one.end = p.from + 1 // of this block alone
	err := s.blocks(ctx, one, func(b *block) error {
		return b.records(func(offset int64, record []byte) error {
			if offset < p.from {
				return nil
			}
			left -= int64(len(record))
			if offset >= p.end || left < 0 && n > 0 {
				return &downError{errFull}
			}
			n++
			return nil
		})
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return n, err
}

var errFull = errors.New("no more fits")

// fitting walks over whole blocks from an offset on, as far as they keep within most
// bytes: n records do, and left bytes are left. p is where the next ones are; its path
// is empty if all up to until fit.
func (j *journal) fitting(from, until, most int64) (n, left int64, p piece) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left = most
	for i, s := range j.segments {
		end := j.durable
		if i+1 < len(j.segments) {
			end = j.segments[i+1].first
		}
		if end = min(end, until); from >= end || len(s.blocks) == 0 {
			continue
		}
		k := sort.Search(len(s.blocks), func(k int) bool { return s.blocks[k].first > from }) - 1
		for ; k < len(s.blocks) && from < end; k++ {
			size, next := s.size-s.blocks[k].at, end
			if k+1 < len(s.blocks) {
				size, next = s.blocks[k+1].at-s.blocks[k].at, min(end, s.blocks[k+1].first)
			}
			if size > left {
				return n, left, piece{path: s.path, layout: s.layout, at: s.blocks[k].at, size: s.size, from: from, end: next}
			}
			n, left, from = n+next-from, left-size, next
		}
	}
	return n, left, piece{}
}
