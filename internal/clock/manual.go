package clock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Manual is a clock for tests: its time moves only by Set and Advance. The
// methods may be called from any goroutine.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	seq    uint64
	timers []*manualTimer // waiting, in no order; few
	// changed is closed and renewed whenever the number of waiting timers
	// changes, to wake BlockUntil.
	changed chan struct{}
}

// NewManual returns a clock that stands at start.
func NewManual(start time.Time) *Manual {
	return &Manual{now: start.UTC().Round(0), changed: make(chan struct{})}
}

// Now returns the time the clock was last set to.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// NewTimer returns a timer that fires when the clock reaches now+d.
func (m *Manual) NewTimer(d time.Duration) Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newTimer(m.now.Add(d))
}

// newTimer makes a timer; mu is held.
func (m *Manual) newTimer(due time.Time) Timer {
	m.seq++
	// The channel holds the one value, so firing never waits for a reader.
	t := &manualTimer{m: m, c: make(chan time.Time, 1), due: due, seq: m.seq}
	if !due.After(m.now) {
		t.c <- m.now
		return t
	}
	m.timers = append(m.timers, t)
	m.notify()
	return t
}

// Advance moves the clock by d and fires, in order of their due times (equal
// ones in order of their making), all timers that are due. During the firing of
// a timer the clock shows that timer's due time.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moveTo(m.now.Add(d))
}

// Set moves the clock to t, firing timers as Advance does. A t before now turns
// the clock back and fires nothing; waiting timers keep their due times.
func (m *Manual) Set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moveTo(t.UTC().Round(0))
}

func (m *Manual) moveTo(t time.Time) {
	slices.SortFunc(m.timers, func(a, b *manualTimer) int {
		if c := a.due.Compare(b.due); c != 0 {
			return c
		}
		return int(a.seq) - int(b.seq)
	})
	fired := 0
	for _, w := range m.timers {
		if w.due.After(t) {
			break
		}
		w.c <- w.due
		fired++
	}
	m.now = t
	if fired > 0 {
		m.timers = slices.Delete(m.timers, 0, fired)
		m.notify()
	}
}

// BlockUntil waits until at least n timers are waiting: the code under test has
// then gone to sleep and the clock may be moved. It returns an error that wraps
// ctx's when ctx ends first.
func (m *Manual) BlockUntil(ctx context.Context, n int) error {
	for {
		m.mu.Lock()
		have, changed := len(m.timers), m.changed
		m.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("clock: %d of %d timers waiting: %w", have, n, ctx.Err())
		}
	}
}

func (m *Manual) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

type manualTimer struct {
	m   *Manual
	c   chan time.Time
	due time.Time
	seq uint64
}

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) Stop() bool {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	i := slices.Index(t.m.timers, t)
	if i < 0 {
		return false
	}
	t.m.timers = slices.Delete(t.m.timers, i, i+1)
	t.m.notify()
	return true
}
