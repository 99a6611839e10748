package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statemill/statemill/vfs"
)

// dawdle is how much longer a call takes in the phase in which the job is slow.
const dawdle = 5 * time.Millisecond

// phases tells the phases of epochs as they begin, each once, and is slow in one of
// them. It sees every file call of the checkpoint and of the sink.
type phases struct {
	to    io.Writer
	slow  string
	after int

	mu    sync.Mutex
	phase string
	done  int // epochs of this run

	epoch    atomic.Uint64
	calls    atomic.Int64 // of the user function in this epoch
	dawdling atomic.Bool
}

// enter tells a phase, if it is another one than the last. What is done before the
// first epoch, such as a change of the number of partitions, is the start.
func (p *phases) enter(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == phase || p.epoch.Load() == 0 {
		return
	}
	p.phase = phase
	p.dawdling.Store(phase == p.slow && p.done >= p.after)
	fmt.Fprintf(p.to, "%s %d\n", phase, p.epoch.Load())
}

// began: the epoch's sources are planned.
func (p *phases) began(epoch uint64) {
	p.epoch.Store(epoch)
	p.calls.Store(0)
}

// ended: the epoch is committed.
func (p *phases) ended(epoch uint64) {
	p.mu.Lock()
	p.done++
	p.mu.Unlock()
	p.enter("idle")
}

// computing is called for every record, by several workers at once.
func (p *phases) computing() {
	n := p.calls.Add(1)
	if n == 1 {
		p.enter("compute")
	}
	if n < 10 && p.dawdling.Load() {
		<-time.After(dawdle)
	}
}

// Before is told every file call.
func (p *phases) Before(c vfs.Call) vfs.Fault {
	if c.Kind&vfs.KindWrites == 0 {
		return vfs.Fault{}
	}
	if phase := phaseOf(c.Path); phase != "" {
		if c.Kind&(vfs.KindCreate|vfs.KindPut) != 0 {
			p.enter(phase)
		}
		if phase == p.slow && p.dawdling.Load() {
			<-time.After(dawdle)
		}
	}
	return vfs.Fault{}
}

// phaseOf tells a phase by a file's name. Snapshots and the clean-up run beside the
// phases.
func phaseOf(path string) string {
	switch {
	case strings.Contains(path, "/offsets/"):
		return "plan"
	case strings.Contains(path, "/state/") && strings.Contains(path, ".delta"):
		return "delta"
	case strings.Contains(path, "/sink/"):
		return "sink"
	case strings.Contains(path, "/commits/"):
		return "commit"
	}
	return ""
}
