package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/statemill/statemill/kafka/internal/wire"
)

// watch looks at the source from time to time: it tells of stalls, and asks for the
// logs' ends when no plan does. It waits for no broker: who is silent is asked beside it.
type watch struct {
	s      *kafkaSource
	cancel context.CancelFunc
	wait   sync.WaitGroup

	stalled bool      // no plan, and told
	asked   time.Time // for the ends

	mu     sync.Mutex
	asking map[string]bool // brokers
}

func newWatch(s *kafkaSource) *watch {
	w := &watch{s: s, asked: s.cfg.clock.Now(), asking: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.wait.Go(func() { w.run(ctx) })
	return w
}

func (w *watch) close() {
	w.cancel()
	w.wait.Wait()
}

func (w *watch) run(ctx context.Context) {
	for {
		timer := w.s.cfg.clock.NewTimer(w.every() / looks)
		select {
		case <-timer.C():
			w.look(ctx)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// looks is how often it looks in the time after which the ends are asked for: what is
// told comes later than it is true by no more than this part of it.
const looks = 10

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
	var stalls, moves []*part
	waits := false
	s.mu.Lock()
	for _, p := range s.parts {
		waits = waits || p.waiting(now) > w.every()/looks
		if stalled := s.stalled(p, now); stalled != p.told {
			if p.told = stalled; stalled {
				stalls = append(stalls, p)
			} else {
				moves = append(moves, p)
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
	news = append(news, s.stalls(stalls, now)...)
	if len(moves) > 0 {
		news = append(news, namesOf(moves)+": reading moves again")
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

// ends asks each broker for the ends of what it leads, unless it has been asked before
// and is silent yet.
func (w *watch) ends(ctx context.Context, parts []*part) {
	byLeader := map[string][]int{}
	for i, p := range parts {
		if addr := w.s.cluster.leader(p.TopicPartition); addr != "" {
			byLeader[addr] = append(byLeader[addr], i)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for addr, list := range byLeader {
		if w.asking[addr] {
			continue
		}
		w.asking[addr] = true
		w.wait.Go(func() {
			w.endsAt(ctx, addr, parts, list)
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.asking, addr)
		})
	}
}

// endsAt asks one broker. Where a log really ends is asked for first: what is committed
// behind it meanwhile is no open transaction.
func (w *watch) endsAt(ctx context.Context, addr string, parts []*part, list []int) {
	ctx, cancel := context.WithTimeout(ctx, w.s.cfg.requestTimeout)
	defer cancel()
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

func (s *kafkaSource) planStalled(now time.Time) bool {
	return !s.planning.IsZero() && now.Sub(s.planning) >= s.cfg.stallAfter
}

func (s *kafkaSource) noPlan(now time.Time) string {
	text := fmt.Sprintf("%v: no batch could be planned for %v", &s.cfg.subscription, now.Sub(s.planning).Round(time.Millisecond))
	if s.planErr != nil {
		text += ": " + s.planErr.Error()
	}
	return text
}
