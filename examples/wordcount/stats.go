package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/statemill/statemill/dstream"
)

// meter adds up what the batches report, and shows progress once a second as
// plain lines. The engine calls it from one goroutine.
type meter struct {
	to    io.Writer
	began time.Time
	shown time.Time

	lines, words int64
	keys         int64
	times        []time.Duration // processing times of batches with records
}

func (m *meter) batch(p dstream.Progress) {
	m.lines += p.InputRows
	if p.InputRows > 0 {
		m.times = append(m.times, p.ProcessingDelay)
	}
	for _, op := range p.Operators {
		m.words += op.Calls
		m.keys = op.Keys
	}
	now := time.Now()
	if now.Sub(m.shown) < time.Second {
		return
	}
	m.shown = now
	fmt.Fprintf(m.to, "%5.1fs  batch %d: %d lines, %d words, %d keys\n",
		now.Sub(m.began).Seconds(), p.Batch.Epoch, m.lines, m.words, m.keys)
}

// summary prints the numbers of the whole run.
func (m *meter) summary(w io.Writer, took time.Duration, keys int) {
	fmt.Fprintf(w, "records: %d words of %d lines in %d batches, %.2fs\n", m.words, m.lines, len(m.times), took.Seconds())
	fmt.Fprintf(w, "keys: %d\n", keys)
	fmt.Fprintf(w, "records/s: %.0f\n", float64(m.words)/took.Seconds())
	fmt.Fprintf(w, "batch p50: %v p99: %v\n",
		percentile(m.times, 50).Round(10*time.Microsecond), percentile(m.times, 99).Round(10*time.Microsecond))
}

// percentile is the smallest value that at least p percent of the values do not
// exceed (nearest rank); 0 without values.
func percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (p*len(sorted) + 99) / 100
	return sorted[min(max(rank, 1), len(sorted))-1]
}
