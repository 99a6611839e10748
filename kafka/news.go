package kafka

import (
	"fmt"
	"sync"

	"github.com/statemill/statemill/source"
)

// news keeps the last notices, and tells them one after the other.
type news struct {
	telling sync.Mutex // held while the user's function runs
	source.Notices
}

// notice tells the user something. mu must not be held.
func (s *kafkaSource) notice(format string, args ...any) {
	s.news.telling.Lock()
	defer s.news.telling.Unlock()
	x := s.news.Add(s.cfg.clock.Now(), fmt.Sprintf(format, args...))
	if s.cfg.notify != nil {
		s.cfg.notify(x)
	}
}

// count adds to one of a report's counters.
func (s *kafkaSource) count(name string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name] += n
}
