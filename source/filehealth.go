package source

import (
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
)

// fileHealth is what a source of files tells of itself. It has a lock of its own: a plan
// holds the source's while it looks at files.
type fileHealth struct {
	mu       sync.Mutex
	parts    []PartitionReport // of the last plan; Next is what is committed
	progress map[string]time.Time
	waiting  int64 // bytes of files that are not in reading yet
	found    int64 // files, since Open
	read     int64 // files to their end, since Open
}

func (h *fileHealth) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts, h.progress, h.waiting, h.found, h.read = nil, map[string]time.Time{}, 0, 0, 0
}

// planned notes a plan. end says where a range's bytes end, as far as is known.
func (h *fileHealth) planned(p Plan, end func(i int) int64, found int, waiting int64) {
	now := clock.System().Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.progress
	h.parts, h.progress = h.parts[:0], map[string]time.Time{}
	for i, r := range p.Ranges {
		x := PartitionReport{Partition: r.Partition, Next: r.From, End: end(i)}
		if h.progress[r.Partition] = before[r.Partition]; r.From == x.End { // nothing is left to read
			h.progress[r.Partition] = now
		}
		h.parts = append(h.parts, x)
	}
	h.waiting, h.found = waiting, h.found+int64(found)
}

// moved notes that a range was read.
func (h *fileHealth) moved(r Range) {
	if r.From == r.Until {
		return
	}
	now := clock.System().Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress[r.Partition] = now
}

// committed notes what need not be read again; read says how many files that ends.
func (h *fileHealth) committed(p Plan, read int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range p.Ranges {
		i := slices.IndexFunc(h.parts, func(x PartitionReport) bool { return x.Partition == r.Partition })
		if i >= 0 && !sabotage.On("file-lag-stands") {
			h.parts[i].Next = max(h.parts[i].Next, min(r.Until, h.parts[i].End))
		}
	}
	h.read += int64(read)
}

// report gives the partitions.
func (h *fileHealth) report() (parts []PartitionReport, waiting, found, read int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	parts = slices.Clone(h.parts)
	for i := range parts {
		x := &parts[i]
		x.Lag, x.Progress = x.End-x.Next, h.progress[x.Partition]
	}
	return parts, h.waiting, h.found, h.read
}
