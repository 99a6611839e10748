package kafka

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// move is where a plan takes one partition.
type move struct {
	p          *part
	from, stop int64
}

// Plan implements source.Source. Nothing changes until all of it has succeeded.
func (s *kafkaSource) Plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	s.mu.Lock()
	open, parts := s.open, s.parts
	s.mu.Unlock()
	if !open {
		return source.Plan{}, fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return source.Plan{}, err
	}
	// Only this goroutine changes next, placed and stop.
	spans, err := s.spans(ctx, parts, func(p *part) bool { return !p.placed })
	if err != nil {
		return source.Plan{}, err
	}
	moves, lags := make([]move, len(parts)), make([]int64, len(parts))
	for i, p := range parts {
		if moves[i], err = s.move(ctx, p, &spans[i]); err != nil {
			return source.Plan{}, err
		}
		lags[i] = spans[i].latest - moves[i].from
		if s.cfg.toEnd {
			lags[i] = moves[i].stop - moves[i].from
		}
	}
	take, err := s.take(ctx, moves, lags, l)
	if err != nil {
		return source.Plan{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	plan := source.Plan{Ranges: make([]source.Range, len(parts))}
	for i, m := range moves {
		m.p.placed, m.p.next, m.p.stop = true, m.from+take[i], m.stop
		plan.Ranges[i] = source.Range{Partition: m.p.name, From: m.from, Until: m.p.next, Epoch: m.p.id}
	}
	return plan, nil
}

// move finds where a partition stands, the first time by the start options. It mends
// have where a leader did not know its end yet.
func (s *kafkaSource) move(ctx context.Context, p *part, have *span) (move, error) {
	m := move{p: p, from: p.next, stop: p.stop}
	if !p.placed {
		explicit, named := s.cfg.offsets[p.TopicPartition]
		switch {
		case named:
			m.from = explicit
		case s.cfg.earliest:
			m.from = have.earliest
		default:
			m.from = have.latest
		}
		if m.from < have.earliest {
			return m, &OffsetRangeError{p.Topic, p.Partition, m.from, have.earliest, have.latest}
		}
	}
	if m.from > have.latest {
		// A leader that was just elected may not know its end yet.
		settled, err := s.settled(ctx, p, m.from)
		if err != nil {
			return m, err
		}
		*have = settled
	}
	if s.cfg.toEnd && m.stop < 0 {
		m.stop = max(have.latest, m.from)
	}
	return m, nil
}

// settled waits for the end to reach from. Where the topic's id says that it is the
// same topic, the leader will know its end when its followers have told it theirs;
// else the topic may have been made again, and that should be told soon.
func (s *kafkaSource) settled(ctx context.Context, p *part, from int64) (span, error) {
	r := s.cluster.retrier()
	if p.id == "" || !p.placed {
		r.limit = min(r.limit, settleFor)
	}
	for {
		have, err := s.spans(ctx, []*part{p}, func(*part) bool { return true })
		if err != nil {
			return span{}, err
		}
		if from <= have[0].latest {
			return have[0], nil
		}
		if !r.again(ctx, errNoLeader) {
			if ctx.Err() != nil {
				return span{}, context.Cause(ctx)
			}
			return span{}, &OffsetRangeError{p.Topic, p.Partition, from, have[0].earliest, have[0].latest}
		}
	}
}

// take says how many offsets each partition gives, within the engine's limits and
// MaxBatchBytes.
func (s *kafkaSource) take(ctx context.Context, moves []move, lags []int64, l source.Limits) ([]int64, error) {
	sizes := make([]float64, len(moves))
	s.mu.Lock()
	for i, m := range moves {
		sizes[i] = m.p.size
	}
	s.mu.Unlock()
	budget := float64(s.cfg.maxBatchBytes)
	take := source.Share(lags, l)
	if sabotage.On("bytes-not-capped") || bytesOf(take, sizes) <= budget && s.cannotMatter(take) {
		return take, nil
	}
	if err := s.learnFirst(ctx, moves, take, sizes); err != nil {
		return nil, err
	}
	take = capped(lags, sizes, l, budget)
	if err := s.learnAhead(ctx, moves, take, sizes); err != nil {
		return nil, err
	}
	return capped(lags, sizes, l, budget), nil
}

// largeRecord is what a record of unknown size is taken for: what a broker allows
// by default.
const largeRecord = 1 << 20

func bytesOf(take []int64, sizes []float64) (sum float64) {
	for i, n := range take {
		size := sizes[i]
		if size == 0 {
			size = largeRecord
		}
		sum += float64(n) * size
	}
	return sum
}

// capped shares out as many records as fit into budget: so bytes are shared by the
// same rule as records, and nobody starves. One record always goes.
func capped(lags []int64, sizes []float64, l source.Limits, budget float64) []int64 {
	best := source.Share(lags, l)
	if bytesOf(best, sizes) <= budget {
		return best
	}
	least, most := int64(1), int64(0) // least fits, or must go all the same
	for _, n := range best {
		most += n
	}
	for most-least > 1 {
		l.Records = least + (most-least)/2
		if bytesOf(source.Share(lags, l), sizes) <= budget {
			least = l.Records
		} else {
			most = l.Records
		}
	}
	l.Records = least
	return source.Share(lags, l)
}
