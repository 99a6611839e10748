package kafka

import (
	"fmt"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
)

// A partition waits for its broker while a read of it gets nothing, or while a plan has
// asked for its end and was not told: a broker that falls silent between two batches is
// asked by the next plan, and no read begins. Those of other brokers, which have
// answered, do not wait, though no batch is made for them either.

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

// got is moved for bytes that were fetched before.
func (s *kafkaSource) got(p *part) {
	now := s.cfg.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stuck, p.progress = time.Time{}, now
}

// moved notes what an answer tells.
func (s *kafkaSource) moved(p *part, a wire.FetchAnswer) {
	now := s.cfg.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stuck, p.progress = time.Time{}, now
	p.sees(s.endOf(a), a.HighWatermark, now)
}

// held notes that a read of p waits before an open transaction, and not for its broker.
func (s *kafkaSource) held(p *part, a wire.FetchAnswer) {
	now := s.cfg.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stuck = time.Time{}
	p.sees(s.endOf(a), a.HighWatermark, now)
}

// asks notes that the leaders of parts are asked something: since now, or since before
// if they have not answered since.
func (s *kafkaSource) asks(parts []*part) {
	if sabotage.On("plans-never-wait") {
		return
	}
	now := s.cfg.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		if p.asked.IsZero() {
			p.asked = now
		}
	}
}

// answered notes that they have.
func (s *kafkaSource) answered(parts ...*part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		p.asked = time.Time{}
	}
}

// endOf is where a log ends for this source.
func (s *kafkaSource) endOf(a wire.FetchAnswer) int64 {
	if !s.cfg.dirty && a.LastStable >= 0 {
		return min(a.HighWatermark, a.LastStable)
	}
	return a.HighWatermark
}

// waiting is for how long p has been waiting for its broker. mu is held, as in what
// follows.
func (p *part) waiting(now time.Time) time.Duration {
	d := time.Duration(0)
	for _, since := range []time.Time{p.stuck, p.asked} {
		if !since.IsZero() {
			d = max(d, now.Sub(since))
		}
	}
	return d
}

// stalled says that p waits for too long.
func (s *kafkaSource) stalled(p *part, now time.Time) bool {
	return p.waiting(now) >= s.cfg.stallAfter
}

// stalls tells of parts that are stalled, in one text for each broker.
func (s *kafkaSource) stalls(parts []*part, now time.Time) (out []string) {
	byLeader := map[string][]*part{}
	for _, p := range parts {
		addr := s.cluster.leader(p.TopicPartition)
		byLeader[addr] = append(byLeader[addr], p)
	}
	for _, addr := range sortedKeys(byLeader) {
		list := byLeader[addr]
		first, verb, why := list[0], "is", fmt.Sprintf("broker %s has not answered", addr)
		if len(list) > 1 {
			verb = "are"
		}
		if addr == "" {
			why = "no leader has been known"
		}
		out = append(out, fmt.Sprintf("%s %s stalled: %s for %v; %s is read up to offset %d, its end was last seen at %d",
			namesOf(list), verb, why, first.waiting(now).Round(time.Millisecond), first.name, max(first.done, 0), first.end))
	}
	return out
}

// namesOf names the first parts of a list, and says how many more there are.
func namesOf(parts []*part) string {
	const most = 8
	text := fmt.Sprintf("topic %q partition %d", parts[0].Topic, parts[0].Partition)
	for i, p := range parts[1:] {
		if i+1 == most {
			return fmt.Sprintf("%s and %d more", text, len(parts)-most)
		}
		text += ", " + p.name
	}
	return text
}
