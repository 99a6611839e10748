package clock

import "time"

// TimerAt returns a timer that fires when the clock reaches t, at once if it
// has. With a clock that others move, NewTimer of the time that is left would
// be late if the clock moved between reading it and making the timer; this is
// one step for clocks that offer it.
func TimerAt(c Clock, t time.Time) Timer {
	if m, ok := c.(interface{ NewTimerAt(time.Time) Timer }); ok {
		return m.NewTimerAt(t)
	}
	return c.NewTimer(t.Sub(c.Now()))
}

// NewTimerAt returns a timer that fires when the clock reaches t.
func (m *Manual) NewTimerAt(t time.Time) Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newTimer(t)
}
