package dstream

import (
	"context"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// What sources tell of themselves (source.Reporter) comes from one place, ask: notices
// for listeners, the reports in Progress, and Health show nothing else.

// watchEvery is how often sources are asked for notices while a batch runs.
const watchEvery = time.Second

// reporting is what a run keeps of what its source tells.
type reporting struct {
	mu      sync.Mutex
	open    bool
	seen    int64           // Seq of the newest notice that was taken, since open
	pending []source.Notice // of before, not told yet
}

// ask gives the source's report; ok is false if it makes none.
func (in *input) ask() (r source.Report, ok bool) {
	reporter, ok := in.src.(source.Reporter)
	if !ok {
		return source.Report{}, false
	}
	r, err := call(in.name(), func() (source.Report, error) { return reporter.Report(), nil })
	if err != nil {
		r = source.Report{Warnings: []string{"its report failed: " + err.Error()}}
	}
	return r, true
}

// opens notes that the source is open: its notices are numbered anew.
func (in *input) opens() {
	in.reporting.mu.Lock()
	defer in.reporting.mu.Unlock()
	in.reporting.open, in.reporting.seen = true, 0
}

// closes keeps the last notices of a source that has been closed.
func (in *input) closes() {
	news := in.news()
	in.reporting.mu.Lock()
	defer in.reporting.mu.Unlock()
	in.reporting.open, in.reporting.pending = false, news
}

func (in *input) isOpen() bool {
	in.reporting.mu.Lock()
	defer in.reporting.mu.Unlock()
	return in.reporting.open
}

// news takes the notices that are new, in their order.
func (in *input) news() []source.Notice {
	k := &in.reporting
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.pending
	k.pending = nil
	if !k.open {
		return out
	}
	r, _ := in.ask()
	for _, n := range r.Notices {
		if n.Seq > k.seen {
			out = append(out, n)
			if !sabotage.On("notice-told-twice") {
				k.seen = n.Seq
			}
		}
	}
	return out
}

// hearsSources says that a listener wants notices, and a source may have some.
func (r *run) hearsSources() bool {
	hears, tells := false, false
	for i := range r.ssc.cfg.listeners {
		hears = hears || r.ssc.cfg.listeners[i].SourceNotice != nil
	}
	for _, in := range r.inputs {
		_, ok := in.src.(source.Reporter)
		tells = tells || ok
	}
	return hears && tells
}

// teller tells notices, one caller at a time, so that they stay in order.
type teller struct {
	mu  sync.Mutex
	err error // what became of a listener; it ends the run with the next phase
}

// tellSources tells the listeners what sources have to say. It may be called from
// several goroutines.
func (r *run) tellSources() (err error) {
	if !r.hearsSources() {
		return nil
	}
	t := &r.teller
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.err = pool.ErrGoexit // if a listener ends this goroutine
	for _, in := range r.inputs {
		for _, n := range in.news() {
			err := r.listen(func(l *Listener) {
				if l.SourceNotice != nil {
					l.SourceNotice(in.name(), n)
				}
			})
			if err != nil {
				t.err = err
				return err
			}
		}
	}
	t.err = nil
	return nil
}

// watchSources tells notices while a batch runs: that a read has stalled is no news
// when it is over. stop ends that.
func (r *run) watchSources() (stop func()) {
	if !r.hearsSources() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		for clock.Wait(ctx, r.clock, watchEvery) == nil {
			if r.tellSources() != nil {
				return // the next phase of the batch meets it
			}
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// tells puts a source's report into its part of a batch's progress.
func (p *SourceProgress) tells(r source.Report) {
	p.Reports, p.Warnings, p.Counters = true, r.Warnings, r.Counters
	p.Lag = lagOf(r)
	at := map[string]source.PartitionReport{}
	for _, x := range r.Partitions {
		at[x.Partition] = x
	}
	for i := range p.Ranges {
		if x, ok := at[p.Ranges[i].Partition]; ok {
			g := &p.Ranges[i]
			g.End, g.Lag, g.LastProgress, g.Waiting, g.Stalled = x.End, x.Lag, x.Progress, x.Waiting, x.Stalled
			g.Written, g.Held = x.Written, x.Held
		}
	}
}

// lagOf is what waits in all partitions.
func lagOf(r source.Report) (n int64) {
	for _, x := range r.Partitions {
		n += x.Lag
	}
	return n
}
