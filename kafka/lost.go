package kafka

import (
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
)

// lostSpan is offsets [from, to) that were counted as lost.
type lostSpan struct{ from, to int64 }

// lostAnew is how many of the offsets [from, to) were not counted as lost before, and
// notes that they are now: a range may be read several times before its epoch is
// committed. mu of the source is held.
func (p *part) lostAnew(from, to int64) int64 {
	n := to - from
	if sabotage.On("loss-counted-with-each-read") {
		return n
	}
	merged := lostSpan{from, to}
	p.losses = slices.DeleteFunc(p.losses, func(x lostSpan) bool {
		n -= max(0, min(to, x.to)-max(from, x.from))
		if x.to <= p.done { // nobody reads it again
			return true
		}
		touches := x.from <= merged.to && merged.from <= x.to
		if touches {
			merged = lostSpan{min(merged.from, x.from), max(merged.to, x.to)}
		}
		return touches
	})
	p.losses = append(p.losses, merged)
	return n
}

// countLost counts offsets that are lost, each once, and says whether there were any.
func (s *kafkaSource) countLost(p *part, from, to int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := p.lostAnew(from, to)
	s.counts["lost_records"] += n
	return n > 0
}
