package staterdd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

// O3: what a batch's data took, and what the time-outs after them, by the clock that is given.
func TestStatsMeasure(t *testing.T) {
	now := at(0)
	count := func(_ string, v rdd.Option[int], s *State[int]) int {
		if s.IsTimingOut() {
			now = now.Add(7 * time.Millisecond)
			return -1
		}
		now = now.Add(2 * time.Millisecond)
		n, _ := v.Get()
		s.Update(n)
		return n
	}
	f := start(t, Function(count).NumPartitions(1).Timeout(time.Second), Options{Now: func() time.Time { return now }}, 0)
	f.batch(int64(time.Second), rdd.Pair[string, int]{Key: "a", Value: 1}, rdd.Pair[string, int]{Key: "b", Value: 1})
	s := f.cur.Stats()
	require.Equal(t, 4*time.Millisecond, s.Updates)
	require.Zero(t, s.Removals)
	f.batch(int64(5*time.Second), rdd.Pair[string, int]{Key: "a", Value: 1})
	s = f.cur.Stats()
	require.Equal(t, 2*time.Millisecond, s.Updates)
	require.Equal(t, 7*time.Millisecond, s.Removals)

	f = start(t, Function(count).NumPartitions(1), Options{}, 0)
	f.batch(int64(time.Second), rdd.Pair[string, int]{Key: "a", Value: 1})
	require.Zero(t, f.cur.Stats().Updates, "nobody measures")
}
