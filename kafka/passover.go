package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/statemill/statemill/kafka/internal/batch"
)

// PassOver leaves out the offsets from up to, and without, until of a partition: what lies
// there cannot be read, for a record batch is damaged or too large. It may be given several
// times. A job with a checkpoint takes it as well, also for a batch that has failed before.
//
// Nothing at these offsets is asked for, what could be read neither. They count as lost
// ("lost_records" of [Monitor.Report]), each that lies in a range that is read, and are told
// (OnNotice). The text of a [RecordError] has the option as it is to be given. Take it out
// when the job is past it: of a topic that is made again it would leave out the same offsets.
func PassOver(p TopicPartition, from, until int64) SourceOption {
	return sourceOption(func(c *config) {
		if from < 0 || until <= from || p.Topic == "" || p.Partition < 0 {
			c.fault("PassOver: there can be no offsets [%d, %d) of %v", from, until, p)
			return
		}
		if c.passed == nil {
			c.passed = map[TopicPartition][]lostSpan{}
		}
		c.passed[p] = append(c.passed[p], lostSpan{from, until})
		slices.SortFunc(c.passed[p], func(a, b lostSpan) int { return cmp.Compare(a.from, b.from) })
	})
}

// passes says how far the offsets from next on are to be passed over, next if they are not,
// and up to where then nothing is, at most until.
func (c *config) passes(p TopicPartition, next, until int64) (to, limit int64) {
	to, limit = next, until
	for _, x := range c.passed[p] {
		switch {
		case x.from <= to:
			to = max(to, min(x.to, until))
		case x.from < limit:
			limit = x.from
		}
	}
	return to, limit
}

// pass moves a read over what is to be passed over, and bounds it before the next such
// place. It says whether the range is done.
func (x *reading) pass() (done bool) {
	to, limit := x.s.cfg.passes(x.p.TopicPartition, x.next, x.end)
	if to > x.next {
		if x.s.countLost(x.p, x.next, to) {
			x.s.notice("topic %q partition %d: offsets %d to %d are passed over, as PassOver says: %d records are lost, reading goes on at %d", x.p.Topic, x.p.Partition, x.next, to-1, to-x.next, to)
		}
		x.next = to
	}
	x.until = limit
	return x.next >= x.end
}

// passing is what to do about a batch that cannot be read.
func (e *RecordError) passing() string {
	until, more := e.Offset+1, " (or up to where the next batch begins, if this one has more offsets)"
	var b *batch.Error
	if errors.As(e.Err, &b) && b.Last >= e.Offset {
		until, more = b.Last+1, ""
	}
	return fmt.Sprintf("to go on without it, give PassOver(TopicPartition{%q, %d}, %d, %d)%s", e.Topic, e.Partition, e.Offset, until, more)
}
