package kafka

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/source"
)

// A topic that no broker knows any more was deleted, or the brokers do not know it yet:
// one that has just started may know none for seconds, and a list of all topics lacks it
// then without a word. Only another id under its name proves that it is gone. So, where
// the job goes on without it (ContinueOnLoss), its partitions are set aside with their ids
// and positions, which stay in every plan as ranges of nothing, and so in the checkpoint:
// if the topic comes back, reading goes on there, and it begins anew if that is another
// one.

// setAside takes the partitions of a topic that is not there out of what is read, and says
// whether there were any.
func (s *kafkaSource) setAside(topic string) bool {
	var aside []*part
	s.mu.Lock()
	s.parts = slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool {
		if p.Topic != topic {
			return false
		}
		p.stuck, p.asked = time.Time{}, time.Time{}
		aside = append(aside, p)
		return true
	})
	s.absent = append(s.absent, aside...)
	s.mu.Unlock()
	for _, p := range aside {
		s.ahead.forget(p)
	}
	if len(aside) == 0 {
		return false
	}
	s.looked = s.looked.Add(-s.cfg.refreshEvery) // look now
	s.away(topic, aside)
	return true
}

// away counts and tells that a topic is not there.
func (s *kafkaSource) away(topic string, parts []*part) {
	s.count("lost_topics", 1)
	read, left := s.left(parts)
	s.notice("topic %q is not there any more, it was deleted or its brokers do not know it yet: reading goes on without it, at least %d records of it were not read (%s). If it comes back it is read from there on, or from its first offsets if it is another topic by then",
		topic, left, ends(topic, read))
}

// left says how far partitions were read, and how many offsets are known behind that.
func (s *kafkaSource) left(parts []*part) (read []source.Range, left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		read = append(read, source.Range{Partition: p.name, Until: p.next})
		left += max(0, p.end-p.next)
	}
	return read, left
}

// returns says that what is found is a partition that was set aside, as far as that can be
// known: where brokers tell no ids, its leader epochs say so later, and without those it is
// taken for another one.
func (p *part) returns(found *part) bool {
	return p.is(found.id) && (p.id != "" || p.epoch >= 0) && !sabotage.On("absent-topic-begins-anew")
}

// keep adds what is set aside to the ranges of a plan. mu is held.
func (s *kafkaSource) keep(ranges []source.Range) []source.Range {
	n := len(ranges)
	for _, p := range s.absent {
		if p.placed {
			ranges = append(ranges, source.Range{Partition: p.name, From: p.next, Until: p.next, Epoch: p.id, Mark: markOf(p.epoch)})
		}
	}
	if len(ranges) > n {
		slices.SortStableFunc(ranges, func(a, b source.Range) int { return s.cfg.order(partitionOf(a.Partition), partitionOf(b.Partition)) })
	}
	return ranges
}

// lacks is what a list of what is there lacks of what was read: nil if that is nothing. A
// topic that is there under another id lacks nothing: that is known already.
func (s *kafkaSource) lacks(f found, read []source.Range) error {
	there, other := map[string]bool{}, map[string]bool{}
	was := map[string]string{}
	for _, r := range read {
		was[r.Partition] = r.Epoch
	}
	for _, p := range f.parts {
		there[p.name] = true
		if id, ok := was[p.name]; ok && !p.is(id) {
			other[p.Topic] = true
		}
	}
	for _, r := range read {
		tp := partitionOf(r.Partition)
		if s.cfg.covers(tp) && !there[r.Partition] && !other[tp.Topic] {
			return noTopic(tp.Topic, read)
		}
	}
	return nil
}

// welcome takes back what was set aside and is found again, and drops what is another
// topic by now. mu is held; tell, to be called without it, tells of it.
func (s *kafkaSource) welcome(f found) (back []*part, tell func()) {
	again := map[string][]*part{} // by topic
	other := map[string]bool{}
	for _, p := range f.parts {
		i := slices.IndexFunc(s.absent, func(q *part) bool { return q.TopicPartition == p.TopicPartition })
		switch {
		case i < 0:
		case !s.absent[i].returns(p):
			other[p.Topic], s.anew[p.Topic] = true, true
		case !slices.Contains(f.dark, p):
			q := s.absent[i]
			q.doubtful = q.placed && q.epoch >= 0
			q.back = true
			again[q.Topic] = append(again[q.Topic], q)
			back = append(back, q)
		}
		delete(s.missed, p.Topic)
	}
	gone := map[string][]*part{}
	s.absent = slices.DeleteFunc(slices.Clone(s.absent), func(q *part) bool {
		if other[q.Topic] {
			gone[q.Topic] = append(gone[q.Topic], q)
		}
		return other[q.Topic] || slices.Contains(back, q)
	})
	return back, func() {
		for _, topic := range sortedKeys(again) {
			s.count("returned_topics", 1)
			read, _ := s.left(again[topic])
			s.notice("topic %q is there again, and it is the same: reading goes on where it was (%s)", topic, ends(topic, read))
		}
		for _, topic := range sortedKeys(gone) {
			s.lost(topic, gone[topic])
		}
	}
}

// lost counts and tells what is lost with a topic that was made again.
func (s *kafkaSource) lost(topic string, parts []*part) {
	read, left := s.left(parts)
	s.count("lost_records", left)
	s.notice("topic %q was deleted and made again: what was not read of it is lost, at least %d records (%s)", topic, left, ends(topic, read))
}

// another is a log that ends before its position: of a topic that was not there for a
// while, and has no id, that says that it is another one.
func (p *part) another(err error) error {
	if p.id != "" || !p.back || !errors.As(err, new(*OffsetRangeError)) {
		return err
	}
	at := map[int32]int64{p.Partition: p.next}
	return &TopicGoneError{p.Topic, at, &source.ChangedError{Source: fmt.Sprintf("topic %q", p.Topic),
		What: fmt.Sprintf("it was not there for a while, and is shorter now than what was read of it: it was deleted and made again (%v); %s", err, lossChoices)}}
}

// miss remembers that reads have waited for a topic in vain, so that others need not.
func (s *kafkaSource) miss(err error) {
	var gone *TopicGoneError
	if errors.As(err, &gone) && errors.Is(err, ErrNoTopic) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.missed[gone.Topic] = true
	}
}

// patient is how a read is tried again: for longer, where it would have to pass over what
// it cannot read.
func (s *kafkaSource) patient(p *part) *retrier {
	r := s.cluster.retrier()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.patient = !s.missed[p.Topic]
	return r
}
