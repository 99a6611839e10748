package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/statemill/statemill/dstream"
)

// meter adds up what the batches report, and shows progress once a second as
// plain lines. The engine calls it from one goroutine.
type meter struct {
	to    io.Writer
	began time.Time
	// written, if set, is how many lines are in the topic so far.
	written func() int64
	// after, if set, is called after each batch.
	after func()

	shown        time.Time
	shownLines   int64
	newest       time.Time // when the last batch with records was done
	lines, words int64     // of this run
	position     int64     // lines counted in all, by this run and those that it goes on from
	keys         int64
	times        []time.Duration // processing times of batches with records
}

func (m *meter) batch(p dstream.Progress) {
	now := time.Now()
	m.lines += p.InputRows
	if p.InputRows > 0 {
		m.times = append(m.times, p.ProcessingDelay)
		m.newest = now
	}
	m.position = 0
	for _, src := range p.Sources {
		for _, r := range src.Ranges {
			m.position += r.Until
		}
	}
	for _, op := range p.Operators {
		m.words += op.Calls
		m.keys = op.Keys
	}
	if now.Sub(m.shown) >= time.Second && m.lines > m.shownLines {
		m.shown, m.shownLines = now, m.lines
		fmt.Fprintf(m.to, "%5.1fs  batch %d: %d lines, %d words, %d keys%s\n",
			now.Sub(m.began).Seconds(), p.Batch.Epoch, m.lines, m.words, m.keys, m.ofWritten())
	}
	if m.after != nil {
		m.after()
	}
}

func (m *meter) ofWritten() string {
	if m.written == nil {
		return ""
	}
	// Lines are counted before their write is answered, at times.
	return fmt.Sprintf(" (%d lines written)", max(m.written(), m.position))
}

// summary prints the top words of all, and the numbers of the whole run.
func (m *meter) summary(w io.Writer, took time.Duration, totals map[string]int64, n int) {
	if n > 0 && len(totals) > 0 {
		top := topWords{n: n}
		for _, word := range slices.Sorted(maps.Keys(totals)) {
			top.add(word, totals[word])
		}
		fmt.Fprintf(w, "all: top words: %s\n", top.String())
	}
	fmt.Fprintf(w, "records: %d words of %d lines in %d batches, %.2fs\n", m.words, m.lines, len(m.times), took.Seconds())
	fmt.Fprintf(w, "keys: %d\n", len(totals))
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
