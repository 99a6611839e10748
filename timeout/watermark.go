package timeout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
)

// TrackerOptions say how the watermark follows the event times.
type TrackerOptions struct {
	// Delay is how far the watermark stays behind the greatest event time seen,
	// so how late an event may come. Default 0; negative is an error.
	Delay time.Duration
	// IdleAfter is after how much time of nothing but empty fetches a partition
	// no longer holds the watermark back. Default 0: never. Negative is an error.
	IdleAfter time.Duration
	// MaxFuture is how far ahead of the clock an event time may lie to count for
	// the watermark. Default 0: no bound. Negative is an error.
	MaxFuture time.Duration
}

// Seen is what the tasks of one epoch saw of one source partition. A task fills
// one with Observe, record by record, and hands it over with its result.
type Seen struct {
	// Partition names the source partition.
	Partition string
	// Fetched says that the source was asked for the partition's records and
	// answered, with or without some. A partition that nobody asked is not idle.
	Fetched bool
	// Records counts the records read, those without an event time included.
	Records int64
	// Max is the greatest event time within the bound; valid if Any.
	Max int64
	// Any says that there was an event time within the bound.
	Any bool
	// Future counts the event times beyond the bound.
	Future int64
}

// Observe takes in one event time; limit is the epoch's [Tracker.Limit]. It
// reports false, and counts, if the event lies beyond the limit: the record is
// processed like any other but does not move the watermark.
func (s *Seen) Observe(event, limit int64) bool {
	if event > limit {
		s.Future++
		return false
	}
	if !s.Any || event > s.Max {
		s.Max, s.Any = event, true
	}
	return true
}

// PartitionState is what a Tracker knows of one partition.
type PartitionState struct {
	Name string
	// Max is the greatest event time seen; valid if Any.
	Max int64
	Any bool
	// Idle says that the partition does not hold the watermark back now.
	Idle bool
	// Future counts its events beyond the bound since the tracker was made.
	Future int64
}

// TrackerState is a Tracker's memory, for a checkpoint. Idleness is not in it:
// after a restart every partition is active until it has been idle again.
type TrackerState struct {
	Watermark  int64
	Set        bool             // there is a watermark
	Partitions []PartitionState // sorted by name
}

// Tracker computes the watermark of one event-time operator: the least of the
// partitions' greatest event times, minus Delay. It never goes back. It moves at
// the end of an epoch and holds from the next one on, so records of one batch
// cannot make each other late.
//
// A partition that has shown no event time yet holds the watermark where it is;
// so does one that lags. Partitions that are idle (see IdleAfter) do not; when
// all are idle, the greatest event time among them decides. An idle partition
// that gives a record is active again. A partition whose events all lie beyond
// MaxFuture counts as one that gives nothing, so one fast clock neither drives
// nor, with IdleAfter, stops the watermark.
type Tracker struct {
	o         TrackerOptions
	parts     map[string]*partition
	watermark int64
	set       bool
}

type partition struct {
	PartitionState
	quiet   bool          // the last fetch gave nothing
	last    int64         // when that was
	idleFor time.Duration // how long quiet, as far as fetches prove it
}

// NewTracker returns a tracker that has no watermark yet.
func NewTracker(o TrackerOptions) (*Tracker, error) {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"Delay", o.Delay}, {"IdleAfter", o.IdleAfter}, {"MaxFuture", o.MaxFuture}} {
		if d.d < 0 {
			return nil, fmt.Errorf("timeout: watermark option %s is %v: it must not be negative", d.name, d.d)
		}
	}
	return &Tracker{o: o, parts: map[string]*partition{}}, nil
}

// Assign makes partitions known: each holds the watermark back until it shows an
// event time or is idle. Known ones stay as they are.
func (t *Tracker) Assign(names ...string) {
	for _, n := range names {
		t.part(n)
	}
}

// Forget takes out partitions that no longer belong to the source.
func (t *Tracker) Forget(names ...string) {
	for _, n := range names {
		delete(t.parts, n)
	}
}

// Limit is the greatest event time that may move the watermark in an epoch
// whose batch time (or clock) is now.
func (t *Tracker) Limit(now int64) int64 {
	if t.o.MaxFuture == 0 {
		return math.MaxInt64
	}
	return satAdd(now, int64(t.o.MaxFuture))
}

// Advance takes in what an epoch saw, one Seen per task, and returns the
// watermark that holds from the next epoch on; ok is false while there is none.
func (t *Tracker) Advance(now int64, seen []Seen) (watermark int64, ok bool) {
	for _, s := range merge(seen) {
		t.part(s.Partition).observe(now, s, t.o.IdleAfter)
	}
	if front, ok := t.front(); ok {
		w := satAdd(front, -int64(t.o.Delay))
		if !t.set || w > t.watermark || sabotage.On("watermark-goes-back") {
			t.watermark, t.set = w, true
		}
	}
	return t.Watermark()
}

// Watermark is the present watermark; ok is false while there is none.
func (t *Tracker) Watermark() (watermark int64, ok bool) { return t.watermark, t.set }

// Late reports whether an event is late: not after the watermark.
func (t *Tracker) Late(event int64) bool { return t.set && event <= t.watermark }

// State returns the memory for a checkpoint.
func (t *Tracker) State() TrackerState {
	s := TrackerState{Watermark: t.watermark, Set: t.set}
	for _, name := range slices.Sorted(maps.Keys(t.parts)) {
		s.Partitions = append(s.Partitions, t.parts[name].PartitionState)
	}
	return s
}

// Restore replaces the tracker's memory by that of a checkpoint.
func (t *Tracker) Restore(s TrackerState) {
	t.watermark, t.set = s.Watermark, s.Set
	t.parts = map[string]*partition{}
	for _, p := range s.Partitions {
		p.Idle = false
		t.parts[p.Name] = &partition{PartitionState: p}
	}
}

// front is how far all partitions that count have come.
func (t *Tracker) front() (int64, bool) {
	least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
	active, any := false, false
	for _, p := range t.parts {
		if p.Any {
			any = true
			greatest = max(greatest, p.Max)
		}
		if p.Idle {
			continue
		}
		if !p.Any {
			return 0, false
		}
		active = true
		least = min(least, p.Max)
	}
	if active {
		return least, true
	}
	return greatest, any
}

func (t *Tracker) part(name string) *partition {
	p := t.parts[name]
	if p == nil {
		p = &partition{PartitionState: PartitionState{Name: name}}
		t.parts[name] = p
	}
	return p
}

func (p *partition) observe(now int64, s Seen, idleAfter time.Duration) {
	p.Future += s.Future
	switch {
	case s.Any:
		if !p.Any || s.Max > p.Max {
			p.Max, p.Any = s.Max, true
		}
		p.quiet, p.Idle, p.idleFor = false, false, 0
	case !s.Fetched:
		// Nobody looked: that says nothing about the partition.
	case s.Records > s.Future:
		// Records without an event time: alive, though nothing moves.
		p.quiet, p.Idle, p.idleFor = false, false, 0
	default:
		if p.quiet {
			// A slow batch makes the fetches rare, not the partition idle: no gap
			// between two of them counts for more than half of IdleAfter.
			gap := min(time.Duration(max(now-p.last, 0)), (idleAfter+1)/2)
			p.idleFor += gap
		}
		p.quiet, p.last = true, now
		p.Idle = idleAfter > 0 && p.idleFor >= idleAfter
	}
}

// merge joins what several tasks saw of one partition.
func merge(seen []Seen) []Seen {
	at := map[string]int{}
	var out []Seen
	for _, s := range seen {
		i, ok := at[s.Partition]
		if !ok {
			at[s.Partition] = len(out)
			out = append(out, s)
			continue
		}
		m := &out[i]
		m.Fetched = m.Fetched || s.Fetched
		m.Records += s.Records
		m.Future += s.Future
		if s.Any && (!m.Any || s.Max > m.Max) {
			m.Max, m.Any = s.Max, true
		}
	}
	return out
}
