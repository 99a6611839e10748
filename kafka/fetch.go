package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/statemill/statemill/internal/clock"
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

// fetch asks the leader for batches from an offset on, and tries again until it
// gets an answer without an error or the limit passes. An answer without a byte is
// taken only from a log that goes to until.
func (s *kafkaSource) fetch(ctx context.Context, p *part, offset, until int64, maxBytes int) (wire.FetchAnswer, error) {
	r := s.cluster.retrier()
	for {
		a, addr, err := s.fetchOnce(ctx, p, offset, until, maxBytes)
		if err == nil {
			return a, nil
		}
		err = s.failure(ctx, p, offset, err)
		if !r.again(ctx, err) {
			var size *wire.SizeError
			switch {
			case errors.As(err, &size):
				return a, p.tooLarge(offset, int64(size.Size), s.cfg.maxBatchBytes)
			case errors.As(err, new(*OffsetRangeError)):
				return a, err
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			}
			if addr == "" {
				addr = "unknown"
			}
			return a, r.wrap(err, "fetch topic %q partition %d offset %d from broker %s", p.Topic, p.Partition, offset, addr)
		}
		// Whatever it was, the leader may be another one now. If the cluster cannot
		// be asked, the next try tells.
		if rerr := s.refresh(ctx, []*part{p}); rerr != nil && !passing(rerr) {
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
	case a.Missing:
		// A broker that throttles answers at once and with nothing.
		if err := pause(ctx, a.Throttle); err != nil {
			return a, addr, err
		}
		return a, addr, fmt.Errorf("broker %s: the answer has no data of the partition (throttled for %v)", addr, a.Throttle)
	}
	end := a.HighWatermark
	if !s.cfg.dirty && a.LastStable >= 0 {
		end = min(end, a.LastStable)
	}
	if len(a.Batches) == 0 && end < until {
		return a, addr, errBehind{end, until}
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
	if offset >= have[0].earliest && offset <= have[0].latest {
		return errBehind{have[0].latest, offset} // it was a follower, or just elected
	}
	return &OffsetRangeError{p.Topic, p.Partition, offset, have[0].earliest, have[0].latest}
}

// pause waits, at most a second.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := clock.System().NewTimer(min(d, time.Second))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
