package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// Fetches ask for a topic by its name, so what comes may be of another topic that has
// the name since the plan was made. Ids of topics never come back: a topic that has the
// planned one after the last fetch had it all the time. So when the last range of a plan
// was read, those who led what was read are asked once more: a leader that serves
// another topic under the name knows its id.

// unproved is what was read of a plan and may be of other topics.
type unproved struct {
	left map[string]bool // ranges that were not read yet
	read map[*part]bool
}

// proveAnew begins with a plan. Of a plan of an earlier run, all may be read again.
func (u *unproved) proveAnew(p *source.Plan) {
	u.left, u.read = map[string]bool{}, map[*part]bool{}
	if p == nil {
		return
	}
	for _, r := range p.Ranges {
		if r.From < r.Until {
			u.left[r.Partition] = true
		}
	}
}

// proved notes that a range was read. The last one, and each that is read again after
// it, answers for all that have no proof yet.
func (s *kafkaSource) proved(ctx context.Context, p *part, fetched bool) error {
	var parts []*part
	s.mu.Lock()
	delete(s.unproved.left, p.name)
	if fetched && p.id != "" {
		s.unproved.read[p] = true
	}
	if len(s.unproved.left) == 0 {
		parts = make([]*part, 0, len(s.unproved.read))
		for q := range s.unproved.read {
			parts = append(parts, q)
		}
	}
	s.mu.Unlock()
	if len(parts) == 0 || sabotage.On("topic-id-unproved") {
		return nil
	}
	if err := s.prove(ctx, parts); err != nil {
		return s.inBatch(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range parts {
		delete(s.unproved.read, q)
	}
	return nil
}

// prove asks until it is known.
func (s *kafkaSource) prove(ctx context.Context, parts []*part) error {
	r := s.cluster.retrier()
	for {
		err := s.proveOnce(ctx, parts)
		if err == nil {
			return nil
		}
		if !r.again(ctx, err) {
			if s.cfg.onLoss && errors.Is(err, ErrNoTopic) { // it was deleted: the next plan finds out
				var gone *TopicGoneError
				errors.As(err, &gone)
				parts = slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p.Topic == gone.Topic })
				r = s.cluster.retrier()
				continue
			}
			return r.wrap(err, "check that topics are still those of the plan")
		}
		_, _ = s.cluster.about(ctx, topicsOf(parts)) // leaders may have moved; the next try tells
	}
}

func (s *kafkaSource) proveOnce(ctx context.Context, parts []*part) error {
	byLeader := map[string][]*part{}
	for _, p := range parts {
		addr := s.cluster.leader(p.TopicPartition)
		if addr == "" {
			return fmt.Errorf("%s: %w", p.name, errNoLeader)
		}
		byLeader[addr] = append(byLeader[addr], p)
	}
	addrs := sortedKeys(byLeader)
	errs := make([]error, len(addrs))
	err := pool.Run(ctx, len(addrs), len(addrs), func(ctx context.Context, _, i int) error {
		list := byLeader[addrs[i]]
		s.asks(list)
		m, err := s.cluster.metadataOf(ctx, addrs[i], topicsOf(list), s.cfg.requestTimeout)
		if err == nil {
			s.answered(list...)
			err = s.areSame(m, list)
		}
		errs[i] = err // one that fails keeps no other from answering
		return nil
	})
	return firstOf(append([]error{err}, errs...))
}

// areSame checks what a broker says of the topics of parts.
func (s *kafkaSource) areSame(m *wire.Metadata, parts []*part) error {
	byTopic := map[string][]*part{}
	for _, p := range parts {
		byTopic[p.Topic] = append(byTopic[p.Topic], p)
	}
	for _, t := range m.Topics {
		for _, p := range byTopic[t.Name] {
			switch {
			case t.Err != nil:
				return topicError(t.Name, t.Err, s.read())
			case !p.is(t.ID):
				return madeAgain(t.Name, p.id, t.ID, s.read())
			}
		}
	}
	return nil
}
