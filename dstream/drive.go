package dstream

import (
	"errors"
	"time"
)

// drive is the driver goroutine: it runs batch after batch, and at the end lets
// go of everything.
func (r *run) drive() {
	err := r.loop()
	r.background.Wait()
	r.mu.Lock()
	for _, b := range r.remembered {
		b.dropAll()
	}
	r.remembered = nil
	for _, n := range r.ops {
		n.op.close()
	}
	r.mu.Unlock()
	if cerr := r.closeSources(); err == nil {
		err = cerr
	}
	r.ssc.ended(err)
	close(r.done)
}

// loop runs batches until a stop, the end of all sources, or an error.
func (r *run) loop() error {
	if err := r.listen(func(l *Listener) {
		if l.Started != nil {
			l.Started(r.zero)
		}
	}); err != nil {
		return err
	}
	interval := r.ssc.cfg.interval
	last := r.zero // newest tick that was handled
	var queue []time.Time
	for epoch := uint64(1); ; {
		if r.stopping() {
			return nil
		}
		now := r.clock.Now()
		for t := last.Add(interval); !t.After(now); t = t.Add(interval) {
			last = t
			queue = append(queue, t)
		}
		if len(queue) == 0 {
			if !r.sleep(last.Add(interval).Sub(now)) {
				return nil
			}
			continue
		}
		t := queue[0]
		queue = queue[1:]
		err := r.runEpoch(Batch{Epoch: epoch, Time: t.UTC()}, len(queue))
		if errors.Is(err, errNotBegun) {
			return nil
		}
		if err != nil {
			return err
		}
		epoch++
		if h := r.harness; h != nil {
			h.TickHandled(t.UnixNano())
		}
		if r.ssc.cfg.stopWhenDone && r.allDone() {
			return nil
		}
	}
}

func (r *run) allDone() bool {
	for _, in := range r.inputs {
		if !in.done() {
			return false
		}
	}
	return true
}

// sleep waits for d; false means that a stop was requested.
func (r *run) sleep(d time.Duration) bool {
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-r.soft.Done():
		return false
	}
}
