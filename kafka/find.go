package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// found is what the cluster has of what is read.
type found struct {
	parts   []*part // in the order of plans
	dark    []*part // have no leader
	missing []string
	lacking []TopicPartition // are named, and their topic has none of that number
}

// find lists the partitions. By choice, topics of the last plan may be missing; they are
// asked for several times before that is believed, also where a pattern says what is read.
func (s *kafkaSource) find(ctx context.Context, k *cluster, last *source.Plan) (found, error) {
	r := k.retrier()
	var read []source.Range
	if last != nil {
		read = last.Ranges
	}
	gone := false
	may := func(topic string) bool { return s.cfg.wait || gone && len(positions(topic, read)) > 0 }
	var before error
	for {
		f, err := s.listed(ctx, k, may, read)
		if err == nil && !gone && !sabotage.On("pattern-listed-once") {
			err = s.lacks(f, read)
		}
		if err == nil {
			return f, s.offsetsNamed(f.parts, read)
		}
		if silent(err) && before != nil && ctx.Err() != context.Canceled {
			err = before // says more than that the time is over
		}
		before = err
		if !r.again(ctx, err) {
			if ctx.Err() == nil && s.cfg.onLoss && !gone && errors.Is(err, ErrNoTopic) {
				gone, r = true, k.retrier()
				continue
			}
			return found{}, r.wrap(err, "open %v at %s", &s.cfg.subscription, strings.Join(s.cfg.brokers, ", "))
		}
	}
}

// listed asks once. may says which topics may be missing; read is how far what is read
// was read.
func (s *kafkaSource) listed(ctx context.Context, k *cluster, may func(topic string) bool, read []source.Range) (f found, err error) {
	names := s.cfg.topics
	if s.cfg.pattern != nil {
		names = nil
	}
	m, err := k.about(ctx, names)
	if err != nil {
		return found{}, err
	}
	have, there, known := map[TopicPartition]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range read {
		known[partitionOf(r.Partition).Topic] = true
	}
	for _, t := range m.Topics {
		was := known[t.Name]
		switch {
		case s.cfg.pattern != nil && (t.Internal || t.Err != nil && !was || !s.cfg.pattern.MatchString(t.Name)):
			continue
		case t.Err != nil && !(t.Err == wire.UnknownTopic && may(t.Name)):
			return found{}, topicError(t.Name, t.Err, read)
		}
		for _, p := range t.Partitions {
			tp := TopicPartition{t.Name, p.Number}
			there[t.Name] = true
			if !s.cfg.covers(tp) {
				continue
			}
			have[tp] = true
			f.parts = append(f.parts, newPart(tp, t.ID))
			if p.Leader < 0 {
				f.dark = append(f.dark, f.parts[len(f.parts)-1])
			}
		}
	}
	slices.SortFunc(f.parts, func(a, b *part) int { return s.cfg.order(a.TopicPartition, b.TopicPartition) })
	for _, tp := range s.cfg.assigned {
		if !there[tp.Topic] || have[tp] {
			continue
		}
		f.lacking = append(f.lacking, tp)
		// Of a topic that was read, it may have been of one that had the name before.
		if was := s.cfg.onLoss && known[tp.Topic]; !may(tp.Topic) && !was {
			return found{}, &source.ChangedError{Source: s.String(), What: fmt.Sprintf("partition %v does not exist", tp)}
		}
	}
	some := map[string]bool{}
	for _, p := range f.parts {
		some[p.Topic] = true
	}
	for _, name := range s.cfg.topics {
		if !some[name] {
			f.missing = append(f.missing, name)
			if !may(name) {
				return found{}, noTopic(name, read)
			}
		}
	}
	return f, nil
}

// offsetsNamed checks that FromOffsets names partitions that exist. Of a topic that was
// read, they may have been of one that had the name before.
func (s *kafkaSource) offsetsNamed(parts []*part, read []source.Range) error {
	if s.cfg.follows() {
		return nil // they may come
	}
	for tp := range s.cfg.offsets {
		if len(positions(tp.Topic, read)) == 0 && !slices.ContainsFunc(parts, func(p *part) bool { return p.TopicPartition == tp }) {
			return &source.ChangedError{Source: s.String(), What: fmt.Sprintf("FromOffsets names partition %v, which does not exist", tp)}
		}
	}
	return nil
}

// look adds what is new, when it is time to.
func (s *kafkaSource) look(ctx context.Context) error {
	now := s.cfg.clock.Now()
	if now.Sub(s.looked) < s.cfg.refreshEvery {
		return nil
	}
	r := s.cluster.retrier()
	may := func(string) bool { return s.cfg.wait || s.cfg.onLoss }
	for {
		f, err := s.listed(ctx, s.cluster, may, s.read())
		if err == nil {
			s.add(f)
			s.looked = now
			return nil
		}
		if !r.again(ctx, err) {
			return r.wrap(err, "look for new partitions of %v", &s.cfg.subscription)
		}
	}
}

// add takes in the partitions that were not known, and those that were set aside. One without a leader is not ready
// yet: it comes next time. A topic that is another one than before is not looked at
// here; the plan finds out.
func (s *kafkaSource) add(f found) {
	var fresh, told []string
	s.mu.Lock()
	back, tell := s.welcome(f)
	all := append(slices.Clone(s.parts), back...)
	known := map[TopicPartition]bool{}
	for _, p := range all {
		known[p.TopicPartition] = true
	}
	for _, p := range f.parts {
		if known[p.TopicPartition] || slices.Contains(f.dark, p) {
			continue
		}
		known[p.TopicPartition] = true // a broker may list it twice
		p.late, p.anew = true, s.anew[p.Topic]
		all = append(all, p)
		if offset, named := s.named(p); named {
			told = append(told, p.startsAt(offset))
		} else {
			fresh = append(fresh, p.name)
		}
		s.byName[p.name] = p
	}
	slices.SortStableFunc(all, func(a, b *part) int { return s.cfg.order(a.TopicPartition, b.TopicPartition) })
	s.parts, s.missing = all, f.missing
	s.mu.Unlock()
	tell()
	if len(fresh) > 0 {
		s.notice("new partitions are read from their first offset: %s", strings.Join(fresh, ", "))
	}
	for _, text := range told {
		s.notice("%s", text)
	}
}

// startsAt tells of a partition that was not read before and does not begin with its first
// offset.
func (p *part) startsAt(offset int64) string {
	return fmt.Sprintf("topic %q partition %d was not read before: it is read from offset %d, as FromOffsets says", p.Topic, p.Partition, offset)
}
