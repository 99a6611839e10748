package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
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
	open := s.open
	if open && s.planning.IsZero() {
		s.planning = s.cfg.clock.Now()
	}
	s.mu.Unlock()
	if !open {
		return source.Plan{}, fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return source.Plan{}, err
	}
	plan, err := s.plan(ctx, l)
	for losses := 0; err != nil && losses < mostLosses && s.goOn(err); {
		if !errors.Is(err, ErrNoTopic) { // those end, with the topics
			losses++
		}
		plan, err = s.plan(ctx, l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planErr = err; err == nil {
		s.planning = time.Time{}
	}
	return plan, err
}

// mostLosses is how many losses one plan goes on over.
const mostLosses = 16

func (s *kafkaSource) plan(ctx context.Context, l source.Limits) (source.Plan, error) {
	if err := s.look(ctx); err != nil {
		return source.Plan{}, err
	}
	s.mu.Lock()
	parts := s.parts
	s.mu.Unlock()
	// Only this goroutine changes next, placed and stop.
	spans, err := s.spans(ctx, parts, func(p *part) bool { return s.whole || !p.placed })
	if err != nil {
		return source.Plan{}, err
	}
	moves, lags := make([]move, len(parts)), make([]int64, len(parts))
	for i, p := range parts {
		if moves[i], err = s.move(ctx, p, &spans[i]); err != nil {
			return source.Plan{}, err
		}
		lags[i] = max(0, spans[i].latest-moves[i].from)
		if s.cfg.toEnd {
			lags[i] = moves[i].stop - moves[i].from
		}
	}
	if err := s.sameLogs(ctx, parts, spans); err != nil {
		return source.Plan{}, err
	}
	take, err := s.take(ctx, moves, lags, l)
	if err != nil {
		return source.Plan{}, err
	}
	s.whole = false
	plan := s.planned(moves, spans, take)
	if s.ahead != nil {
		s.ahead.planned(moves, take)
	}
	return plan, nil
}

// planned makes the plan and moves the positions.
func (s *kafkaSource) planned(moves []move, spans []span, take []int64) source.Plan {
	plan := source.Plan{Ranges: make([]source.Range, len(moves))}
	lost := map[*part]int64{}
	now := s.cfg.clock.Now()
	s.mu.Lock()
	for i, m := range moves {
		p := m.p
		if p.placed && m.from > p.next {
			lost[p] = p.next
		}
		p.placed, p.next, p.stop = true, m.from+take[i], m.stop
		p.endsAt(spans[i].latest, now)
		p.sees(spans[i].latest, spans[i].high, now)
		p.epoch = spans[i].epoch
		if p.done < 0 {
			p.done = m.from
		}
		plan.Ranges[i] = source.Range{Partition: p.name, From: m.from, Until: p.next, Epoch: p.id, Mark: markOf(p.epoch)}
	}
	s.begun = true
	plan.Ranges = s.keep(plan.Ranges)
	s.unproved.proveAnew(&plan)
	s.mu.Unlock()
	for _, m := range moves {
		if from, ok := lost[m.p]; ok {
			s.lose(m.p, from, m.from)
		}
	}
	return plan
}

// move finds where a partition stands, the first time by the start options. It mends
// have where a leader did not know its end yet.
func (s *kafkaSource) move(ctx context.Context, p *part, have *span) (move, error) {
	m := move{p: p, from: p.next, stop: p.stop}
	if !p.placed {
		m.from = s.begin(p, have)
	}
	if (s.whole || !p.placed) && m.from < have.earliest {
		gone := &OffsetRangeError{p.Topic, p.Partition, m.from, have.earliest, have.latest}
		if !s.cfg.onLoss || !p.placed { // where to start was said by the user
			return m, gone
		}
		m.from = have.earliest
	}
	if m.from > have.end() {
		// A leader that was just elected may not know its end yet.
		settled, err := s.settled(ctx, p, m.from)
		if err != nil {
			return m, p.another(err)
		}
		*have = settled
	}
	if s.cfg.toEnd && m.stop < 0 {
		m.stop = max(have.latest, m.from)
	}
	if m.stop >= 0 {
		m.stop = max(m.stop, m.from) // what is lost may have been the end
	}
	return m, nil
}

// begin is where a partition without a position starts. One that appeared later has
// nothing that is older than the job.
func (s *kafkaSource) begin(p *part, have *span) int64 {
	if offset, named := s.named(p); named {
		return offset
	}
	switch {
	case p.late, s.cfg.at == wire.Earliest:
		if sabotage.On("new-partition-from-end") {
			return have.latest
		}
		return have.earliest
	case s.cfg.at == wire.Latest || have.timed < 0:
		return have.latest
	}
	return min(max(have.timed, have.earliest), have.latest)
}

// named is where a partition is to start by FromOffsets. That is said of the topic as it
// was then: one that was made again has other records at these offsets, if any.
func (s *kafkaSource) named(p *part) (offset int64, named bool) {
	offset, named = s.cfg.offsets[p.TopicPartition]
	return offset, named && (!p.anew || sabotage.On("start-of-another-topic"))
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
		if from <= have[0].end() {
			return have[0], nil
		}
		if !r.again(ctx, errNoLeader) {
			if ctx.Err() != nil {
				return span{}, context.Cause(ctx)
			}
			return span{}, &OffsetRangeError{p.Topic, p.Partition, from, have[0].earliest, have[0].end()}
		}
	}
}

// take says how many offsets each partition gives, within the engine's limits and
// MaxBatchBytes.
func (s *kafkaSource) take(ctx context.Context, moves []move, lags []int64, l source.Limits) ([]int64, error) {
	if l.Bytes == source.NoLimit || l.Bytes > s.cfg.maxBatchBytes {
		l.Bytes = s.cfg.maxBatchBytes
	}
	sizes := make([]float64, len(moves))
	s.mu.Lock()
	for i, m := range moves {
		sizes[i] = m.p.size
	}
	s.mu.Unlock()
	take := source.Share(lags, l)
	if sabotage.On("bytes-not-capped") || l.Bytes > 0 && bytesOf(take, sizes) <= float64(l.Bytes) && cannotMatter(take, l.Bytes) {
		return take, nil
	}
	if l.Bytes < 0 {
		return make([]int64, len(moves)), nil
	}
	if err := s.learnFirst(ctx, moves, take, sizes); err != nil {
		return nil, err
	}
	take = capped(lags, sizes, l)
	if err := s.learnAhead(ctx, moves, take, sizes); err != nil {
		return nil, err
	}
	return capped(lags, sizes, l), nil
}

// largeRecord is what a record of unknown size is taken for: what a broker allows
// by default.
const largeRecord = 1 << 20

func sizeOf(n int64, size float64) float64 {
	if size == 0 {
		size = largeRecord
	}
	return float64(n) * size
}

func bytesOf(take []int64, sizes []float64) (sum float64) {
	for i, n := range take {
		sum += sizeOf(n, sizes[i])
	}
	return sum
}

// capped shares out as many records as fit, by their sizes as they are judged.
func capped(lags []int64, sizes []float64, l source.Limits) []int64 {
	return source.ShareSized(lags, l, func(i int, n int64) int64 { return int64(min(sizeOf(n, sizes[i]), 1<<62)) })
}
