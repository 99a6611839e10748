package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// found is what the cluster has of what is read.
type found struct {
	parts   []*part // in the order of plans
	dark    []*part // have no leader
	missing []string
}

// find lists the partitions.
func (s *kafkaSource) find(ctx context.Context, k *cluster) (found, error) {
	r := k.retrier()
	var before error
	for {
		f, err := s.listed(ctx, k, s.cfg.wait)
		if err == nil {
			return f, s.offsetsNamed(f.parts)
		}
		if silent(err) && before != nil && ctx.Err() != context.Canceled {
			err = before // says more than that the time is over
		}
		before = err
		if !r.again(ctx, err) {
			return found{}, r.wrap(err, "open %v at %s", &s.cfg.subscription, strings.Join(s.cfg.brokers, ", "))
		}
	}
}

// listed asks once.
func (s *kafkaSource) listed(ctx context.Context, k *cluster, wait bool) (f found, err error) {
	names := s.cfg.topics
	if s.cfg.pattern != nil {
		names = nil
	}
	m, err := k.about(ctx, names)
	if err != nil {
		return found{}, err
	}
	have, there := map[TopicPartition]bool{}, map[string]bool{}
	for _, t := range m.Topics {
		switch {
		case s.cfg.pattern != nil && (t.Internal || t.Err != nil || !s.cfg.pattern.MatchString(t.Name)):
			continue
		case t.Err != nil && !(wait && t.Err == wire.UnknownTopic):
			return found{}, topicError(t.Name, t.Err)
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
		if !wait && there[tp.Topic] && !have[tp] {
			return found{}, &source.ChangedError{Source: s.String(), What: fmt.Sprintf("partition %v does not exist", tp)}
		}
	}
	for _, name := range s.cfg.topics {
		if !slices.ContainsFunc(f.parts, func(p *part) bool { return p.Topic == name }) {
			f.missing = append(f.missing, name)
		}
	}
	if !wait && len(f.missing) > 0 {
		return found{}, &topicGone{f.missing[0], fmt.Errorf("topic %q: %w or has no partition", f.missing[0], ErrNoTopic)}
	}
	return f, nil
}

// offsetsNamed checks that FromOffsets names partitions that exist.
func (s *kafkaSource) offsetsNamed(parts []*part) error {
	if s.cfg.follows() {
		return nil // they may come
	}
	for tp := range s.cfg.offsets {
		if !slices.ContainsFunc(parts, func(p *part) bool { return p.TopicPartition == tp }) {
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
	for {
		f, err := s.listed(ctx, s.cluster, s.cfg.wait || s.cfg.onLoss)
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

// add takes in the partitions that were not known. One without a leader is not ready
// yet: it comes next time. A topic that is another one than before is not looked at
// here; the plan finds out.
func (s *kafkaSource) add(f found) {
	var fresh []string
	s.mu.Lock()
	all := slices.Clone(s.parts)
	for _, p := range f.parts {
		known := slices.ContainsFunc(all, func(q *part) bool { return q.TopicPartition == p.TopicPartition })
		if known || slices.Contains(f.dark, p) {
			continue
		}
		p.late = true
		all, fresh = append(all, p), append(fresh, p.name)
		s.byName[p.name] = p
	}
	slices.SortStableFunc(all, func(a, b *part) int { return s.cfg.order(a.TopicPartition, b.TopicPartition) })
	s.parts, s.missing = all, f.missing
	s.mu.Unlock()
	if len(fresh) > 0 {
		s.notice("new partitions are read from their first offset: %s", strings.Join(fresh, ", "))
	}
}
