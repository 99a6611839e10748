package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// A plan's ranges carry, as their mark, the leader epoch under which their log was seen.
// What lay below the range's end then lies there still, unless records were lost: by an
// unclean leader election, or because the topic was made again. The leader tells, by the
// end of that epoch's log, even if the log has grown beyond the position since. It is
// asked once after a start, and when the epoch has changed.

// TruncatedError is a log that has lost records which were read, and that may have
// others in their place.
type TruncatedError struct {
	Topic     string
	Partition int32
	// Read is how far the log was read, under leader epoch Epoch. Of what was written
	// by then, the log has what lies before End.
	Read  int64
	Epoch int32
	End   int64
	// Latest is the log's end now, -1 if it is not known.
	Latest int64
}

func (e *TruncatedError) Error() string {
	now := ""
	if e.Latest >= 0 {
		now = fmt.Sprintf(" (it goes to %d now)", e.Latest)
	}
	return fmt.Sprintf("topic %q partition %d: it was read up to offset %d under leader epoch %d, but what the log has from that time ends at offset %d%s: offsets %d to %d were lost, by an unclean leader election or because the topic was made again, and other records may have them now. Either start on a new checkpoint (FromOffsets or FromEarliest), or take an older version of the state, from offset %d or before",
		e.Topic, e.Partition, e.Read, e.Epoch, e.End, now, e.End, e.Read-1, e.End)
}

// Permanent says that trying again does not help.
func (e *TruncatedError) Permanent() bool { return true }

// errOtherLog is a leader that knows no epoch as late as the one that was seen, and does
// not lead under one. It may have been replaced and not know it yet.
type errOtherLog struct {
	p     *part
	read  int64
	epoch int32
}

func (e *errOtherLog) Error() string {
	return fmt.Sprintf("topic %q partition %d: it was read up to offset %d under leader epoch %d, but its leader knows no epoch that late", e.p.Topic, e.p.Partition, e.read, e.epoch)
}

// Permanent is for passing.
func (e *errOtherLog) Permanent() bool { return false }

// markOf is a range's mark.
func markOf(epoch int32) string {
	if epoch < 0 {
		return ""
	}
	return strconv.Itoa(int(epoch))
}

// epochOf is the leader epoch of a mark, -1 for none.
func epochOf(mark string) int32 {
	n, err := strconv.ParseInt(mark, 10, 32)
	if err != nil || n < 0 {
		return -1
	}
	return int32(n)
}

// seen is a log that was seen up to an offset under a leader epoch.
type seen struct {
	p     *part
	until int64
	epoch int32
	now   int64 // the log's end, -1 if it is not known
}

// sameLogs checks the logs of which the leader has changed since the last plan, or that
// were seen by an earlier run. What was fetched ahead under another leader is dropped: of
// that, too, the new one may have lost something, and nobody has read it yet.
func (s *kafkaSource) sameLogs(ctx context.Context, parts []*part, spans []span) error {
	var all []seen
	var led []*part
	s.mu.Lock()
	for i, p := range parts {
		if p.placed && p.epoch >= 0 && (p.doubtful || spans[i].epoch != p.epoch) {
			all = append(all, seen{p, p.next, p.epoch, spans[i].end()})
		}
		if p.placed && spans[i].epoch != p.epoch && !sabotage.On("ahead-of-any-leader") {
			led = append(led, p)
		}
	}
	s.mu.Unlock()
	for _, p := range led {
		s.ahead.forget(p)
	}
	return s.confirm(ctx, all)
}

// certain is sameLogs for what a read is about to read.
func (s *kafkaSource) certain(ctx context.Context, p *part) error {
	s.mu.Lock()
	x, doubtful := seen{p, p.next, p.epoch, -1}, p.doubtful
	s.mu.Unlock()
	if !doubtful {
		return nil
	}
	return s.confirm(ctx, []seen{x})
}

// confirm asks the leaders whether the logs are those that were seen.
func (s *kafkaSource) confirm(ctx context.Context, all []seen) error {
	if len(all) == 0 {
		return nil
	}
	var parts []*part
	for _, x := range all {
		parts = append(parts, x.p)
	}
	r := s.patient(parts[0])
	var gone error // what the cluster says of a topic that it does not know
	for {
		err := s.confirmOnce(ctx, all)
		if err == nil {
			break
		}
		if r.again(ctx, err) {
			// If the cluster cannot be asked, the next try tells.
			err := s.refresh(ctx, parts)
			if gone = nil; errors.Is(err, ErrNoTopic) {
				gone = err
			}
			if err != nil && !passing(err) && !r.mayCome(err) {
				return r.wrap(err, "leader epochs of %v", &s.cfg.subscription)
			}
			continue
		}
		if other, ok := err.(*errOtherLog); ok && ctx.Err() == nil {
			err = other.final()
		} else if gone != nil && ctx.Err() == nil {
			err = gone
		}
		return r.wrap(err, "leader epochs of %v", &s.cfg.subscription)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range all {
		x.p.doubtful = false
	}
	return nil
}

// final is what it means when it does not pass. A topic with the same id is the same
// one: then its brokers have lost more than records.
func (e *errOtherLog) final() error {
	what := fmt.Sprintf("partition %d was read up to offset %d under leader epoch %d, and its leader knows no epoch that late", e.p.Partition, e.read, e.epoch)
	if e.p.id != "" {
		return &source.ChangedError{Source: fmt.Sprintf("topic %q", e.p.Topic),
			What: what + ", though the topic has the same id: were the cluster's metadata lost? Start on a new checkpoint (FromOffsets or FromEarliest)"}
	}
	return &TopicGoneError{e.p.Topic, map[int32]int64{e.p.Partition: e.read}, &source.ChangedError{Source: fmt.Sprintf("topic %q", e.p.Topic),
		What: "it was deleted and made again: " + what + "; offsets from before mean nothing in it; " + lossChoices}}
}

// confirmOnce asks each broker for what it leads.
func (s *kafkaSource) confirmOnce(ctx context.Context, all []seen) error {
	byLeader := map[string][]seen{}
	for _, x := range all {
		addr := s.cluster.leader(x.p.TopicPartition)
		if addr == "" {
			return fmt.Errorf("%s: %w", x.p.name, errNoLeader)
		}
		byLeader[addr] = append(byLeader[addr], x)
	}
	addrs := sortedKeys(byLeader)
	return pool.Run(ctx, len(addrs), len(addrs), func(ctx context.Context, _, i int) error {
		return s.confirmAt(ctx, addrs[i], byLeader[addrs[i]])
	})
}

// confirmAt asks one broker. One that does not tell epochs is believed.
func (s *kafkaSource) confirmAt(ctx context.Context, addr string, list []seen) error {
	questions := make([]wire.EpochQuestion, len(list))
	for i, x := range list {
		questions[i] = wire.EpochQuestion{TopicPartition: wire.TopicPartition(x.p.TopicPartition), Epoch: x.epoch}
	}
	var ends []wire.EpochEnd
	silent := false
	err := s.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
		if silent = !c.TellsEpochs(); silent {
			return nil
		}
		ends, err = c.EpochEnds(ctx, questions)
		return err
	})
	if err != nil || silent {
		return err
	}
	var unknown []seen
	told := map[TopicPartition]int{}
	for i, e := range ends {
		if _, twice := told[TopicPartition(e.TopicPartition)]; !twice {
			told[TopicPartition(e.TopicPartition)] = i
		}
	}
	for _, x := range list {
		i, has := told[x.p.TopicPartition]
		switch {
		case !has:
			return fmt.Errorf("broker %s told no leader epoch of %s", addr, x.p.name)
		case ends[i].Err != nil:
			return fmt.Errorf("%s at broker %s: %w", x.p.name, addr, ends[i].Err)
		case sabotage.On("leader-epoch-believed"):
		case ends[i].Epoch < 0 || ends[i].End < 0:
			unknown = append(unknown, x)
		case ends[i].End < x.until:
			return &TruncatedError{x.p.Topic, x.p.Partition, x.until, x.epoch, ends[i].End, x.now}
		}
	}
	return s.ledLater(ctx, addr, unknown)
}

// ledLater looks closer at a broker that knows no epochs as late as those that were
// seen. Some brokers know only epochs in which something was written (Apache Kafka notes
// every leader's): one whose own epoch is as late has the same history, under which
// nothing was written since, and what was read is there as far as its log goes.
func (s *kafkaSource) ledLater(ctx context.Context, addr string, unknown []seen) error {
	if len(unknown) == 0 {
		return nil
	}
	parts, all := make([]*part, len(unknown)), make([]int, len(unknown))
	for i, x := range unknown {
		parts[i], all[i] = x.p, i
	}
	later := make([]bool, len(unknown))
	err := s.askBroker(ctx, addr, wire.Latest, false, parts, all, func(i int, a wire.OffsetAnswer) {
		later[i] = a.Epoch >= unknown[i].epoch && a.Offset >= unknown[i].until
	})
	if err != nil {
		return err
	}
	for i, x := range unknown {
		if !later[i] && !sabotage.On("leader-epoch-any-later") {
			return &errOtherLog{x.p, x.until, x.epoch}
		}
	}
	return nil
}
