package kafka

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// TopicGoneError is a topic whose positions mean nothing any more: it does not exist, or
// was made again.
type TopicGoneError struct {
	Topic string
	// Read is how far each partition was read: all before these offsets. It is empty
	// where nothing was.
	Read map[int32]int64
	// Err says what became of the topic, and the choices; it wraps ErrNoTopic or a
	// *source.ChangedError.
	Err error
}

func (e *TopicGoneError) Error() string { return e.Err.Error() }

// Unwrap gives what became of the topic.
func (e *TopicGoneError) Unwrap() error { return e.Err }

// Permanent says that trying again does not help. (A broker that has just started may
// not know a topic yet; it was asked several times.)
func (e *TopicGoneError) Permanent() bool { return true }

// positions are how far the partitions of a topic were read.
func positions(topic string, ranges []source.Range) map[int32]int64 {
	out := map[int32]int64{}
	for _, r := range ranges {
		if tp := partitionOf(r.Partition); tp.Topic == topic {
			out[tp.Partition] = r.Until
		}
	}
	return out
}

const lossChoices = "either start on a new checkpoint, or go on with the state as it is and what the topic holds from its first offsets (ContinueOnLoss)"

// madeAgain is a topic with another id than before; read are ranges that were read.
func madeAgain(topic, was, is string, read []source.Range) error {
	return &TopicGoneError{topic, positions(topic, read), &source.ChangedError{Source: fmt.Sprintf("topic %q", topic),
		What: fmt.Sprintf("it was deleted and made again (its id was %s, now it is %s): offsets from before mean nothing in it (read: %s); %s", was, is, ends(topic, read), lossChoices)}}
}

// noTopic is a topic that is not there; one that was read was deleted.
func noTopic(topic string, read []source.Range) error {
	at := positions(topic, read)
	if len(at) == 0 {
		return &TopicGoneError{topic, nil, fmt.Errorf("topic %q: %w: create it, or mend the name", topic, ErrNoTopic)}
	}
	return &TopicGoneError{topic, at, fmt.Errorf("topic %q: %w any more: it was read (%s); create it again and %s", topic, ErrNoTopic, ends(topic, read), lossChoices)}
}

// topicError is what the cluster says of a topic.
func topicError(topic string, err error, read []source.Range) error {
	if err == wire.UnknownTopic {
		return noTopic(topic, read)
	}
	return fmt.Errorf("topic %q: %w", topic, err)
}

// goOn makes a plan possible again after a loss, if that is wanted. That records are gone of
// which none was planned, between what a plan has asked and what it has measured, is none:
// another one is the oldest now.
func (s *kafkaSource) goOn(err error) bool {
	var range_ *OffsetRangeError
	if errors.As(err, &range_) && range_.Lost() > 0 {
		p, _ := s.part(TopicPartition{range_.Topic, range_.Partition}.String())
		if p == nil {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		p.stuck = time.Time{} // the broker has answered
		if p.placed {
			s.whole = true
			return s.cfg.onLoss
		}
		_, named := s.named(p)
		return !named && !sabotage.On("oldest-record-never-changes")
	}
	var gone *TopicGoneError
	if !s.cfg.onLoss || !errors.As(err, &gone) {
		return false
	}
	if errors.Is(err, ErrNoTopic) {
		return s.setAside(gone.Topic)
	}
	s.forget(gone.Topic)
	return true
}

// forget drops the partitions of a topic that was made again; what has its name now is new.
func (s *kafkaSource) forget(topic string) {
	var dropped []*part
	s.mu.Lock()
	s.anew[topic] = true
	s.parts = slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool {
		if p.Topic != topic {
			return false
		}
		dropped = append(dropped, p)
		return true
	})
	s.mu.Unlock()
	for _, p := range dropped {
		s.ahead.forget(p)
	}
	s.looked = s.looked.Add(-s.cfg.refreshEvery) // look now
	s.count("lost_topics", 1)
	s.lost(topic, dropped)
}

// passOver moves a read over what is gone of its range, if that is wanted.
func (x *reading) passOver(err error) bool {
	var gone *OffsetRangeError
	if !x.s.cfg.onLoss || !errors.As(err, &gone) || gone.Lost() <= 0 {
		return false
	}
	to := min(gone.Earliest, x.until)
	x.s.lose(x.p, x.next, to)
	if !sabotage.On("loss-leaves-a-stall") {
		x.s.got(x.p) // nothing more is waited for
	}
	x.next = to
	return true
}

// lose counts and tells that offsets [from, to) are gone.
func (s *kafkaSource) lose(p *part, from, to int64) {
	if sabotage.On("loss-not-counted") {
		return
	}
	if !s.countLost(p, from, to) {
		return // it was told
	}
	s.notice("topic %q partition %d: offsets %d to %d are gone before they were read: %d records are lost, reading goes on at %d", p.Topic, p.Partition, from, to-1, to-from, to)
}

// loseTopic is lose for what went with its topic: what has that name now has other offsets.
func (s *kafkaSource) loseTopic(p *part, from, to int64) {
	if !s.countLost(p, from, to) {
		return
	}
	s.notice("topic %q partition %d: offsets %d to %d went with the topic, which was deleted, or made again, before they were read: %d records are lost; what has its name now, or gets it, is read from its first offset, or behind these if it is the same topic", p.Topic, p.Partition, from, to-1, to-from)
}

// goneInBatch is a topic that went while a batch was reading it. The batch's plan is
// durable and names the old topic, and what was read of it is in the batch: so it can be
// neither planned anew nor finished. A start reads the same plan, and nothing of the topic.
type goneInBatch struct {
	topic string
	err   error
}

func (e *goneInBatch) Error() string {
	return fmt.Sprintf("topic %q was deleted, or made again, in the middle of a batch that has records of it: the batch cannot be finished, and nothing of it is committed. Start the job again: it goes on over what is lost (ContinueOnLoss)", e.topic)
}

func (e *goneInBatch) Unwrap() error { return e.err }

// inBatch says what to do about a topic that went while it was read, where losses are
// gone over.
func (s *kafkaSource) inBatch(err error) error {
	var gone *TopicGoneError
	if !s.cfg.onLoss || !errors.As(err, &gone) {
		return err
	}
	return &Error{Doing: "read", final: true, Err: &TopicGoneError{gone.Topic, gone.Read, &goneInBatch{gone.Topic, gone.Err}}}
}

// hole counts and tells that offsets [from, to) are taken for a hole.
func (s *kafkaSource) hole(p *part, from, to int64, tried time.Duration) {
	s.count("assumed_holes", to-from)
	s.notice("topic %q partition %d: for %v the broker has answered that it has nothing at offsets %d to %d, though the log goes on: they are taken for removed by compaction, and reading goes on at %d. If they are there (tiered storage that is slow?), give RetryFor more than %v, and take an older version of the state, from offset %d or before",
		p.Topic, p.Partition, tried, from, to-1, to, tried, from)
}
