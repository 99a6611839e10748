package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
)

// fetchWait is how long a broker may wait for bytes. They are there, but a broker
// with tiered storage may have to bring them.
const fetchWait = 500 * time.Millisecond

// headroom is what an answer has besides its batches.
const headroom = 1 << 20

// errBehind: the log ends before a range that was planned; a new leader may not
// know its end yet.
type errBehind struct{ end, want int64 }

func (e errBehind) Error() string {
	return fmt.Sprintf("the log ends at offset %d now, before offset %d that was there when the batch was planned: were records lost by an unclean leader election?", e.end, e.want)
}

// errHeld: committed records end before a range that was planned by who reads all, or was
// given: they go on when the transaction is over.
type errHeld struct{ stable, high, want int64 }

func (e errHeld) Error() string {
	return fmt.Sprintf("committed records end at offset %d (the last stable offset), before a transaction that is open; the log goes on to offset %d, and the range to %d: it can be read when the transaction is over", e.stable, e.high, e.want)
}

// errNoData is an answer without the partition, or without its bytes. A broker that
// throttles a client by a quota answers at once and with nothing, and reads nothing more
// from that connection until the time has passed.
type errNoData struct {
	addr      string
	throttled time.Duration
}

func (e errNoData) Error() string {
	return fmt.Sprintf("broker %s: the answer has no data of the partition (throttled for %v)", e.addr, e.throttled)
}

const (
	// longestThrottle bounds one wait for a quota, mostThrottles how many there are in
	// a row: readers of several partitions share a quota, and one of them is first.
	longestThrottle = time.Minute
	mostThrottles   = 30
)

// fetch asks the leader for batches from an offset on, and tries again until it
// gets an answer without an error or the limit passes. To be throttled is no failure:
// it waits as long as the broker says. An answer without a byte is taken only from a
// log that goes to until.
func (s *kafkaSource) fetch(ctx context.Context, p *part, offset, until int64, maxBytes int) (wire.FetchAnswer, error) {
	r := s.patient(p)
	var gone error // what the cluster says of a topic that it does not know
	for throttles, pause := 0, firstPause; ; {
		a, addr, err := s.fetchOnce(ctx, p, offset, until, maxBytes)
		if err == nil {
			return a, nil
		}
		var none errNoData
		if errors.As(err, &none) && none.throttled > 0 && throttles < mostThrottles {
			throttles++
			if err := clock.Wait(ctx, clock.System(), min(none.throttled, longestThrottle)); err != nil {
				return a, err
			}
			continue
		}
		err = s.failure(ctx, p, offset, err)
		if errors.As(err, new(errHeld)) && !s.cfg.once && !sabotage.On("held-range-fails") {
			// As a plan waits before a transaction, so does this: there is nothing to fail.
			s.held(p, a)
			if err := clock.Wait(ctx, clock.System(), pause); err != nil {
				return a, err
			}
			s.waits(p)
			r, pause = s.patient(p), min(2*pause, longestPause)
		} else if !r.again(ctx, err) {
			var size *wire.SizeError
			switch {
			case errors.As(err, &size):
				return a, p.tooLarge(offset, int64(size.Size), s.cfg.maxBatchBytes)
			case errors.As(err, new(*OffsetRangeError)):
				return a, err
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case gone != nil:
				err = gone
			}
			if addr == "" {
				addr = "unknown"
			}
			return a, r.wrap(err, "fetch topic %q partition %d offset %d from broker %s", p.Topic, p.Partition, offset, addr)
		}
		// Whatever it was, the leader may be another one now. If the cluster cannot
		// be asked, the next try tells.
		rerr := s.refresh(ctx, []*part{p})
		if gone = nil; errors.Is(rerr, ErrNoTopic) {
			gone = rerr
		}
		if rerr != nil && !passing(rerr) && !r.mayCome(rerr) {
			return a, r.wrap(rerr, "fetch topic %q partition %d offset %d", p.Topic, p.Partition, offset)
		}
	}
}

func (s *kafkaSource) fetchOnce(ctx context.Context, p *part, offset, until int64, maxBytes int) (a wire.FetchAnswer, addr string, err error) {
	if addr = s.cluster.leader(p.TopicPartition); addr == "" {
		return a, addr, errNoLeader
	}
	q := wire.FetchRequest{
		TopicPartition: wire.TopicPartition(p.TopicPartition), Offset: offset, Committed: !s.cfg.dirty,
		MaxBytes: maxBytes, Wait: fetchWait,
		MaxAnswer: int(min(max(int64(maxBytes), s.cfg.maxBatchBytes)+headroom, math.MaxInt32)),
	}
	if err = s.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
		a, err = c.Fetch(ctx, q)
		return err
	}); err != nil {
		return a, addr, err
	}
	switch {
	case a.Err != nil:
		return a, addr, fmt.Errorf("broker %s: %w", addr, a.Err)
	case a.Missing, len(a.Batches) == 0 && a.Throttle > 0:
		return a, addr, errNoData{addr, a.Throttle}
	}
	if end := s.endOf(a); len(a.Batches) == 0 && end < until {
		if a.HighWatermark >= until {
			return a, addr, errHeld{end, a.HighWatermark, until}
		}
		return a, addr, errBehind{a.HighWatermark, until}
	}
	return a, addr, nil
}

// failure looks closer at an error.
func (s *kafkaSource) failure(ctx context.Context, p *part, offset int64, err error) error {
	if !errors.Is(err, wire.OffsetOutOfRange) {
		return err
	}
	have, serr := s.spans(ctx, []*part{p}, func(*part) bool { return true })
	if serr != nil {
		return serr
	}
	if offset > have[0].end() && !s.cfg.dirty {
		if err := s.askAs(ctx, wire.Latest, false, []*part{p}, []int{0}, func(_ int, a wire.OffsetAnswer) { have[0].high = a.Offset }); err != nil {
			return err
		}
	}
	if offset >= have[0].earliest && offset <= have[0].end() {
		return errBehind{have[0].end(), offset} // it was a follower, or just elected
	}
	return &OffsetRangeError{p.Topic, p.Partition, offset, have[0].earliest, have[0].end()}
}
