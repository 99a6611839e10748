package kafka

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
)

const (
	// settleFor bounds the wait for a new leader to know its end, where that may not
	// be the reason.
	settleFor = time.Second
	// sampleBytes is what one sample asks for.
	sampleBytes = 64 << 10
	// glanceBytes is what one asks for where the size is known from before.
	glanceBytes = 4 << 10
	// samplers is how many requests for samples are made at once, and groupBytes what one
	// of them asks for.
	samplers   = 8
	groupBytes = 512 << 10
	// reach is how much further than what was measured sizes are believed.
	reach = 2
)

// cannotMatter says that so few offsets keep within so many bytes whatever their
// records are.
func cannotMatter(take []int64, bytes int64) bool {
	total := int64(0)
	for _, n := range take {
		total += n
	}
	return total <= bytes/largeRecord
}

// place is where a partition is sampled.
type place struct {
	p      *part
	offset int64
	most   int // bytes to ask for
	i      int // whose it is, for the caller
}

// learnFirst samples the partitions of unknown size where they are to be read next.
func (s *kafkaSource) learnFirst(ctx context.Context, moves []move, take []int64, sizes []float64) error {
	var places []place
	for i, m := range moves {
		if take[i] > 0 && sizes[i] == 0 {
			places = append(places, place{m.p, m.from, sampleBytes, i})
		}
	}
	return s.samples(ctx, places, func(x place, size float64, n int64) {
		sizes[x.i] = size
		x.p.trusted = max(x.p.trusted, n/reach)
	})
}

// learnAhead samples in the middle and near the end of ranges that go far beyond what
// was measured, and a little near the end of others: what was read before tells
// nothing of a producer that has begun to send large records. The largest size counts.
func (s *kafkaSource) learnAhead(ctx context.Context, moves []move, take []int64, sizes []float64) error {
	var places []place
	s.mu.Lock()
	for i, m := range moves {
		if take[i] == 0 {
			continue
		}
		bytes := sampleBytes
		if take[i] <= reach*m.p.trusted {
			bytes = min(max(glanceBytes, m.p.glance), sampleBytes)
		} else {
			places = append(places, place{m.p, m.from + take[i]/2, bytes, i})
		}
		places = append(places, place{m.p, m.from + take[i] - take[i]/16 - 1, bytes, i})
	}
	s.mu.Unlock()
	return s.samples(ctx, places, func(x place, size float64, _ int64) {
		sizes[x.i] = max(sizes[x.i], size)
		x.p.trusted = max(x.p.trusted, take[x.i]/reach)
		x.p.size = max(x.p.size, sizes[x.i])
	})
}

// samples measures the records at places, those of one broker with few requests, so that
// many partitions cost no round trip each. learned is called with mu held.
func (s *kafkaSource) samples(ctx context.Context, places []place, learned func(x place, size float64, n int64)) error {
	var groups [][]place
	last := map[string]int{} // index and bytes of a broker's last group
	bytes := map[string]int{}
	for _, x := range places {
		if to, _ := s.cfg.passes(x.p.TopicPartition, x.offset, math.MaxInt64); to > x.offset {
			continue
		}
		addr := s.cluster.leader(x.p.TopicPartition)
		at, has := last[addr]
		twice := has && slices.ContainsFunc(groups[at], func(y place) bool { return y.p == x.p }) // an answer has a partition once
		if bytes[addr] += x.most; !has || twice || bytes[addr] > groupBytes {
			last[addr], bytes[addr] = len(groups), x.most
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], x)
	}
	took := func(x place, a wire.FetchAnswer) error {
		size, n, err := s.measure(x.p, x.offset, a)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			x.p.stuck = time.Time{}
			x.p.glance = min(batch.First(a.Batches)*5/4, sampleBytes)
			learned(x, size, n)
		}
		return err
	}
	left := make([][]place, len(groups))
	if err := pool.Run(ctx, samplers, len(groups), func(ctx context.Context, _, g int) (err error) {
		left[g], err = s.sampleGroup(ctx, groups[g], took)
		return err
	}); err != nil {
		return err
	}
	alone := slices.Concat(left...)
	return pool.Run(ctx, samplers, len(alone), func(ctx context.Context, _, i int) error {
		x := alone[i]
		s.waits(x.p)
		a, err := s.fetch(ctx, x.p, x.offset, x.offset+1, x.most)
		if err != nil {
			return err
		}
		return took(x, a)
	})
}

// sampleGroup asks for all of a group with one request, and gives those that got nothing
// by that, for whatever reason: they are asked for alone.
func (s *kafkaSource) sampleGroup(ctx context.Context, group []place, took func(place, wire.FetchAnswer) error) (left []place, err error) {
	addr := s.cluster.leader(group[0].p.TopicPartition)
	if len(group) == 1 || addr == "" {
		return group, nil
	}
	q := wire.FetchRequest{Committed: !s.cfg.dirty, Wait: fetchWait, MaxAnswer: int(min(groupBytes+s.cfg.maxBatchBytes+headroom, math.MaxInt32))}
	parts := make([]wire.FetchPart, len(group))
	for i, x := range group {
		s.waits(x.p)
		parts[i] = wire.FetchPart{TopicPartition: wire.TopicPartition(x.p.TopicPartition), Offset: x.offset, MaxBytes: x.most}
		q.MaxBytes += x.most
	}
	var answers []wire.FetchAnswer
	if err := s.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
		answers, err = c.FetchAll(ctx, q, parts)
		return err
	}); err != nil {
		return group, nil
	}
	for i, a := range answers {
		if whole, _ := batch.Whole(a.Batches); a.Err != nil || len(whole) == 0 {
			left = append(left, group[i])
		} else if err := took(group[i], a); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// measure measures the records of a sample: their mean size and how many there
// were. Where nothing but holes, markers and aborted records comes, it is the size
// that an offset is sent with, else many small batches would go to pass over them;
// where nothing comes at all it is 0: unknown.
func (s *kafkaSource) measure(p *part, offset int64, a wire.FetchAnswer) (size float64, n int64, err error) {
	d := s.decoders.Get()
	defer s.release(d)
	if _, limit := s.cfg.passes(p.TopicPartition, offset, math.MaxInt64); limit < math.MaxInt64 {
		a.Batches = batch.Before(a.Batches, limit)
	}
	d.batch.Reset(a.Batches, offset, !s.cfg.dirty, a.Aborted, int(s.cfg.maxBatchBytes))
	var r batch.Record
	for {
		more, err := d.batch.Next(&r)
		if err != nil {
			return 0, 0, p.recordError(err)
		}
		if !more {
			break
		}
	}
	n, bytes := d.batch.Seen()
	if n == 0 {
		sent, offsets := batch.Span(a.Batches)
		return float64(sent) / float64(max(offsets, 1)), 0, nil
	}
	return float64(bytes) / float64(n), n, nil
}

// measured takes in what a Read saw: how many records and bytes, the mean size of
// those of the last fetch, which are the next to what comes, and the bytes of an
// offset as they were sent.
func (s *kafkaSource) measured(p *part, records, bytes, offsets int64, last, wire float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if records > 0 {
		mean := max(float64(bytes)/float64(records), last)
		p.size = max(mean, (3*p.size+mean)/4) // up at once, down slowly
		p.trusted = max(p.trusted, offsets)
	}
	if wire > 0 {
		p.wire = wire
	}
}
