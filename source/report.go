package source

import (
	"slices"
	"sync"
	"time"
)

// Reporter is offered by sources that can tell how they are, beside the calls of the
// engine: for a health page, for metrics, for a log.
type Reporter interface {
	// Report may be called at any time, from any goroutine. It asks nobody: it tells
	// what is known.
	Report() Report
}

// Report is how a source is. It belongs to the caller.
type Report struct {
	// Partitions has those that the source plans, in the order of its plans.
	Partitions []PartitionReport
	// Warnings say what is wrong now, by name; none means healthy.
	Warnings []string
	// Counters count since Open, by name, such as "lost_records".
	Counters map[string]int64
	// Notices are the last things that a user should know, oldest first.
	Notices []Notice
}

// PartitionReport is one partition of a Report.
type PartitionReport struct {
	Partition string
	// Next is the offset behind what is committed, End the one behind the last record
	// that the source knows of, Lag the difference. Next is -1 before the first plan.
	Next, End, Lag int64
	// Written is where the source really ends, if it gives only what is committed and
	// knows of more; else it is End, or 0 of sources that do not tell. What lies between is
	// no lag: nobody can read it yet.
	Written int64
	// Held is for how long End has been seen to stand before Written, by a transaction that
	// is open; 0 if it does not.
	Held time.Duration
	// Progress is when a read last moved forward, or found nothing left to read; zero
	// before the first.
	Progress time.Time
	// Waiting is for how long a read, or a plan, has been waiting for the source without moving
	// forward; 0 while it moves, and while nothing is to be read. A function that is
	// slow is no wait.
	Waiting time.Duration
	// Stalled: Waiting is longer than the source holds for normal.
	Stalled bool
}

// Notice is one thing that happened.
type Notice struct {
	Seq  int64 // 1, 2, 3 …
	Time time.Time
	Text string
}

// noticesKept is how many notices a report has.
const noticesKept = 32

// Notices keeps the last notices of a source, 32 of them, for its Report. Its zero value
// is ready; its methods may be called from any goroutine.
type Notices struct {
	mu   sync.Mutex
	seq  int64
	last []Notice
}

// Add adds one, with the next number, and gives it back.
func (n *Notices) Add(at time.Time, text string) Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	x := Notice{Seq: n.seq, Time: at, Text: text}
	n.last = append(n.last, x)
	n.last = n.last[max(0, len(n.last)-noticesKept):]
	return x
}

// All gives them, oldest first. The slice is the caller's.
func (n *Notices) All() []Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.last)
}

// Reset forgets them: an opened source numbers anew.
func (n *Notices) Reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq, n.last = 0, nil
}
