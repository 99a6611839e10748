package kafka

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/statemill/statemill/source"
)

// Monitor shows how a source is, from any goroutine: for a health page, for metrics.
// Its zero value is ready; [Watch] binds it to a source.
//
//	var m kafka.Monitor
//	lines := kafka.DirectStream(ssc, "lines", kafka.Brokers(addr), kafka.Topics("test"), kafka.Watch(&m))
//	…
//	if err := m.Healthy(); err != nil { … }
type Monitor struct {
	mu sync.Mutex
	s  *kafkaSource
}

// Watch lets m show this source. The source that was made last counts.
func Watch(m *Monitor) SourceOption {
	return sourceOption(func(c *config) {
		if m == nil {
			c.fault("Watch: the monitor is nil")
			return
		}
		c.watches = append(c.watches, m)
	})
}

// errNotWatching: the monitor is bound to nothing.
var errNotWatching = errors.New("no Kafka source is watched: give Watch to one")

// Healthy is nil while the source is open, plans, reads without stalls, and does not wait
// before a transaction that hangs (HangAfter); else it names what is wrong: the partitions
// that wait, and the broker that does not answer. An idle topic is healthy.
func (m *Monitor) Healthy() error {
	s := m.source()
	if s == nil {
		return errNotWatching
	}
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if !open {
		return fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if w := s.Report().Warnings; len(w) > 0 {
		return errors.New(strings.Join(w, "; "))
	}
	return nil
}

// Report tells position, end, lag and last progress of each partition, warnings,
// notices, and the counters: lost_records and lost_topics (ContinueOnLoss),
// returned_topics (of those, the ones that came back the same), mirrored and
// mirror_failed (Group), hanging_transactions (HangAfter), assumed_holes (offsets
// that the broker had nothing at, for RetryFor, before the end of the log), read_ahead
// (chunks that were there when they were wanted).
func (m *Monitor) Report() source.Report {
	if s := m.source(); s != nil {
		return s.Report()
	}
	return source.Report{Warnings: []string{errNotWatching.Error()}}
}

func (m *Monitor) source() *kafkaSource {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s
}

func (m *Monitor) bind(s *kafkaSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s = s
}

// Report implements source.Reporter.
func (s *kafkaSource) Report() source.Report {
	now := s.cfg.clock.Now()
	r := source.Report{Notices: s.news.All()}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Counters = maps.Clone(s.counts)
	var stalled []*part
	for _, p := range s.parts {
		x := source.PartitionReport{Partition: p.name, Next: p.done, End: p.end, Progress: p.progress, Stalled: s.stalled(p, now),
			Written: max(p.end, p.held.high), Held: p.held.waits()}
		if p.done >= 0 {
			x.Lag = max(0, p.end-p.done)
		}
		x.Waiting = p.waiting(now)
		if x.Stalled {
			stalled = append(stalled, p)
		}
		if s.hangs(p) {
			r.Warnings = append(r.Warnings, s.hanging(p))
		}
		r.Partitions = append(r.Partitions, x)
	}
	r.Warnings = append(s.stalls(stalled, now), r.Warnings...)
	if s.planStalled(now) {
		r.Warnings = append(r.Warnings, s.noPlan(now))
	}
	return r
}
