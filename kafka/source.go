package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/pool"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/source"
)

// kafkaSource implements source.Source. The engine's goroutine plans; workers read.
type kafkaSource struct {
	cfg      config
	cluster  *cluster // of the open source
	decoders pool.FreeList[decoder]

	mu     sync.Mutex
	open   bool
	parts  []*part // by topic as the options name them, then by number
	byName map[string]*part
	sameAt map[string]time.Time // when each topic was last seen to be the same
}

// part is one partition. mu of the source protects all but the names.
type part struct {
	TopicPartition
	name string
	id   string // the topic's id, "" if the broker tells none

	placed bool  // next is known
	next   int64 // all before it was planned
	stop   int64 // with StopAtEnd: where the input ends; -1 until the first plan

	size    float64 // bytes per record, 0 while unknown
	wire    float64 // bytes per offset as they are sent, 0 while unknown
	trusted int64   // a range of so many offsets may be judged by size
}

// decoder is what one Read needs and the next one can use.
type decoder struct {
	batch   batch.Decoder
	headers headers
}

// ending adds what only a source with StopAtEnd has.
type ending struct{ *kafkaSource }

// NewSource makes a source of Kafka records. Faults of the options are told by
// Open. The source can be opened again after Close.
//
// Its plan has a range for every partition, named like "topic-3", with the topic's
// id as its Epoch.
func NewSource(opts ...SourceOption) source.Source[Record] {
	s := &kafkaSource{cfg: newConfig(opts)}
	if s.cfg.toEnd {
		return ending{s}
	}
	return s
}

// String names the source for messages.
func (s *kafkaSource) String() string { return "kafka topics " + strings.Join(s.cfg.topics, ", ") }

// Open implements source.Source: it finds the brokers, the topics and their
// partitions within RetryFor.
func (s *kafkaSource) Open(ctx context.Context, last *source.Plan) error {
	if err := s.cfg.valid(); err != nil {
		return &Error{Doing: "options", Err: err, final: true}
	}
	limit := max(s.cfg.retryFor, s.cfg.requestTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLong(limit))
	defer cancel()
	k := newCluster(&s.cfg)
	parts, err := s.find(ctx, k)
	if err == nil {
		err = resume(parts, last)
	}
	if err != nil {
		k.close()
		var e *Error
		if errors.As(err, &e) {
			e.final = context.Cause(ctx) != context.Canceled // it was tried for as long as a start may take
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.close()
	}
	s.cluster, s.parts, s.open = k, parts, true
	s.byName, s.sameAt = map[string]*part{}, map[string]time.Time{}
	for _, p := range parts {
		s.byName[p.name] = p
	}
	return nil
}

// tooLong is why a start ends.
type tooLong time.Duration

func (d tooLong) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(d)) }

// Timeout tells it apart from other failures, as in net.Error.
func (d tooLong) Timeout() bool { return true }

// find lists the partitions.
func (s *kafkaSource) find(ctx context.Context, k *cluster) ([]*part, error) {
	r := k.retrier()
	var before error
	for {
		parts, err := s.listed(ctx, k)
		if err == nil {
			return parts, nil
		}
		if silent(err) && before != nil && ctx.Err() != context.Canceled {
			err = before // says more than that the time is over
		}
		before = err
		if !r.again(ctx, err) {
			return nil, r.wrap(err, "open topics %s at %s", strings.Join(s.cfg.topics, ", "), strings.Join(s.cfg.brokers, ", "))
		}
	}
}

func (s *kafkaSource) listed(ctx context.Context, k *cluster) ([]*part, error) {
	m, err := k.metadata(ctx)
	if err != nil {
		return nil, err
	}
	var parts []*part
	for _, name := range s.cfg.topics {
		at := len(parts)
		for _, t := range m.Topics {
			if t.Name != name {
				continue
			}
			if t.Err != nil {
				return nil, topicError(name, t.Err)
			}
			for _, p := range t.Partitions {
				tp := TopicPartition{name, p.Number}
				parts = append(parts, &part{TopicPartition: tp, name: tp.String(), id: t.ID, stop: -1})
			}
		}
		if at == len(parts) {
			return nil, fmt.Errorf("topic %q: %w or has no partition", name, ErrNoTopic)
		}
		slices.SortFunc(parts[at:], func(a, b *part) int { return int(a.Partition) - int(b.Partition) })
	}
	return parts, s.offsetsNamed(parts)
}

// offsetsNamed checks that FromOffsets names partitions that exist.
func (s *kafkaSource) offsetsNamed(parts []*part) error {
	for tp := range s.cfg.offsets {
		if !slices.ContainsFunc(parts, func(p *part) bool { return p.TopicPartition == tp }) {
			return &source.ChangedError{Source: s.String(), What: fmt.Sprintf("FromOffsets names partition %v, which does not exist", tp)}
		}
	}
	return nil
}

// resume puts the partitions where the last plan ended.
func resume(parts []*part, last *source.Plan) error {
	if last == nil {
		return nil
	}
	until := map[string]source.Range{}
	for _, r := range last.Ranges {
		until[r.Partition] = r
	}
	for _, p := range parts {
		if r, ok := until[p.name]; ok {
			if err := p.same(r.Epoch); err != nil {
				return &Error{Doing: "resume", Err: err, final: true}
			}
			p.next, p.placed = r.Until, true
		}
	}
	return nil
}

// same checks that the topic is still the one with that id.
func (p *part) same(id string) error {
	if id == "" || p.id == "" || id == p.id {
		return nil
	}
	return &source.ChangedError{Source: fmt.Sprintf("topic %q", p.Topic),
		What: fmt.Sprintf("it was deleted and made again (its id was %s, now it is %s): offsets from before mean nothing in it; start on a new checkpoint", id, p.id)}
}

// Committed implements source.Source. Positions are the engine's, so there is
// nothing to do.
func (s *kafkaSource) Committed(ctx context.Context, _ source.Plan) error { return ctx.Err() }

// Close implements source.Source.
func (s *kafkaSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.close()
	}
	s.open = false
	return nil
}

// Locate implements source.Locator.
func (s *kafkaSource) Locate(partition string, offset int64) string {
	if p, _ := s.part(partition); p != nil {
		return fmt.Sprintf("topic %q partition %d offset %d", p.Topic, p.Partition, offset)
	}
	return fmt.Sprintf("partition %q offset %d", partition, offset)
}

// part finds a partition by its name in plans.
func (s *kafkaSource) part(name string) (p *part, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name], s.open
}

// Done implements source.Bounded.
func (s ending) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts) > 0 && !slices.ContainsFunc(s.parts, func(p *part) bool { return p.stop < 0 || p.next < p.stop })
}

// unixMilli is a record's time.
func unixMilli(ms int64) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
