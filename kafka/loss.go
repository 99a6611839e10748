package kafka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// topicGone is a topic whose positions mean nothing any more: a ChangedError, or an
// ErrNoTopic.
type topicGone struct {
	topic string
	err   error
}

func (e *topicGone) Error() string { return e.err.Error() }

func (e *topicGone) Unwrap() error { return e.err }

const lossChoices = "either start on a new checkpoint, or go on with the state as it is and what the topic holds from its first offsets (ContinueOnLoss)"

// madeAgain is a topic with another id than before; read says how far it was read.
func madeAgain(topic, was, is, read string) error {
	return &topicGone{topic, &source.ChangedError{Source: fmt.Sprintf("topic %q", topic),
		What: fmt.Sprintf("it was deleted and made again (its id was %s, now it is %s): offsets from before mean nothing in it (read: %s); %s", was, is, read, lossChoices)}}
}

// deleted is a topic that was read and is not there.
func deleted(topic, read string) error {
	return &topicGone{topic, fmt.Errorf("topic %q: %w any more: it was read (%s); create it again and %s", topic, ErrNoTopic, read, lossChoices)}
}

// goOn makes a plan possible again after a loss, if that is wanted.
func (s *kafkaSource) goOn(err error) bool {
	if !s.cfg.onLoss {
		return false
	}
	var range_ *OffsetRangeError
	var gone *topicGone
	switch {
	case errors.As(err, &range_) && range_.Lost() > 0 && !s.whole:
		s.whole = true
		return true
	case errors.As(err, &gone):
		s.forget(gone.topic)
		return true
	}
	return false
}

// forget drops the partitions of a topic that is gone; what has its name now is new.
func (s *kafkaSource) forget(topic string) {
	var read []source.Range
	var dropped []*part
	lost := int64(0)
	s.mu.Lock()
	s.parts = slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool {
		if p.Topic != topic {
			return false
		}
		read = append(read, source.Range{Partition: p.name, Until: p.next})
		lost += max(0, p.end-p.next)
		dropped = append(dropped, p)
		return true
	})
	s.mu.Unlock()
	for _, p := range dropped {
		s.ahead.forget(p)
	}
	s.looked = s.looked.Add(-s.cfg.refreshEvery) // look now
	s.count("lost_topics", 1)
	s.count("lost_records", lost)
	s.notice("topic %q was deleted, or made again: what was not read of it is lost, at least %d records (%s)", topic, lost, ends(topic, read))
}

// passOver moves a read over what is gone of its range, if that is wanted.
func (x *reading) passOver(err error) bool {
	var gone *OffsetRangeError
	if !x.s.cfg.onLoss || !errors.As(err, &gone) || gone.Lost() <= 0 {
		return false
	}
	to := min(gone.Earliest, x.until)
	x.s.lose(x.p, x.next, to)
	x.next = to
	return true
}

// lose counts and tells that offsets [from, to) are gone.
func (s *kafkaSource) lose(p *part, from, to int64) {
	if sabotage.On("loss-not-counted") {
		return
	}
	s.count("lost_records", to-from)
	s.notice("topic %q partition %d: offsets %d to %d are gone before they were read: %d records are lost, reading goes on at %d", p.Topic, p.Partition, from, to-1, to-from, to)
}
