package kafka

import (
	"fmt"
	"strings"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
)

// Readers of committed records go no further than the last stable offset: the first one of
// the oldest transaction that is open. A transaction that nobody ends holds them there,
// while the log grows behind it, and to a reader that looks like a log without news. So
// where the log really ends is asked for too, from time to time. That the last stable
// offset moves says that transactions end, however many are open.

// held is what is known of a partition's open transactions.
type held struct {
	high  int64     // where the log really ends, as far as is known
	since time.Time // when the end was first seen where it is, before more; zero: it is not
	seen  time.Time // and last
	told  bool
}

// sees notes what a broker says of a log: where it ends for this source, and where it
// really ends, -1 if it was not asked, or was asked later. mu of the source is held.
func (p *part) sees(end, high int64, now time.Time) {
	if end < p.end {
		return // from before
	}
	h := &p.held
	if end > p.end {
		p.end = end
		if !sabotage.On("open-transactions-add-up") {
			h.since = time.Time{}
		}
	}
	if high < 0 {
		high = h.high
	}
	if h.high = max(high, end); end == h.high {
		h.since = time.Time{}
		return
	}
	if h.since.IsZero() {
		h.since = now
	}
	h.seen = now
}

// endsAt is where a plan has found the end. A log that has become shorter is looked at anew.
func (p *part) endsAt(end int64, now time.Time) {
	if end < p.end {
		p.end, p.held.high, p.held.since = end, end, time.Time{}
	}
	p.sees(end, -1, now)
}

// waits is for how long the end has stood before an open transaction.
func (h *held) waits() time.Duration {
	if h.since.IsZero() {
		return 0
	}
	return h.seen.Sub(h.since)
}

// hangs says that p waits for too long before an open transaction. mu is held, as in what
// follows.
func (s *kafkaSource) hangs(p *part) bool {
	return !p.held.since.IsZero() && p.held.waits() >= s.cfg.hangAfter
}

func (s *kafkaSource) hanging(p *part) string {
	tool := fmt.Sprintf("kafka-transactions.sh --bootstrap-server %s", strings.Join(s.cfg.brokers, ","))
	return fmt.Sprintf("topic %q partition %d: committed records end at offset %d (the last stable offset), before a transaction that has been open for %v or longer; the log goes on to offset %d (the high watermark). Its producer may still be at work (HangAfter), or have left it: %q finds that out, and %q ends it",
		p.Topic, p.Partition, p.end, p.held.waits().Round(time.Millisecond), p.held.high,
		fmt.Sprintf("%s find-hanging --topic %s --partition %d", tool, p.Topic, p.Partition),
		fmt.Sprintf("%s abort --topic %s --partition %d --start-offset %d", tool, p.Topic, p.Partition, p.end))
}
