package timeout

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const sec = int64(time.Second)

func tracker(t require.TestingT, o TrackerOptions) *Tracker {
	x, err := NewTracker(o)
	require.NoError(t, err)
	return x
}

func events(p string, times ...int64) Seen {
	s := Seen{Partition: p, Fetched: true, Records: int64(len(times))}
	for _, e := range times {
		s.Observe(e, math.MaxInt64)
	}
	return s
}

func empty(p string) Seen { return Seen{Partition: p, Fetched: true} }

// report 6: one idle partition stops the clock, unless idleness is asked for; a
// partition that nobody fetched is not idle; the watermark never goes back.
func TestReport6IdlePartition(t *testing.T) {
	x := tracker(t, TrackerOptions{})
	w, ok := x.Advance(0, []Seen{events("p0", 10*sec), events("p1", 0)})
	require.True(t, ok)
	require.Zero(t, w)
	for now := int64(1); now <= 100; now++ {
		w, _ = x.Advance(now*sec, []Seen{events("p0", now*sec), empty("p1")})
	}
	require.Zero(t, w, "without idleness p1 holds the watermark")

	x = tracker(t, TrackerOptions{IdleAfter: 3 * time.Second})
	x.Advance(0, []Seen{events("p0", 10*sec), events("p1", 0)})
	for now := int64(1); now <= 3; now++ {
		w, _ = x.Advance(now*sec, []Seen{events("p0", 100*sec), empty("p1")})
		require.Zero(t, w)
	}
	w, _ = x.Advance(4*sec, []Seen{events("p0", 100*sec), empty("p1")})
	require.Equal(t, 100*sec, w, "fetched empty for 3 s: the watermark follows p0")
	require.True(t, x.State().Partitions[1].Idle)
	require.True(t, x.Late(50*sec))
	w, _ = x.Advance(5*sec, []Seen{events("p0", 101*sec), events("p1", 50*sec)})
	require.Equal(t, 100*sec, w, "active again, and never back")
	require.False(t, x.State().Partitions[1].Idle)
	w, _ = x.Advance(6*sec, []Seen{events("p0", 102*sec), events("p1", 101*sec)})
	require.Equal(t, 101*sec, w)
}

func TestReport6SlowFunctionIsNotIdleness(t *testing.T) {
	x := tracker(t, TrackerOptions{IdleAfter: 3 * time.Second})
	x.Advance(0, []Seen{events("p0", sec), events("p1", 0)})
	x.Advance(sec, []Seen{events("p0", 2*sec), {Partition: "p1"}})
	x.Advance(11*sec, []Seen{events("p0", 3*sec), {Partition: "p1"}})
	require.False(t, x.State().Partitions[1].Idle, "not fetched for 10 s")
	x.Advance(12*sec, []Seen{empty("p1")})
	require.False(t, x.State().Partitions[1].Idle, "one empty fetch proves no duration")
	x.Advance(22*sec, []Seen{empty("p1")})
	require.False(t, x.State().Partitions[1].Idle, "one gap is not enough")
	x.Advance(32*sec, []Seen{empty("p1")})
	require.True(t, x.State().Partitions[1].Idle)
	x.Advance(33*sec, []Seen{{Partition: "p1", Fetched: true, Records: 2}})
	require.False(t, x.State().Partitions[1].Idle, "records without event time: alive")
}

// report 7: a record from the future neither drives the watermark nor hides.
func TestReport7Future(t *testing.T) {
	at := func(h, m, s int) int64 {
		return time.Date(2026, 1, 1, h, m, s, 0, time.UTC).UnixNano()
	}
	times := []int64{at(10, 0, 0), at(12, 0, 0), at(10, 0, 5), at(10, 0, 6)}
	run := func(bound time.Duration) (late int, x *Tracker) {
		x = tracker(t, TrackerOptions{Delay: 10 * time.Second, MaxFuture: bound})
		now := at(10, 0, 0)
		for _, e := range times { // the worst case: one batch each
			if x.Late(e) {
				late++
			}
			s := Seen{Partition: "p", Fetched: true, Records: 1}
			s.Observe(e, x.Limit(now))
			x.Advance(now, []Seen{s})
		}
		return late, x
	}
	late, x := run(5 * time.Minute)
	w, ok := x.Watermark()
	require.True(t, ok)
	require.LessOrEqual(t, w, at(10, 5, 0)-10*sec)
	require.Zero(t, late)
	require.Equal(t, int64(1), x.State().Partitions[0].Future)
	late, _ = run(0)
	require.Equal(t, 2, late)
}

func TestOnlyFutureEventsCountAsIdle(t *testing.T) {
	x := tracker(t, TrackerOptions{IdleAfter: 2 * time.Second, MaxFuture: time.Second})
	x.Assign("fast", "good")
	for now := int64(0); now < 5; now++ {
		fast := Seen{Partition: "fast", Fetched: true, Records: 1}
		require.False(t, fast.Observe((now+60)*sec, x.Limit(now*sec)))
		x.Advance(now*sec, []Seen{fast, events("good", now*sec)})
	}
	w, ok := x.Watermark()
	require.True(t, ok, "one fast clock must not stop the watermark for ever")
	require.Equal(t, 4*sec, w)
}

func TestPartitionsUnknownHoldBack(t *testing.T) {
	x := tracker(t, TrackerOptions{})
	x.Assign("a", "b")
	_, ok := x.Advance(0, []Seen{events("a", 5)})
	require.False(t, ok, "b has shown nothing yet")
	x.Forget("b")
	w, ok := x.Advance(0, nil)
	require.True(t, ok)
	require.Equal(t, int64(5), w)
	require.True(t, x.Late(5), "equal counts as late") // L4
	require.False(t, x.Late(6))
}

func TestAllIdle(t *testing.T) {
	x := tracker(t, TrackerOptions{IdleAfter: time.Second})
	x.Advance(0, []Seen{events("a", 100), events("b", 7)})
	for now := int64(1); now < 5; now++ {
		x.Advance(now*sec, []Seen{empty("a"), empty("b")})
	}
	w, _ := x.Watermark()
	require.Equal(t, int64(100), w, "nobody is left to wait for")
}

func TestTrackerOptionsChecked(t *testing.T) {
	for _, o := range []TrackerOptions{{Delay: -1}, {IdleAfter: -1}, {MaxFuture: -1}} {
		_, err := NewTracker(o)
		require.ErrorContains(t, err, "must not be negative")
	}
}

// The watermark never goes back, whatever comes, not over a restart either, and
// the order in which tasks report does not matter.
func TestWatermarkProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := TrackerOptions{
			Delay:     time.Duration(rapid.Int64Range(0, 20).Draw(t, "delay")),
			IdleAfter: time.Duration(rapid.Int64Range(0, 5).Draw(t, "idle")),
			MaxFuture: time.Duration(rapid.Int64Range(0, 20).Draw(t, "future")),
		}
		a, b := tracker(t, o), tracker(t, o)
		now, last, set := int64(0), int64(0), false
		for range rapid.IntRange(1, 30).Draw(t, "epochs") {
			now += rapid.Int64Range(0, 4).Draw(t, "step")
			var seen []Seen
			for range rapid.IntRange(0, 4).Draw(t, "tasks") {
				s := Seen{Partition: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "p"), Fetched: rapid.Bool().Draw(t, "fetched")}
				for range rapid.IntRange(0, 3).Draw(t, "n") {
					s.Fetched = true
					s.Records++
					s.Observe(now+rapid.Int64Range(-30, 60).Draw(t, "e"), a.Limit(now))
				}
				seen = append(seen, s)
			}
			wa, ok := a.Advance(now, seen)
			for i, j := 0, len(seen)-1; i < j; i, j = i+1, j-1 {
				seen[i], seen[j] = seen[j], seen[i]
			}
			wb, _ := b.Advance(now, seen)
			require.Equal(t, wa, wb)
			if set {
				require.True(t, ok)
				require.GreaterOrEqual(t, wa, last)
			}
			last, set = wa, ok
			if o.MaxFuture > 0 && ok {
				require.LessOrEqual(t, wa, now+int64(o.MaxFuture)-int64(o.Delay))
			}
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				c, d := tracker(t, o), tracker(t, o)
				c.Restore(a.State())
				d.Restore(b.State())
				a, b = c, d
			}
		}
	})
}
