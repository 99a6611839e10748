package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/statemill/statemill/kafka/internal/wire"
)

// watch looks at the source from time to time: it tells of stalls, and asks for the
// logs' ends when no plan does.
type watch struct {
	s      *kafkaSource
	cancel context.CancelFunc
	ended  chan struct{}

	stalled bool      // no plan, and told
	asked   time.Time // for the ends
}

func newWatch(s *kafkaSource) *watch {
	w := &watch{s: s, ended: make(chan struct{}), asked: s.cfg.clock.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.run(ctx)
	return w
}

func (w *watch) close() {
	w.cancel()
	<-w.ended
}

func (w *watch) run(ctx context.Context) {
	defer close(w.ended)
	for {
		timer := w.s.cfg.clock.NewTimer(w.every() / 4)
		select {
		case <-timer.C():
			w.look(ctx)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// every is how often the ends are asked for.
func (w *watch) every() time.Duration {
	if w.s.cfg.dirty {
		return w.s.cfg.stallAfter
	}
	return min(w.s.cfg.stallAfter, w.s.cfg.hangAfter)
}

// look tells what has changed since the last look.
func (w *watch) look(ctx context.Context) {
	s := w.s
	now := s.cfg.clock.Now()
	var news []string
	waits := false
	s.mu.Lock()
	for _, p := range s.parts {
		waits = waits || !p.stuck.IsZero()
		if stalled := s.stalled(p, now); stalled != p.told {
			p.told = stalled
			if stalled {
				news = append(news, s.stall(p, now))
			} else {
				news = append(news, fmt.Sprintf("topic %q partition %d: reading moves again", p.Topic, p.Partition))
			}
		}
		if hangs := s.hangs(p); hangs != p.held.told {
			p.held.told = hangs
			if hangs {
				s.counts["hanging_transactions"]++
				news = append(news, s.hanging(p))
			} else {
				news = append(news, fmt.Sprintf("topic %q partition %d: the transaction is over, committed records go on to offset %d", p.Topic, p.Partition, p.end))
			}
		}
	}
	stalled := s.planStalled(now)
	switch {
	case stalled && !w.stalled:
		news = append(news, s.noPlan(now))
	case !stalled && w.stalled:
		news = append(news, "planning works again")
	}
	w.stalled = stalled
	parts := s.parts
	s.mu.Unlock()
	for _, text := range news {
		s.notice("%s", text)
	}
	if waits || now.Sub(w.asked) >= w.every() {
		w.asked = now
		w.ends(ctx, parts)
	}
}

// ends asks each broker for the ends of what it leads. Who does not answer is passed by.
// Where a log really ends is asked for first: what is committed behind it meanwhile is no
// open transaction.
func (w *watch) ends(ctx context.Context, parts []*part) {
	byLeader := map[string][]int{}
	for i, p := range parts {
		if addr := w.s.cluster.leader(p.TopicPartition); addr != "" {
			byLeader[addr] = append(byLeader[addr], i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, w.s.cfg.requestTimeout)
	defer cancel()
	for addr, list := range byLeader {
		high := make([]int64, len(parts))
		for i := range high {
			high[i] = -1
		}
		if !w.s.cfg.dirty {
			_ = w.s.askBroker(ctx, addr, wire.Latest, false, parts, list, func(i int, a wire.OffsetAnswer) { high[i] = a.Offset })
		}
		now := w.s.cfg.clock.Now()
		_ = w.s.askBroker(ctx, addr, wire.Latest, !w.s.cfg.dirty, parts, list, func(i int, a wire.OffsetAnswer) {
			w.s.mu.Lock()
			defer w.s.mu.Unlock()
			parts[i].sees(a.Offset, high[i], now)
		})
	}
}

// stalled says that a read of p waits for too long. mu is held, as in what follows.
func (s *kafkaSource) stalled(p *part, now time.Time) bool {
	return !p.stuck.IsZero() && now.Sub(p.stuck) > s.cfg.stallAfter
}

func (s *kafkaSource) stall(p *part, now time.Time) string {
	return fmt.Sprintf("topic %q partition %d is stalled: a read waits for its broker for %v, at offset %d of %d",
		p.Topic, p.Partition, now.Sub(p.stuck).Round(time.Millisecond), max(p.done, 0), p.end)
}

func (s *kafkaSource) planStalled(now time.Time) bool {
	return !s.planning.IsZero() && now.Sub(s.planning) > s.cfg.stallAfter
}

func (s *kafkaSource) noPlan(now time.Time) string {
	text := fmt.Sprintf("%v: no batch could be planned for %v", &s.cfg.subscription, now.Sub(s.planning).Round(time.Millisecond))
	if s.planErr != nil {
		text += ": " + s.planErr.Error()
	}
	return text
}

// waits notes that a read of p waits for its broker: since now, or since before if it
// has not moved since.
func (s *kafkaSource) waits(p *part) {
	now := s.cfg.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.stuck.IsZero() {
		p.stuck = now
	}
}

// moved notes what an answer tells.
func (s *kafkaSource) moved(p *part, a wire.FetchAnswer) {
	now := s.cfg.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stuck, p.progress = time.Time{}, now
	p.sees(s.endOf(a), a.HighWatermark, now)
}

// endOf is where a log ends for this source.
func (s *kafkaSource) endOf(a wire.FetchAnswer) int64 {
	if !s.cfg.dirty && a.LastStable >= 0 {
		return min(a.HighWatermark, a.LastStable)
	}
	return a.HighWatermark
}
