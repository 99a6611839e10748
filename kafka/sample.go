package kafka

import (
	"context"
	"time"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/kafka/internal/batch"
)

const (
	// settleFor bounds the wait for a new leader to know its end, where that may not
	// be the reason.
	settleFor = time.Second
	// sampleBytes is what one sample asks for.
	sampleBytes = 64 << 10
	// glanceBytes is what one asks for where the size is known from before.
	glanceBytes = 4 << 10
	// samplers is how many samples are taken at once.
	samplers = 8
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

// learnFirst samples the partitions of unknown size where they are to be read next.
func (s *kafkaSource) learnFirst(ctx context.Context, moves []move, take []int64, sizes []float64) error {
	return pool.Run(ctx, samplers, len(moves), func(ctx context.Context, _, i int) error {
		if take[i] == 0 || sizes[i] != 0 {
			return nil
		}
		size, n, err := s.sample(ctx, moves[i].p, moves[i].from, sampleBytes)
		if err != nil {
			return err
		}
		sizes[i] = size
		s.mu.Lock()
		defer s.mu.Unlock()
		moves[i].p.trusted = max(moves[i].p.trusted, n/reach)
		return nil
	})
}

// learnAhead samples in the middle and near the end of ranges that go far beyond what
// was measured, and a little near the end of others: what was read before tells
// nothing of a producer that has begun to send large records. The largest size counts.
func (s *kafkaSource) learnAhead(ctx context.Context, moves []move, take []int64, sizes []float64) error {
	return pool.Run(ctx, samplers, len(moves), func(ctx context.Context, _, i int) error {
		if take[i] == 0 {
			return nil
		}
		m := moves[i]
		s.mu.Lock()
		known := take[i] <= reach*m.p.trusted
		s.mu.Unlock()
		places, bytes := []int64{take[i] / 2, take[i] - take[i]/16 - 1}, sampleBytes
		if known {
			places, bytes = places[1:], glanceBytes
		}
		for _, ahead := range places {
			size, _, err := s.sample(ctx, m.p, m.from+ahead, bytes)
			if err != nil {
				return err
			}
			sizes[i] = max(sizes[i], size)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		m.p.trusted = max(m.p.trusted, take[i]/reach)
		m.p.size = max(m.p.size, sizes[i])
		return nil
	})
}

// sample measures the records at an offset: their mean size and how many there
// were. Where nothing but holes, markers and aborted records comes, it is the size
// that an offset is sent with, else many small batches would go to pass over them;
// where nothing comes at all it is 0: unknown.
func (s *kafkaSource) sample(ctx context.Context, p *part, offset int64, most int) (size float64, n int64, err error) {
	s.waits(p)
	a, err := s.fetch(ctx, p, offset, offset+1, most)
	if err != nil {
		return 0, 0, err
	}
	s.arrived(p)
	d := s.decoders.Get()
	defer s.release(d)
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
