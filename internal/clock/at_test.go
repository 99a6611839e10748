package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hasFired(t Timer) bool {
	_, yes := fired(t)
	return yes
}

// A timer for a time does not care what the clock showed a moment before.
func TestTimerAt(t *testing.T) {
	start := time.Unix(100, 0)
	m := NewManual(start)
	timer := TimerAt(m, start.Add(3*time.Second))
	m.Advance(2 * time.Second)
	assert.False(t, hasFired(timer))
	m.Advance(time.Second)
	assert.True(t, hasFired(timer))
	assert.True(t, hasFired(TimerAt(m, start.Add(3*time.Second))), "now")
	assert.True(t, hasFired(TimerAt(m, start)), "past")

	timer = TimerAt(m, start.Add(time.Hour))
	require.True(t, timer.Stop())
	m.Advance(2 * time.Hour)
	assert.False(t, hasFired(timer))
}

// A clock that does not offer it gets a timer of the time that is left.
func TestTimerAtOfTheSystem(t *testing.T) {
	c := System()
	<-TimerAt(c, c.Now()).C()
	timer := TimerAt(c, c.Now().Add(time.Hour))
	assert.False(t, hasFired(timer))
	assert.True(t, timer.Stop())
}
