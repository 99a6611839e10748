package receiver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// health is what an open source tells of itself.
type health struct {
	next  atomic.Int64 // behind what is committed, -1 before the first plan
	began int64        // of the log's end, at Open

	mu       sync.Mutex
	progress time.Time
	failing  string // why Receive does not run
	failures int64
}

// planned notes a plan that begins at from, of a log that goes to next.
func (h *health) planned(from, next int64, now time.Time) {
	h.next.CompareAndSwap(-1, from)
	if from == next {
		h.moved(now) // nothing is left to read
	}
}

func (h *health) moved(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = now
}

// happened notes an event and gives what a user should know of it.
func (h *health) happened(e Event) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.failing
	switch e.Kind {
	case Failed:
		h.failures++
		if sabotage.On("receiver-hides-failure") {
			return ""
		}
		h.failing = fmt.Sprintf("the receiver failed: %s; it is called again after %v", oneLine(e.Err), e.Pause)
		return h.failing
	case Started:
		if h.failing = ""; before != "" {
			return "the receiver is called again"
		}
	case Stopped:
		h.failing = ""
	}
	return ""
}

// Report implements source.Reporter: the records that wait in the log, a receiver that
// fails, a log that is full. Its counters are "stored", the records that were made
// durable since Open, and "failures" of the receiver.
func (s *Source[T]) Report() source.Report {
	r := source.Report{Notices: s.news.All()}
	o := s.open.Load()
	if o == nil {
		return r
	}
	_, end := o.j.bounds()
	x := source.PartitionReport{Partition: Partition, Next: o.health.next.Load(), End: end}
	if x.Next >= 0 {
		x.Lag = end - x.Next
	}
	if o.j.isFull() {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%v: it is full (%d bytes): store waits until batches are committed", s, o.j.maxBytes))
	}
	h := &o.health
	h.mu.Lock()
	defer h.mu.Unlock()
	x.Progress = h.progress
	r.Partitions = []source.PartitionReport{x}
	r.Counters = map[string]int64{"stored": end - h.began, "failures": h.failures}
	if h.failing != "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%v: %s", s, h.failing))
	}
	return r
}
