package kafka

import (
	"fmt"
	"slices"
	"sync"

	"github.com/statemill/statemill/source"
)

// noticesKept is how many notices a report has.
const noticesKept = 32

// news keeps the last notices.
type news struct {
	telling sync.Mutex // held while the user's function runs
	mu      sync.Mutex
	seq     int64
	last    []source.Notice
}

func (n *news) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq, n.last = 0, nil
}

func (n *news) all() []source.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.last)
}

// notice tells the user something. mu must not be held.
func (s *kafkaSource) notice(format string, args ...any) {
	s.news.telling.Lock()
	defer s.news.telling.Unlock()
	x := source.Notice{Time: s.cfg.clock.Now(), Text: fmt.Sprintf(format, args...)}
	s.news.mu.Lock()
	s.news.seq++
	x.Seq = s.news.seq
	s.news.last = append(s.news.last, x)
	s.news.last = s.news.last[max(0, len(s.news.last)-noticesKept):]
	s.news.mu.Unlock()
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
